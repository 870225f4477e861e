"""GROUP BY a window of event time, HAVING, and SELECT DISTINCT within a window: what becomes of the joined rows.

Expressions stay Spark's: only columns are put as the joined row calls them, and the window as its column ``window``, or
``session_window``.
That a column stands in the SELECT list without being grouped by is said here where it is plain to see; the rest Spark
says when it confirms the query.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Aggregation, ColumnRef, JoinedExpression, OutputColumn
from plait.query.time_windows import SessionWindow
from plait.sql.expressions.bound import BoundExpression, column_of_join
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.parsing import Parsed
from plait.sql.expressions.scope import Scope
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.operations import called
from plait.sql.lexis.tokens import Token, depths, split
from plait.sql.select.group_columns import group_columns
from plait.sql.select.ordered import ordered
from plait.sql.select.output import without_alias
from plait.sql.select.syntax import SelectSyntax
from plait.sql.select.time_window import ADVICE, NAMES, FoundWindow, aggregate_calls, bind_window, calls, is_window

_KINDS: Final = ("CUBE", "ROLLUP", "GROUPING SETS")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundGroups:
    """`output`: the result columns as they are written, each with the first token of its item; `read`: the columns of
    the joined row that they are computed from.
    """

    aggregation: Aggregation
    output: list[tuple[OutputColumn, Token]]
    read: tuple[ColumnRef, ...]

    @property
    def joined(self) -> tuple[OutputColumn, ...]:
        """What the join is asked for."""
        return tuple(OutputColumn(name=ref.name, expression=column_of_join(ref)) for ref in self.read)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """An expression of the query; of the SELECT list with its alias, if it has one."""

    tokens: tuple[Token, ...]
    parsed: Parsed | None
    alias: Token | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sets:
    """An element of GROUP BY: one expression, or ``CUBE``, ``ROLLUP`` or ``GROUPING SETS`` of several. `lengths`: how
    many keys each of the sets has, where it says so.
    """

    keys: tuple[_Written, ...]
    kind: str | None = None
    lengths: tuple[int, ...] = ()

    def written(self, keys: Sequence[str]) -> str:
        """Return it as text, with the keys put so."""
        if self.kind is None:
            return keys[0]
        rest = iter(keys)
        parts = [f"({', '.join(next(rest) for _ in range(length))})" for length in self.lengths]
        return f"{self.kind} ({', '.join(parts or keys)})"


def bind_groups(
    syntax: SelectSyntax, scope: Scope, windows: Mapping[str, int | None], expressions: ExpressionBinder
) -> BoundGroups | None:
    """Bind a SELECT that groups. `windows`: of the relations, in microseconds. None if something is wrong with it."""
    before = len(expressions.problems)
    try:
        found = _bound_groups(syntax, scope, windows, expressions)
    except SqlError as problem:
        expressions.problems.append(problem)
        return None
    return found if len(expressions.problems) == before else None


def _bound_groups(
    syntax: SelectSyntax, scope: Scope, windows: Mapping[str, int | None], expressions: ExpressionBinder
) -> BoundGroups | None:
    items = [_item(item, expressions) for item in syntax.items]
    sets = [_sets(group, items, scope, expressions) for group in syntax.groups]
    groups = [key for each in sets for key in each.keys]
    conditions = [] if syntax.having is None else [_written(syntax.having, expressions)]
    if None not in [key.parsed for key in (*items, *groups)]:
        plain = [key for each in sets if each.kind is None for key in each.keys]
        _require_window(syntax, items if syntax.is_distinct else plain, expressions)
    written = [*items, *groups, *conditions]
    window = bind_window([each.tokens for each in written], scope, windows, expressions)
    aliases = {folded(item.alias.value) for item in items if item.alias is not None}
    bound = [_bound(each, scope, expressions, aliases if each in conditions else ()) for each in written]
    if window is None or None in bound:
        return None
    whole = [each for each in bound if each is not None]
    if isinstance(window.window, SessionWindow):
        _require_sessions_as_such(syntax, sets, expressions)
    _require_grouped(whole[: len(items)], whole[len(items) : len(items) + len(groups)], syntax, expressions)
    time = window.time
    texts = [each.over_join(ordered(each, time, window.edits, expressions.text)) for each in whole]
    found = _put_together(syntax, items, sets, whole, texts, window)
    time_of = scope.relation(time.relation)
    time_column = None if time_of is None else time_of.column(time.column)
    columns, end = group_columns(
        [(name, each) for name, each in zip(found.aggregation.names, whole, strict=False)],
        None if time_column is None else time_column.type,
    )
    return replace(found, aggregation=replace(found.aggregation, columns=columns, end=end))


def _put_together(
    syntax: SelectSyntax,
    items: Sequence[_Written],
    sets: Sequence[_Sets],
    bound: Sequence[BoundExpression],
    texts: Sequence[JoinedExpression],
    window: FoundWindow,
) -> BoundGroups:
    rest = iter(texts[len(items) :])
    keys = [[(key, next(rest).sql) for key in each.keys] for each in sets]
    by = [each.written([sql for _, sql in written]) for each, written in zip(sets, keys, strict=True)]
    beside = [sql for written in keys for key, sql in written if not is_window(key.tokens)]
    having = list(rest)
    names = [_name(item, each) for item, each in zip(items, bound, strict=False)]
    select = [
        text.sql if item.alias is None else f"{text.sql} AS {backquoted(item.alias.value)}"
        for item, text in zip(items, texts, strict=False)
    ]
    sql = f"SELECT {'DISTINCT ' if syntax.is_distinct else ''}{_doubled(', '.join(select))} FROM {{rows}}"
    sql += f" GROUP BY {_doubled(', '.join(by))}" if by else ""
    sql += f" HAVING {_doubled(having[0].sql)}" if having else ""
    functions = dict.fromkeys(name for each in bound for name, _ in aggregate_calls(each.tokens))
    return BoundGroups(
        aggregation=Aggregation(
            window=window.window,
            sql=sql,
            names=tuple(names),
            functions=tuple(functions),
            keys=tuple(beside) if isinstance(window.window, SessionWindow) else (),
        ),
        output=[
            (OutputColumn(name=name, expression=text), item.tokens[0])
            for name, text, item in zip(names, texts, items, strict=False)
        ],
        read=tuple(dict.fromkeys([window.time, *(ref for text in texts for ref in text.columns)])),
    )


def _item(item: tuple[Token, ...], expressions: ExpressionBinder) -> _Written:
    if item[-1].is_symbol("*"):
        message = "Plait does not run '*' in a query that groups: list the groups and aggregates"
        raise expressions.text.error(message, item[0].start, UnsupportedQueryError)
    tokens, alias = without_alias(item, expressions)
    written = _written(tokens, expressions)
    if written.parsed is None or written.parsed.alias is None:
        return _Written(tokens=tokens, parsed=written.parsed, alias=alias)
    return _Written(tokens=tokens[:-1], parsed=written.parsed, alias=written.parsed.alias)


def _written(tokens: tuple[Token, ...], expressions: ExpressionBinder) -> _Written:
    return _Written(tokens=tokens, parsed=expressions.parse(tokens, groups=True))


def _sets(group: tuple[Token, ...], items: Sequence[_Written], scope: Scope, expressions: ExpressionBinder) -> _Sets:
    """Return an element of GROUP BY. Raises SqlError if it is a list of sets that cannot be read."""
    kind = group[0].keyword if len(group) > 1 and group[1].is_symbol("(") else ""
    if kind not in _KINDS:
        return _Sets(keys=(_group(group, items, scope, expressions),))
    parts = called(group)
    elements = () if parts is None else parts[1]
    if not elements or not all(elements):
        message = f"expected {kind} and what to group by in parentheses: {kind} (a, b)"
        raise expressions.text.error(message, group[0].start)
    if kind != "GROUPING SETS":
        return _Sets(keys=tuple(_group(each, items, scope, expressions) for each in elements), kind=kind)
    sets = [_listed(each) for each in elements]
    keys = tuple(_group(each, items, scope, expressions) for keys in sets for each in keys)
    return _Sets(keys=keys, kind=kind, lengths=tuple(map(len, sets)))


def keys_of(group: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """Return what an element of GROUP BY groups by: itself, or the keys that CUBE and the like list."""
    kind = group[0].keyword if len(group) > 1 and group[1].is_symbol("(") else ""
    if kind not in _KINDS:
        return [group]
    parts = called(group)
    elements = [] if parts is None else [element for element in parts[1] if element]
    return elements if kind != "GROUPING SETS" else [key for each in elements for key in _listed(each) if key]


def _listed(element: tuple[Token, ...]) -> tuple[tuple[Token, ...], ...]:
    """Return the keys of one set: ``(a, b)``, ``()`` or ``a``."""
    if not (element[0].is_symbol("(") and element[-1].is_symbol(")")):
        return (element,)
    inner = element[1:-1]
    commas = [index for index, depth, token in depths(inner) if depth == 0 and token.is_symbol(",")]
    return tuple(split(inner, commas)) if inner else ()


def _group(
    group: tuple[Token, ...], items: Sequence[_Written], scope: Scope, expressions: ExpressionBinder
) -> _Written:
    """Return what a group stands for: an item of the SELECT list, by number or alias, or itself."""
    only = group[0]
    if len(group) == 1 and only.kind == "number" and only.value.isdigit():
        if not 1 <= int(only.value) <= len(items):
            raise expressions.text.error(f"GROUP BY {only.value}: the SELECT list has {len(items)} items", only.start)
        return items[int(only.value) - 1]
    if len(group) == 1 and only.kind in ("word", "quoted") and not scope.named(only.value):
        for item in items:
            if item.alias is not None and folded(item.alias.value) == folded(only.value):
                return item
    return _written(group, expressions)


def _require_window(syntax: SelectSyntax, keys: Sequence[_Written], expressions: ExpressionBinder) -> None:
    """Refuse to group by anything without a window of time. Raises UnsupportedQueryError."""
    start = 0 if syntax.at is None else syntax.at.start
    if syntax.is_distinct and syntax.groups:
        message = (
            "Plait does not run DISTINCT beside GROUP BY: what is grouped is distinct within a window; leave it out"
        )
        raise expressions.text.error(message, start, UnsupportedQueryError)
    if any(is_window(key.tokens) for key in keys):
        return
    message = (
        "Plait does not run DISTINCT without a window of time in the SELECT list, since more could always come; write "
        "SELECT DISTINCT window(o.ts, '10 minutes') AS w, ..., with the time column of a stream"
        if syntax.is_distinct
        else f"Plait does not run GROUP BY without a window of time: a group would never be complete; write {ADVICE}"
    )
    raise expressions.text.error(message, start, UnsupportedQueryError)


def _require_sessions_as_such(syntax: SelectSyntax, sets: Sequence[_Sets], expressions: ExpressionBinder) -> None:
    """Refuse what a session, which depends on all rows with the same keys, cannot be. Raises UnsupportedQueryError."""
    if syntax.is_distinct:
        message = (
            "Plait does not run DISTINCT with session_window(): write GROUP BY session_window(o.ts, '10 minutes') and "
            "what else is in the SELECT list"
        )
        raise expressions.text.error(message, 0 if syntax.at is None else syntax.at.start, UnsupportedQueryError)
    for each, group in zip(sets, syntax.groups, strict=True):
        if each.kind is not None:
            message = (
                f"Plait does not run {each.kind} beside session_window(), where each set has sessions of its own: "
                "write a query for each set"
            )
            raise expressions.text.error(message, group[0].start, UnsupportedQueryError)
        for key in each.keys:
            if not is_window(key.tokens) and any(calls([key.tokens], NAMES)):
                message = (
                    "Plait does not group by what is computed of a session: group by session_window() itself, and "
                    "compute in the SELECT list"
                )
                raise expressions.text.error(message, key.tokens[0].start, UnsupportedQueryError)


def _bound(
    written: _Written, scope: Scope, expressions: ExpressionBinder, aliases: Collection[str]
) -> BoundExpression | None:
    """Bind an expression that may aggregate. `aliases`: names of the SELECT list that it may use besides."""
    names = [name for name in NAMES if scope.relation(name) is None]
    given = {name for name in (*names, *aliases) if not scope.named(name)}
    return expressions.bind(written.parsed, written.tokens, scope, given)


def _require_grouped(
    items: Sequence[BoundExpression],
    groups: Sequence[BoundExpression],
    syntax: SelectSyntax,
    expressions: ExpressionBinder,
) -> None:
    """Report columns that stand outside aggregates and in no group. Whether whole expressions do, Spark says."""
    if syntax.is_distinct:
        return
    grouped = {meaning.column for group in groups for _, meaning in group.meanings}
    for item in items:
        inside = [span for _, span in aggregate_calls(item.tokens)]
        for reference, meaning in item.meanings:
            if meaning.column in grouped or any(start <= reference.start < end for start, end in inside):
                continue
            message = (
                f"'{meaning.column.name}' is neither grouped by nor in an aggregate: add it to GROUP BY, or write an "
                f"aggregate such as max({meaning.column.name})"
            )
            expressions.problems.append(expressions.text.error(message, reference.start))


def _name(item: _Written, bound: BoundExpression) -> str | None:
    if item.alias is not None:
        return item.alias.value
    return item.tokens[-1].value if bound.is_column else None


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


__all__ = ["BoundGroups", "bind_groups", "keys_of"]
