"""A SELECT over streams and tables as a `Query`: names resolved, conditions sorted into selections and predicates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from plait.errors import SqlError
from plait.query.model import Query, Relation, Source, SourceExpression, Stream, changes
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
from plait.sql.select.outer_joins import grouped, with_joins
from plait.sql.select.output import bind_output, refuse_equal_names, refuse_unwritable
from plait.sql.select.select_text import select_tokens
from plait.sql.select.syntax import RelationSyntax, parse_select
from plait.sql.select.where_clause import bind_where
from plait.sql.select.where_tests import split_where
from plait.sql.statements import CreateQuery, WindowOverride

_Edits: TypeAlias = dict[int, tuple[int, str]]
"""Where a piece of the text starts, where it ends, and what Spark is told in its place."""


class StatementBinder:
    """Binds a SELECT over streams and tables alone. What is wrong goes to `problems`, for a view that alone."""

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

    def bind(self, sources: Mapping[str, Source], views: Collection[str] = ()) -> Query | None:
        """Return the query; None if something is wrong with it. Raises SqlError where reading on makes no sense.
        `views`: what else there is, for advice.
        """
        problem = None if self._is_view else naming_problem("query", self._statement.name)
        if problem:
            raise SqlError(problem, line=self._statement.line, column=self._statement.column, file=self._text.file)
        masked, tokens = select_tokens(self._text)
        cursor = Cursor(self._text, masked, tokens, tokens[-1].end)
        syntax = parse_select(cursor)
        written = split_where(cursor, syntax)
        relations = (*syntax.relations, *(test.relation for test in written.tests))
        expressions = ExpressionBinder(self._text, masked, self.problems, self._registered, self._is_function)
        clause = bind_from(relations, sources, expressions, self._new_predicates, is_view=self._is_view, views=views)
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
        if self.problems or self._is_view or (syntax.at is not None and groups is None):
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
        streams = {each.alias: each.source for each in clause.relations if isinstance(each.source, Stream)}
        windows = {each.alias: _own_window(streams, each.alias) for each in clause.relations}
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


def _own_window(streams: Mapping[str, Stream], alias: str) -> int | None:
    """Return the window that a relation has by itself. Groups of another query have none; those that are joined with no
    other stream need not be kept at all.
    """
    stream = streams.get(alias)
    if stream is None:
        return None
    return 0 if stream.derived is not None and len(streams) == 1 else stream.window_us


def _relations(
    clause: FromClause, selections: Sequence[tuple[SourceExpression, ...]], windows: Mapping[str, int | None]
) -> tuple[Relation, ...]:
    return tuple(
        Relation(
            alias=relation.alias,
            source=relation.source.name,
            is_table=not isinstance(relation.source, Stream),
            changes=changes(relation.source),
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


__all__ = ["StatementBinder"]
