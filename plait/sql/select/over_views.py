"""One SELECT over streams, tables and views: its names resolved, its relations taken apart into streams and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plait.errors import UnsupportedQueryError
from plait.query.model import ColumnRef
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, TESTS
from plait.query.places import TextPlace
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.scope import SchemaUnknownError, Scope
from plait.sql.expressions.structs import rows_of_fields
from plait.sql.lexis.names import backquoted
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.predicates.of_nothing import of_nothing
from plait.sql.predicates.sorting import Predicates
from plait.sql.select.from_clause import BoundJoin, FromClause
from plait.sql.select.join_parts import join_parts
from plait.sql.select.output import without_alias
from plait.sql.select.syntax import JoinKind
from plait.sql.select.view_parts import (
    Part,
    Pieces,
    TakenApart,
    column_at,
    enclosed,
    names_its_fields,
    pieces_of,
    said,
    sql_of,
    together,
)
from plait.sql.select.where_tests import WhereSyntax, WhereTest

_WORDS: Final[Mapping[JoinKind, str]] = {
    "inner": "JOIN",
    "cross": "CROSS JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN or EXISTS",
    "anti": "ANTI JOIN or NOT EXISTS",
}


class Collected(Predicates):
    """The conditions of a join as they are, and the pairs of columns that USING or NATURAL compares."""

    def __init__(self, text: SourceText) -> None:
        super().__init__(text, [])
        self.bound: list[BoundExpression] = []
        self.merges: list[tuple[ColumnRef, ColumnRef, Token]] = []

    def add(self, conjunct: BoundExpression) -> None:
        """Note a condition."""
        self.bound.append(conjunct)

    def add_merge(
        self, left: ColumnRef, left_type: str | None, right: ColumnRef, right_type: str | None, at: Token
    ) -> None:
        """Note two columns that are compared and shown as one."""
        self.merges.append((left, right, at))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverViews:
    """What the names of a SELECT mean. `taken`: the views among its relations, by alias, taken apart under aliases that
    no other relation has; `views`: the names of those.
    """

    text: SourceText
    masked: str
    clause: FromClause
    expressions: ExpressionBinder
    taken: Mapping[str, TakenApart]
    parts: Mapping[str, Part]
    views: Mapping[str, str]

    def part(self, written: WhereSyntax) -> tuple[Part, frozenset[str]]:
        """Return what its FROM and WHERE come to, and the relations that may have no row in what they come to.

        Raises SqlError for what no joins of streams and tables say.
        """
        part, shown, lacking = self.parts[self.clause.relations[0].alias], [self.clause.relations[0].alias], set[str]()
        for join in (join for join in self.clause.joins if not join.syntax.in_where):
            kind: JoinKind = "inner" if join.syntax.join == "comma" else join.syntax.join
            part = self._joined(part, join, kind, tuple(self._conditions(join, lacking)))
            if kind not in TESTS:
                lacking |= {join.alias} if kind in KEEPS_LEFT else set()
                lacking |= set(shown) if kind in KEEPS_RIGHT else set()
                shown.append(join.alias)
        filters = [
            self.pieces(condition, lacking)
            for conjunct in written.conditions
            if (condition := self.expressions.bind_condition(conjunct, self.clause.scope)) is not None
        ]
        part = Part(steps=part.steps, filters=(*part.filters, *filters))
        joins = {join.syntax: join for join in self.clause.joins}
        for test in written.tests:
            join = joins[test.relation]
            part = self._joined(part, join, test.relation.join, tuple(self._asked(test, join, lacking)))
        return part, frozenset(lacking)

    def _joined(self, part: Part, join: BoundJoin, kind: JoinKind, on: tuple[Pieces, ...]) -> Part:
        right = self.parts[join.alias]
        joined = join_parts(part, right, kind, on)
        if joined is None:
            self._require_schemas(part, self.text.text_place(join.syntax.source.start))
            self._require_schemas(right, self.text.text_place(join.syntax.source.start))
            raise self.text.error(self._refusal(part, join, kind), join.syntax.source.start, UnsupportedQueryError)
        return joined

    def _require_schemas(self, part: Part, place: TextPlace) -> None:
        """Raise SchemaUnknownError where the time column of a stream is not known yet, which tells whether it has a
        row.
        """
        for step in part.steps:
            if step.source.schema is None:
                raise SchemaUnknownError(
                    f"the columns of '{step.source.name}', which a view reads, are not known yet; declare its schema",
                    line=place.line,
                    column=place.column,
                    file=place.file,
                )

    def _refusal(self, part: Part, join: BoundJoin, kind: JoinKind) -> str:
        name = self.views.get(join.alias, join.alias)
        if kind in TESTS:
            return (
                f"Plait does not run {_WORDS[kind]} with view '{name}', which joins several relations: write one for "
                "each relation, with the view's conditions"
            )
        if kind == "full" and 1 in (len(part.steps), len(self.parts[join.alias].steps)):
            return (
                "Plait does not run FULL JOIN of these views: a condition in WHERE of one is of several relations, or "
                "of a table, and cannot be told of rows without a partner; write it where the results are read"
            )
        return (
            f"Plait does not run {_WORDS[kind]} with view '{name}', which joins several relations, after other joins: "
            f"put it first, FROM {name}, and join the others to it one by one"
        )

    def _conditions(self, join: BoundJoin, lacking: Collection[str]) -> Iterator[Pieces]:
        assert isinstance(join.predicates, Collected)
        for left, right, at in join.predicates.merges:
            place = self.text.text_place(at.start)
            sides = (self.column(side, lacking, place) for side in (left, right))
            yield together([enclosed(side) for side in sides], " = ")
        for condition in join.predicates.bound:
            yield self.pieces(condition, lacking)

    def _asked(self, test: WhereTest, join: BoundJoin, lacking: Collection[str]) -> Iterator[Pieces]:
        """Yield what WHERE asks of a relation that it looks into."""
        inner = Scope.of(next(each for each in self.clause.relations if each.alias == join.alias))
        scope = self.clause.scope.around(inner)
        for item in test.listed:
            if not item[-1].is_symbol("*"):
                named, _ = without_alias(item, self.expressions)
                self.expressions.bind(self.expressions.parse(named), named, scope)
        for conjunct in test.conditions:
            condition = self.expressions.bind_condition(conjunct, scope)
            if condition is not None:
                yield self.pieces(condition, lacking)
        if test.compared is not None:
            left = self.expressions.bind_condition(test.compared[0], self.clause.scope)
            right = self.expressions.bind_condition(test.compared[1], inner)
            if left is not None and right is not None:
                yield together([enclosed(self.pieces(side, lacking)) for side in (left, right)], " = ")

    def pieces(
        self,
        bound: BoundExpression,
        lacking: Collection[str],
        replaced: Mapping[int, tuple[int, Pieces]] | None = None,
        *,
        is_item: bool = False,
    ) -> Pieces:
        """Return an expression over streams and tables. `lacking`: the relations that may have no row where it stands;
        `replaced`: what else stands for something; `is_item`: rows in it are structs, whose fields have names.
        """
        new: dict[int, tuple[int, Pieces]] = {}
        for reference, meaning in bound.meanings:
            place = self.text.text_place(reference.start)
            columns = [enclosed(self.column(column, lacking, place)) for column in meaning.columns]
            coalesced = (*said("coalesce(", place), *together(columns, ", "), *said(")", place))
            new[reference.start] = (reference.ends[meaning.used - 1], columns[0] if len(columns) == 1 else coalesced)
        for arguments in rows_of_fields(bound.tokens):
            if is_item or names_its_fields(bound, arguments):
                new |= dict(self._named(bound, arguments, new))
        return pieces_of(self.text, self.masked, bound.tokens, {**new, **(replaced or {})})

    def _named(
        self,
        bound: BoundExpression,
        arguments: Sequence[tuple[Token, ...]],
        new: Mapping[int, tuple[int, Pieces]],
    ) -> Iterator[tuple[int, tuple[int, Pieces]]]:
        """Yield the fields of a struct that are columns with the names they have here."""
        for argument in arguments:
            part = bound.part(argument)
            if argument and part.is_whole_column:
                reference = part.meanings[0][0]
                field = said(f" AS {backquoted(reference.parts[-1])}", self.text.text_place(reference.start))
                yield argument[0].start, (argument[-1].end, (*new[reference.start][1], *field))

    def column(self, column: ColumnRef, lacking: Collection[str], place: TextPlace) -> Pieces:
        """Return what a column of a relation is. Raises UnsupportedQueryError where that cannot be said of rows in
        which the view has no part.
        """
        view = self.taken.get(column.relation)
        if view is None:
            return column_at(column, place)
        shown = view.column(column.column)
        assert shown is not None, column
        pieces = tuple(replace(piece, place=place) for piece in shown.pieces)
        if column.relation not in lacking or of_nothing(sql_of(pieces)) == "null":
            return pieces
        presence = view.part.presence
        if presence is None:
            self._require_schemas(view.part, place)
            name = self.views[column.relation]
            raise UnsupportedQueryError(
                f"Plait does not run '{column.name}' of view '{name}', which may have no row here: it is computed, and "
                "would not be NULL then; show the columns it is computed from, and compute it in the query",
                line=place.line,
                column=place.column,
                file=place.file,
            )
        has_row = (*said("CASE WHEN ", place), *column_at(presence, place), *said(" IS NOT NULL THEN ", place))
        return (*has_row, *pieces, *said(" END", place))


__all__ = ["Collected", "OverViews"]
