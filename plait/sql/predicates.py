"""Conjuncts, sorted: a selection on one relation, an equality between two; anything else is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import ColumnRef, Equality, Operand, SourceExpression
from plait.query.types import mismatch
from plait.sql.bound import BoundExpression, column_of_source, parted
from plait.sql.conditions import equality_sides, operator_of
from plait.sql.text import SourceText
from plait.sql.tokens import Token

_ALWAYS_TRUE: Final = ("TRUE", "1 = 1", "1=1")


class Predicates:
    """What the conditions of a query amount to so far."""

    def __init__(self, text: SourceText, problems: list[SqlError]) -> None:
        self._text, self._problems = text, problems
        self._selections: dict[str, dict[SourceExpression, None]] = {}
        self._constants: dict[SourceExpression, None] = {}
        self._equalities: dict[Equality, None] = {}

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """The equalities, each once, in order of appearance."""
        return tuple(self._equalities)

    def selections(self, alias: str, *, is_first: bool) -> tuple[SourceExpression, ...]:
        """Return the selections of a relation. A condition on no relation at all selects on the first."""
        return (*(self._constants if is_first else ()), *self._selections.get(alias, ()))

    def add(self, conjunct: BoundExpression) -> None:
        """Sort a conjunct in."""
        relations = conjunct.relations
        if not relations:
            if conjunct.as_written().upper() not in _ALWAYS_TRUE:
                self._constants[conjunct.over_source()] = None
        elif len(relations) == 1:
            self._selections.setdefault(relations[0], {})[conjunct.over_source()] = None
        else:
            self._add_equality(conjunct)

    def add_merge(
        self, left: ColumnRef, left_type: str | None, right: ColumnRef, right_type: str | None, at: Token
    ) -> None:
        """Add the equality of USING or NATURAL."""
        self._check_types((left.name, left_type), (right.name, right_type), at)
        equality = Equality(
            left=Operand(relation=left.relation, expression=column_of_source(left)),
            right=Operand(relation=right.relation, expression=column_of_source(right)),
        )
        self._equalities[equality] = None

    def require_connection(self, places: Mapping[str, Token], crosses: Sequence[tuple[str, str]]) -> None:
        """Refuse a cross product that no CROSS JOIN asks for. `places`: the relations, and where they are named."""
        edges = [(equality.left.relation, equality.right.relation) for equality in self._equalities]
        parts = parted([*edges, *crosses], tuple(places))
        if len(parts) > 1:
            first, second = parts[0], parts[1]
            halves = f"{_listed(first)} with {_listed(second)}"
            message = (
                f"nothing joins {halves}; add an equality between them (such as {first[0]}.id = {second[0]}.id), "
                "or write CROSS JOIN if every pair is wanted"
            )
            self._problems.append(self._text.error(message, places[second[0]].start))

    def _add_equality(self, conjunct: BoundExpression) -> None:
        tokens = equality_sides(conjunct.tokens)
        sides = [conjunct.part(side) for side in tokens] if tokens else []
        if not sides or any(len(side.relations) != 1 for side in sides):
            self._refuse(conjunct, is_equality=bool(sides))
            return
        left, right = sides
        at = conjunct.tokens[0]
        self._check_types((left.as_written(), left.column_type), (right.as_written(), right.column_type), at)
        self._equalities[Equality(left=_operand(left), right=_operand(right))] = None

    def _check_types(self, left: tuple[str, str | None], right: tuple[str, str | None], at: Token) -> None:
        problem = mismatch(*left, *right)
        if problem is not None:
            self._report(problem, at)

    def _refuse(self, conjunct: BoundExpression, *, is_equality: bool) -> None:
        sign, written = operator_of(conjunct.tokens), conjunct.as_written()
        if is_equality:
            advice = "put everything of one relation on one side, as in a.x + 1 = b.y"
        elif sign in ("<=>", "IS"):
            advice = "use =; where NULLs should match, compare coalesce(a.x, value) = coalesce(b.x, value)"
        elif sign == "OR":
            advice = "write one CREATE QUERY for each alternative"
        elif sign is None:
            advice = "compute it on the results, where they are read"
        else:
            advice = (
                f"select both sides and apply {sign} to the results; how far apart in time rows may be is set by WINDOW"
            )
        between = f"'{written}' between {_listed(conjunct.relations)}"
        message = f"Plait does not run the theta join {between}: it joins on equal keys only; {advice}"
        self._report(message, conjunct.tokens[0], UnsupportedQueryError)

    def _report(self, message: str, at: Token, kind: type[SqlError] = SqlError) -> None:
        self._problems.append(self._text.error(message, at.start, kind))


def _operand(side: BoundExpression) -> Operand:
    return Operand(relation=side.relations[0], expression=side.over_source())


def _listed(aliases: tuple[str, ...]) -> str:
    quoted = [f"'{alias}'" for alias in aliases]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"
