"""``AS SELECT expressions FROM source [WHERE ...]``: what a source's rows are made of, row by row, as they are read.

In: the text, and the columns that the source delivers. Out: Spark SQL over these, with every conversion tried, and for
each conversion when it has failed: one that cannot be done makes the row a bad one, and must not end the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.plan.columns import name_problem
from plait.query.model import Stream
from plait.query.origin import Column, Making
from plait.sources.values import CORRUPT
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.forgiving import failures, forgiving
from plait.sql.expressions.inference import inferred_type
from plait.sql.expressions.scope import BoundRelation, Scope
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_columns, struct_fields
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.operations import called
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import Token, tokenize
from plait.sql.select.output import without_alias
from plait.sql.select.syntax import SelectSyntax, Tokens, parse_select, refuse_subqueries
from plait.sql.statements import WrittenSelect

SOURCE: Final = "source"
"""What AS SELECT calls what is read."""

_PARSERS: Final = ("from_json", "from_csv")
_ONE_ROW: Final = (
    "AS SELECT makes a row of each row that is read: SELECT expressions FROM source [WHERE condition]; join, group and "
    "leave duplicates out in a query"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What AS SELECT amounts to: the `columns`, a type being None where only Spark knows it."""

    making: Making
    columns: tuple[tuple[str, str | None], ...]

    @property
    def schema(self) -> tuple[Column, ...] | None:
        """The columns, if all types are known."""
        known = [Column(name=name, type=type_) for name, type_ in self.columns if type_ is not None]
        return tuple(known) if len(known) == len(self.columns) else None


def bind_making(
    written: WrittenSelect, delivered: tuple[Column, ...], *, starred: Sequence[Column], file: str | None
) -> tuple[Made | None, tuple[SqlError, ...]]:
    """Return what the rows are made of, or everything that is wrong with it. `starred`: what ``*`` stands for."""
    text = SourceText(text=written.text, file=file, line=written.line, column=written.column)
    binder = _Binder(text, delivered, starred)
    try:
        made = binder.bind()
    except SqlError as problem:
        binder.problems.append(problem)
        made = None
    return (None, tuple(binder.problems)) if binder.problems else (made, ())


@dataclass(slots=True)
class _Items:
    """The SELECT list as far as it has been read: names, texts and types."""

    columns: list[tuple[str, str | None]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    unpacked: list[tuple[str, str]] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)

    def add(self, name: str, type_: str | None, text: str) -> None:
        """Add a column."""
        self.columns.append((name, type_))
        self.texts.append(text)


class _Binder:
    def __init__(self, text: SourceText, delivered: tuple[Column, ...], starred: Sequence[Column]) -> None:
        self.problems: list[SqlError] = []
        self._text, self._delivered, self._starred = text, delivered, starred
        self._masked = scan(text.text).masked
        self._expressions = ExpressionBinder(text, self._masked, self.problems)

    def bind(self) -> Made | None:
        tokens = tokenize(self._text, self._masked, 0, len(self._masked))
        cursor = Cursor(self._text, self._masked, tokens, tokens[-1].end)
        syntax = parse_select(cursor)
        scope = self._scope(cursor, syntax)
        items = _Items()
        for item in syntax.items:
            refuse_subqueries(cursor, item)
            self._add(item, scope, items)
        condition = None
        if syntax.where is not None:
            refuse_subqueries(cursor, syntax.where)
            bound = self._expressions.bind_condition(syntax.where, scope)
            condition = None if bound is None else bound.over_source().sql
        if self.problems:
            return None
        computed = [*items.computed, *([] if condition is None else [condition])]
        making = Making(
            delivered=self._delivered,
            items=tuple((name, text) for (name, _), text in zip(items.columns, items.texts, strict=True)),
            unpacked=tuple(items.unpacked),
            condition=None if condition is None else forgiving(condition),
            failures=tuple(dict.fromkeys(failure for sql in computed for failure in failures(sql))),
        )
        return Made(making=making, columns=tuple(items.columns))

    def _scope(self, cursor: Cursor, syntax: SelectSyntax) -> Scope:
        relation = syntax.relations[0]
        if syntax.at is not None or len(syntax.relations) > 1:
            at = syntax.at or syntax.relations[1].at
            raise cursor.error(_ONE_ROW, at, UnsupportedQueryError)
        if folded(relation.source.value) != SOURCE:
            message = f"AS SELECT reads what USING names, and calls it '{SOURCE}'; write FROM {SOURCE}"
            raise cursor.error(message, relation.source)
        alias = relation.alias.value if relation.alias is not None else SOURCE
        source = Stream(name=SOURCE, time="", schema=self._delivered)
        return Scope.of(BoundRelation(alias=alias, source=source))

    def _add(self, item: Tokens, scope: Scope, items: _Items) -> None:
        try:
            if item[-1].is_symbol("*") and (len(item) == 1 or item[-2].is_symbol(".")):
                self._add_star(item, scope, items)
            else:
                self._add_expression(item, scope, items)
        except SqlError as problem:
            self.problems.append(problem)

    def _add_star(self, item: Tokens, scope: Scope, items: _Items) -> None:
        relation = scope.relations[0]
        if len(item) == 1 or (len(item) == 3 and folded(item[0].value) == folded(relation.alias)):
            for column in self._starred:
                self._name(items, column.name, item[0])
                items.add(column.name, column.type, backquoted(column.name))
            return
        bound = self._bound(item[:-2], scope)
        if bound is None:
            return
        fields = _fields(bound)
        if fields is None:
            message = f"the fields of {bound.as_written()} are not known before Spark is asked; name them one by one"
            raise self._text.error(message, item[0].start)
        unpacked = f"__unpacked{len(items.unpacked)}"
        items.unpacked.append((unpacked, forgiving(bound.over_source().sql)))
        items.computed.append(bound.over_source().sql)
        for each in fields:
            self._name(items, each.name, item[0])
            items.add(each.name, each.type, f"{backquoted(unpacked)}.{backquoted(each.name)}")

    def _add_expression(self, item: Tokens, scope: Scope, items: _Items) -> None:
        tokens, alias = without_alias(item, self._expressions)
        parsed = self._expressions.parse(tokens)
        if parsed is not None and parsed.alias is not None:
            alias, tokens = parsed.alias, tokens[:-1]
        bound = self._expressions.bind(parsed, tokens, scope)
        if bound is None:
            return
        if alias is None and not bound.is_column:
            message = f"the column {bound.as_written()} has no name; write {bound.as_written()} AS name"
            raise self._text.error(message, item[0].start)
        column = bound.meanings[0][1].column.column if bound.is_whole_column else tokens[-1].value
        name, sql = column if alias is None else alias.value, bound.over_source().sql
        self._name(items, name, alias or item[0])
        items.computed.append(sql)
        items.add(name, inferred_type(bound), forgiving(sql))

    def _bound(self, tokens: Tokens, scope: Scope) -> BoundExpression | None:
        return self._expressions.bind(self._expressions.parse(tokens), tokens, scope)

    def _name(self, items: _Items, name: str, at: Token) -> None:
        """Refuse a name that the columns so far have, or none may. Raises SqlError."""
        problem = name_problem(name)
        if folded(name) == CORRUPT:
            problem = f"'{CORRUPT}' is where Plait keeps records that cannot be read; give the column another name"
        if any(folded(known) == folded(name) for known, _ in items.columns):
            problem = f"two columns are called '{name}'; give one of them another name: expression AS name"
        if problem is not None:
            raise self._text.error(problem, at.start)


def _fields(bound: BoundExpression) -> tuple[Column, ...] | None:
    """Return the fields of a struct, None where only Spark knows them."""
    type_ = inferred_type(bound)
    if type_ is not None:
        return struct_fields(type_)
    call = called(bound.tokens)
    if call is None or call[0].value.lower() not in _PARSERS or len(call[1]) < 2 or len(call[1][1]) != 1:
        return None
    written = call[1][1][0]
    return _declared(written.value) if written.kind == "string" else None


def _declared(ddl: str) -> tuple[Column, ...] | None:
    source = SourceText(text=f"({ddl})")
    try:
        cursor = Cursor(source, source.text, tokenize(source, source.text, 0, len(source.text)), len(source.text))
        columns = parse_columns(cursor)
    except SqlError:
        return struct_fields(ddl.strip().lower())
    return None if cursor.problems or cursor.token is not None else columns


__all__ = ["Made", "bind_making"]
