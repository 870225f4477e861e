"""Conjuncts, sorted: a selection on one relation, an equality between two, or a residual predicate of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.graph import QueryGraph
from plait.query.model import ColumnRef, Operand, SourceExpression, relations_of
from plait.query.predicates import Conjunction, Equality, Residual
from plait.query.types import mismatch
from plait.sql.expressions.bound import BoundExpression, column_of_source, operand
from plait.sql.expressions.inference import BOOLEAN, inferred_type
from plait.sql.lexis.literals import NOTHING
from plait.sql.lexis.operations import equality_sides, named_call, taken_apart
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token, without_outer_parentheses
from plait.sql.predicates.residual_writer import ResidualWriter
from plait.sql.predicates.rows import row_pairs, without_null

_ALWAYS_TRUE: Final = ("TRUE", "1 = 1", "1=1")


class Predicates:
    """What the conditions of a query amount to so far."""

    def __init__(self, text: SourceText, problems: list[SqlError], registered: Sequence[str] = ()) -> None:
        self._text, self._problems, self._registered = text, problems, registered
        self.rewritten: dict[int, tuple[int, str]] = {}
        """What Spark is told in the place of a comparison of rows, which it refuses where names and types differ."""
        self._selections: dict[str, dict[SourceExpression, None]] = {}
        self._constants: dict[SourceExpression, None] = {}
        self._equalities: dict[Equality[Operand], None] = {}
        self._residuals: dict[Residual[Operand], None] = {}

    @property
    def joins(self) -> Conjunction[Operand]:
        """The join predicates, each once: equalities, then the others, in order of appearance."""
        return (*self._equalities, *self._residuals)

    def selections(self, aliases: Sequence[str]) -> tuple[tuple[SourceExpression, ...], ...]:
        """Return the selections of each relation. A condition on no relation at all selects on the first."""
        return tuple(
            (*(self._constants if position == 0 else ()), *self._selections.get(alias, ()))
            for position, alias in enumerate(aliases)
        )

    def conditions(self, alias: str) -> tuple[tuple[str, SourceExpression], ...]:
        """Return the conditions on one relation, each with its alias; those on none with this one."""
        own = ((each, condition) for each, found in self._selections.items() for condition in found)
        return (*((alias, condition) for condition in self._constants), *own)

    def absorb(self, other: Predicates) -> None:
        """Take over what other conditions of the same query amount to."""
        self.rewritten.update(other.rewritten)
        self._constants.update(other._constants)
        self._equalities.update(other._equalities)
        self._residuals.update(other._residuals)
        for alias, found in other._selections.items():
            self._selections.setdefault(alias, {}).update(found)

    def add_equality(self, left: BoundExpression, right: BoundExpression, at: Token) -> None:
        """Add ``left = right``, the two sides of IN (SELECT ...)."""
        if len(left.relations) != 1 or len(right.relations) != 1:
            message = "both sides of IN (SELECT ...) must be of one relation each; write EXISTS (SELECT ... WHERE ...)"
            self._report(message, at, UnsupportedQueryError)
            return
        types = (left.as_written(), inferred_type(left)), (right.as_written(), inferred_type(right))
        self._check_types(*types, left.tokens[0])
        self._add_typed(operand(left), operand(right), at)

    def add(self, conjunct: BoundExpression) -> None:
        """Sort a conjunct in."""
        relations = conjunct.relations
        if not self._is_condition(conjunct):
            return
        call = named_call(conjunct.tokens, self._registered)
        if call is not None:
            self._add_call(call[0], conjunct, [conjunct.part(argument) for argument in call[1] if argument])
        elif self._add_rows(conjunct):
            pass
        elif not relations:
            if conjunct.as_written().upper() not in _ALWAYS_TRUE:
                self._constants[conjunct.over_source()] = None
        elif len(relations) == 1:
            self._selections.setdefault(relations[0], {})[conjunct.over_source()] = None
        else:
            try:
                self._add_join(conjunct)
            except SqlError as problem:
                self._problems.append(problem)

    def add_merge(
        self, left: ColumnRef, left_type: str | None, right: ColumnRef, right_type: str | None, at: Token
    ) -> None:
        """Add the equality of USING or NATURAL."""
        self._check_types((left.name, left_type), (right.name, right_type), at)
        one, other = (Operand(relation=side.relation, expression=column_of_source(side)) for side in (left, right))
        self._add_typed(one, other, at)

    def require_connection(self, places: Mapping[str, Token], crosses: Sequence[tuple[str, str]]) -> None:
        """Refuse a cross product that no CROSS JOIN asks for. `places`: the relations, and where they are named."""
        graph = QueryGraph(aliases=tuple(places), pairs=(*map(relations_of, self.joins), *crosses))
        if len(graph.components) > 1:
            first, second = (tuple(alias for alias in places if alias in part) for part in graph.components[:2])
            halves = f"{_listed(first)} with {_listed(second)}"
            message = (
                f"nothing joins {halves}; add a condition on both (such as {first[0]}.id = {second[0]}.id), "
                "or write CROSS JOIN if every pair is wanted"
            )
            self._problems.append(self._text.error(message, places[second[0]].start))

    def _add_call(self, name: str, conjunct: BoundExpression, arguments: Sequence[BoundExpression]) -> None:
        relations = conjunct.relations
        try:
            if len(relations) != 2:
                found = _listed(relations) if relations else "no relation"
                message = f"the registered predicate {name}() joins two relations, but its arguments are of {found}"
                advice = "pass it expressions of two relations, and write what concerns one in plain SQL"
                raise self._text.error(f"{message}; {advice}", conjunct.tokens[0].start, UnsupportedQueryError)
            self._add_residual(ResidualWriter(self._text).call(name, arguments), conjunct.tokens[0])
        except SqlError as problem:
            self._problems.append(problem)

    def _is_condition(self, conjunct: BoundExpression) -> bool:
        """Refuse a conjunct of another type than boolean, as far as types are known."""
        type_ = inferred_type(conjunct)
        if type_ in (None, BOOLEAN, NOTHING):
            return True
        written = conjunct.as_written()
        message = (
            f"'{written}' has type {type_}, where a condition must be true or false; compare it with something, such "
            f"as {written} IS NOT NULL"
        )
        self._report(message, without_outer_parentheses(conjunct.tokens)[0])
        return False

    def _add_rows(self, conjunct: BoundExpression) -> bool:
        """Add a comparison of rows, ``(a.k, a.s) = (b.k, b.s)``, field by field; tell whether it is one."""
        try:
            pairs = row_pairs(conjunct, self._text)
            for left, right in pairs or ():
                self._add_null_safe(left, right)
            if pairs is not None:
                fields = (f"({left.as_written()}) <=> ({right.as_written()})" for left, right in pairs)
                self.rewritten[conjunct.tokens[0].start] = (conjunct.tokens[-1].end, f"({' AND '.join(fields)})")
        except SqlError as problem:
            self._problems.append(problem)
            return True
        return pairs is not None

    def _add_null_safe(self, left: BoundExpression, right: BoundExpression) -> None:
        """Add ``left <=> right``; of known types as two equalities, which an index looks up."""
        if {*left.relations} | {*right.relations} in ({*left.relations}, {*right.relations}) or not (
            len(left.relations) == len(right.relations) == 1
        ):
            self._add_bound(left, "<=>", right)
            return
        types = inferred_type(left), inferred_type(right)
        self._check_types((left.as_written(), types[0]), (right.as_written(), types[1]), left.tokens[0])
        sides = [
            without_null(side, type_) if type_ is not None else None
            for side, type_ in zip((left, right), types, strict=True)
        ]
        if sides[0] is None or sides[1] is None:
            self._add_bound(left, "<=>", right)
            return
        for one, other in zip(sides[0], sides[1], strict=True):
            self._add_typed(one, other, left.tokens[0])

    def _add_join(self, conjunct: BoundExpression) -> None:
        operation = taken_apart(conjunct.text, conjunct.tokens)
        tokens = equality_sides(conjunct.tokens)
        sides = [conjunct.part(side) for side in tokens] if tokens else []
        if operation is not None and operation.kind == "BETWEEN":
            value, low, high = (conjunct.part(part) for part in operation.parts)
            self._add_bound(value, ">=", low)
            self._add_bound(value, "<=", high)
        elif sides and all(len(side.relations) == 1 for side in sides):
            left, right = sides
            types = (left.as_written(), inferred_type(left)), (right.as_written(), inferred_type(right))
            self._check_types(*types, conjunct.tokens[0])
            self._add_typed(operand(left), operand(right), conjunct.tokens[0])
        else:
            self._require_two(conjunct)
            writer = ResidualWriter(self._text)
            self._add_residual(writer.residual(writer.written(conjunct)), conjunct.tokens[0])
            self.rewritten.update(writer.rewritten)

    def _add_typed(self, left: Operand, right: Operand, at: Token) -> None:
        self._equalities[Equality(left=left, right=right, place=self._text.text_place(at.start))] = None

    def _add_residual(self, residual: Residual[Operand], at: Token) -> None:
        self._residuals[replace(residual, place=self._text.text_place(at.start))] = None

    def _add_bound(self, value: BoundExpression, sign: str, bound: BoundExpression) -> None:
        """Add one half of ``value BETWEEN bound AND bound``."""
        relations = tuple(dict.fromkeys((*value.relations, *bound.relations)))
        if len(relations) > 1:
            self._require_two(value, bound)
            writer = ResidualWriter(self._text)
            comparison = f"({writer.written(value)} {sign} {writer.written(bound)})"
            self._add_residual(writer.residual(comparison), value.tokens[0])
            return
        left, right = value.over_source(), bound.over_source()
        columns = tuple(dict.fromkeys((*left.columns, *right.columns)))
        selection = SourceExpression(sql=f"({left.sql}) {sign} ({right.sql})", columns=columns)
        if relations:
            self._selections.setdefault(relations[0], {})[selection] = None
        else:
            self._constants[selection] = None

    def _require_two(self, *parts: BoundExpression) -> None:
        """Refuse a condition on three relations or more, which no step of a join could check."""
        relations = tuple(dict.fromkeys(alias for part in parts for alias in part.relations))
        if len(relations) > 2:
            written = " and ".join(f"'{part.as_written()}'" for part in parts)
            message = (
                f"Plait joins two relations by one condition, but {written} needs {_listed(relations)}; "
                "write it as conditions on two relations each, joined by AND, or compute it on the results"
            )
            raise self._text.error(message, parts[0].tokens[0].start, UnsupportedQueryError)

    def _check_types(self, left: tuple[str, str | None], right: tuple[str, str | None], at: Token) -> None:
        problem = mismatch(*left, *right)
        if problem is not None:
            self._report(problem, at)

    def _report(self, message: str, at: Token, kind: type[SqlError] = SqlError) -> None:
        self._problems.append(self._text.error(message, at.start, kind))


def _listed(aliases: tuple[str, ...]) -> str:
    quoted = [f"'{alias}'" for alias in aliases]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"
