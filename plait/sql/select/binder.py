"""From the text of a SELECT to a `Query`: names resolved, conditions sorted into selections and join predicates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from plait.errors import SqlError
from plait.query.model import Query, Relation, SinkSpec, Source, SourceExpression, Stream
from plait.query.partners import with_waiting
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.functions import IsFunction
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.names import backquoted, did_you_mean, doubled, folded, naming_problem
from plait.sql.lexis.text import MergedText, SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.predicates.sorting import Predicates
from plait.sql.select.from_clause import FromClause, bind_from
from plait.sql.select.grouping import bind_groups
from plait.sql.select.merge_views import merge_views
from plait.sql.select.outer_joins import grouped, with_joins
from plait.sql.select.output import bind_output, refuse_equal_names, refuse_unwritable
from plait.sql.select.select_text import select_tokens
from plait.sql.select.syntax import RelationSyntax, parse_select
from plait.sql.select.take_apart import Views
from plait.sql.select.view_parts import View
from plait.sql.select.where_clause import bind_where
from plait.sql.select.where_tests import split_where
from plait.sql.statements import CreateQuery, WindowOverride

_Edits: TypeAlias = dict[int, tuple[int, str]]
"""Where a piece of the text starts, where it ends, and what Spark is told in its place."""


def bind_query(
    *,
    name: str,
    select: str,
    sink: SinkSpec,
    sources: Mapping[str, Source],
    windows: Mapping[str, int | None] | None = None,
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
    views: Iterable[View] = (),
    file: str | None = None,
    line: int = 1,
    column: int = 1,
) -> Query:
    """Bind a SELECT to the streams and tables it reads, itself or through `views`.

    `windows` overrides windows by alias, in microseconds, None for unbounded. `predicates`: the names that may be
    called as join predicates although Spark does not know them (`Engine.predicate`). `is_function` is asked about names
    that are no built-in functions of Spark. `line` and `column`: where the
    text starts in `file`. Raises the first mistake: SqlError, or UnsupportedQueryError for what Plait does not run.
    """
    statement = CreateQuery(
        name=name,
        sink=sink,
        windows=tuple(WindowOverride(alias=alias, window_us=length) for alias, length in (windows or {}).items()),
        select=select,
        select_line=line,
        select_column=column,
        line=line,
        column=column,
    )
    query, problems = bind_statement(
        statement, sources, views=views, file=file, predicates=predicates, is_function=is_function
    )
    if problems:
        raise problems[0]
    assert query is not None
    return query


def bind_statement(
    statement: CreateQuery,
    sources: Mapping[str, Source],
    *,
    views: Iterable[View] = (),
    file: str | None = None,
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
) -> tuple[Query | None, tuple[SqlError, ...]]:
    """Bind a query and return it, or everything that is wrong with it, in order of appearance."""
    text = SourceText(text=statement.select, file=file, line=statement.select_line, column=statement.select_column)
    known, problems = Views(views, sources, tuple(predicates), is_function), list[SqlError]()
    query = None
    try:
        merged = merge_views(text, statement.windows, known, problems)
        if merged is not None:
            binder = _Binder(replace(statement, windows=merged[1]), merged[0], tuple(predicates), is_function, problems)
            query = binder.bind(sources)
    except SqlError as problem:
        problems.append(problem)
    told = _in_order(problems)
    return (None, told) if told else (query, ())


def view_problems(
    view: View,
    sources: Mapping[str, Source],
    *,
    views: Iterable[View],
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
) -> tuple[SqlError, ...]:
    """Return everything that is wrong with a view by itself, in order of appearance. What can only be told of a query
    that reads it, such as how long its rows wait, is not.
    """
    known, problems = Views(views, sources, tuple(predicates), is_function), list[SqlError]()
    known.taken_apart(view, problems)
    if not problems:
        statement = CreateQuery(
            name=view.name,
            sink=SinkSpec(format="noop"),
            windows=view.windows,
            select=view.text.text,
            select_line=view.text.line,
            select_column=view.text.column,
            line=view.text.line,
            column=view.text.column,
        )
        try:
            merged = merge_views(view.text, view.windows, known, problems)
            if merged is not None:
                inner = replace(statement, windows=merged[1])
                _Binder(inner, merged[0], tuple(predicates), is_function, problems, is_view=True).bind(sources)
        except SqlError as problem:
            problems.append(problem)
    return _in_order(problems)


def _in_order(problems: Iterable[SqlError]) -> tuple[SqlError, ...]:
    """Return problems in order of appearance, each once: of a view that is read twice each is found twice."""
    distinct = {str(problem): problem for problem in problems}
    return tuple(sorted(distinct.values(), key=lambda problem: (problem.line or 0, problem.column or 0)))


class _Binder:
    def __init__(
        self,
        statement: CreateQuery,
        text: SourceText,
        registered: Sequence[str],
        is_function: IsFunction | None,
        problems: list[SqlError],
        *,
        is_view: bool = False,
    ) -> None:
        self.problems = problems
        self._statement, self._text, self._registered = statement, text, registered
        self._is_function, self._is_view = is_function, is_view

    def bind(self, sources: Mapping[str, Source]) -> Query | None:
        problem = naming_problem("query", self._statement.name)
        if problem:
            raise SqlError(problem, line=self._statement.line, column=self._statement.column, file=self._text.file)
        masked, tokens = select_tokens(self._text)
        cursor = Cursor(self._text, masked, tokens, tokens[-1].end)
        syntax = parse_select(cursor)
        written = split_where(cursor, syntax)
        relations = (*syntax.relations, *(test.relation for test in written.tests))
        expressions = ExpressionBinder(self._text, masked, self.problems, self._registered, self._is_function)
        clause = bind_from(relations, sources, expressions, self._new_predicates, is_view=self._is_view)
        if clause is None:
            return None  # with a relation missing, its columns would only be reported over and over
        where, tested = bind_where(syntax, written, tokens, clause, expressions, self._new_predicates())
        predicates = self._new_predicates()
        for each in (*(join.predicates for join in clause.joins), where):
            predicates.absorb(each)
        windows = self._windows(clause)
        groups = None if syntax.at is None else bind_groups(syntax, clause.scope, windows, expressions)
        plain = [] if syntax.at is not None else bind_output(syntax.items, clause.scope, expressions)
        output = plain if groups is None else groups.output
        refuse_equal_names(output, self._statement.sink, expressions)
        refuse_unwritable(output, clause.scope, self._statement.sink, expressions)
        if not self.problems:
            predicates.require_connection(clause.places, clause.crosses)
        if self.problems or self._is_view:
            return None
        query = Query(
            name=self._statement.name,
            relations=_relations(clause, predicates.selections(tuple(windows)), windows),
            predicates=predicates.joins,
            output=tuple(column for column, _ in output) if groups is None else groups.joined,
            aggregation=None if groups is None else groups.aggregation,
            sink=self._statement.sink,
            text=self._text.text[tokens[0].start : tokens[-1].end],
            spark_text=_spark_text(
                self._text.text,
                tokens,
                _relation_edits(syntax.relations, clause) | _call_edits(expressions) | predicates.rewritten,
                tested,
            ),
            place=self._text.text_place(tokens[0].start),
            places=self._text.pieces if isinstance(self._text, MergedText) else (),
        )
        asked_at = syntax.where[0] if syntax.where else None
        query = with_waiting(with_joins(query, clause, where, asked_at, self._text))
        return query if syntax.at is None else grouped(query, self._text.text_place(syntax.at.start))

    def _new_predicates(self) -> Predicates:
        return Predicates(self._text, self.problems, self._registered)

    def _windows(self, clause: FromClause) -> dict[str, int | None]:
        windows = {
            relation.alias: relation.source.window_us if isinstance(relation.source, Stream) else None
            for relation in clause.relations
        }
        for override in self._statement.windows:
            named = (each for each in clause.relations if folded(each.alias) == folded(override.alias))
            relation = next(named, None)
            if relation is None:
                hint = did_you_mean(override.alias, windows)
                self._report(override, f"WINDOW names '{override.alias}', which is no relation of the query{hint}")
            elif not isinstance(relation.source, Stream):
                self._report(override, f"'{override.alias}' is a table, which has no window; remove it from WINDOW")
            elif override.window_us is not None and override.window_us <= 0:
                self._report(override, f"the window of '{override.alias}' must be longer than zero")
            else:
                windows[relation.alias] = override.window_us
        return windows

    def _report(self, override: WindowOverride, message: str) -> None:
        line, column = override.line or self._statement.line, override.column or self._statement.column
        self.problems.append(SqlError(message, line=line, column=column, file=self._text.file))


def _relations(
    clause: FromClause, selections: Sequence[tuple[SourceExpression, ...]], windows: Mapping[str, int | None]
) -> tuple[Relation, ...]:
    return tuple(
        Relation(
            alias=relation.alias,
            source=relation.source.name,
            is_table=not isinstance(relation.source, Stream),
            window_us=windows[relation.alias],
            selections=selected,
        )
        for relation, selected in zip(clause.relations, selections, strict=True)
    )


def _relation_edits(relations: Sequence[RelationSyntax], clause: FromClause) -> _Edits:
    """Put ``{name}`` for each source, and an alias where there is none, so that qualified names still resolve."""
    edits = {}
    for relation, bound in zip(relations, clause.relations, strict=False):  # what WHERE looks into comes last
        alias = "" if relation.alias else f" AS {backquoted(bound.alias)}"
        edits[relation.source.start] = (relation.source.end, "{" + bound.source.name + "}" + alias)
    return edits


def _call_edits(expressions: ExpressionBinder) -> _Edits:
    """Put ``(a.x, b.x) IS NOT NULL`` for ``similar(a.x, b.x)``: Spark does not know registered predicates, but should
    still look at the arguments.
    """
    edits = {call[0].start: (call[0].end, "") for call in expressions.registered_calls}
    return edits | {call[-1].start: (call[-1].end, ") IS NOT NULL") for call in expressions.registered_calls}


def _spark_text(text: str, tokens: Sequence[Token], edits: _Edits, tests: _Edits) -> str:
    """Return the text with these edits. `tests`: what is put for EXISTS and IN, where braces are doubled already."""
    pieces: list[str] = []
    position = tokens[0].start
    for start, (end, new) in sorted((edits | tests).items()):
        if start < position:
            continue  # inside of what a test has been put for
        is_final = new.startswith("{") or start in tests
        pieces += (doubled(text[position:start]), new if is_final else doubled(new))
        position = end
    pieces.append(doubled(text[position : tokens[-1].end]))
    return "".join(pieces)
