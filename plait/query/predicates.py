"""What joins two relations: an equality, a band, or anything else that has to be evaluated.

The three are generic over where their operands stand, because the same predicate is asked about in several places: in a
query an operand is an expression of a relation, on a probe path a column of the tuple at a position, in an intermediate
store a column of a part. `mapped` takes a predicate from one place to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeAlias, TypeVar

from typing_extensions import assert_never

from plait.query.places import TextPlace

At = TypeVar("At")
Other = TypeVar("Other")

Order: TypeAlias = Literal["integer", "double"]
"""How an int64 key stands for the order of its values: it is their number (days, microseconds) itself, or
`plait.kernels.bands.ordered_int64` of a double.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality(Generic[At]):
    """``left = right``. `place`: where the user wrote it, as long as it is a query's."""

    left: At
    right: At
    place: TextPlace | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band(Generic[At]):
    """``low ≤ right − left ≤ high``, None where there is no such bound; `order` is that of both keys.

    The bounds are closed: whole numbers, days, microseconds, or doubles, which may be a little wide. NaN is larger than
    anything else and equal to itself, as in Spark. NULLs lie within no bounds.
    """

    left: At
    right: At
    order: Order
    low: float | None = None
    high: float | None = None

    def turned(self) -> Band[At]:
        """Return the same seen from the other side."""
        return replace(self, left=self.right, right=self.left, low=negated(self.high), high=negated(self.low))

    def within(self, other: Band[At]) -> Band[At]:
        """Return the bounds of both."""
        return replace(
            self,
            low=max((bound for bound in (self.low, other.low) if bound is not None), default=None),
            high=min((bound for bound in (self.high, other.high) if bound is not None), default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual(Generic[At]):
    """What no key decides: `sql` holds of columns ``"0"``, ``"1"``, ..., of which the n-th is ``operands[n]``.

    It is DuckDB SQL, or with `is_function` the name of a registered predicate. `text` is the same as Spark SQL over
    columns `` `0` ``, `` `1` ``, ..., every operation in parentheses: what the user wrote, and `sql` too as long as
    nobody has told the types of the operands. `place`: where the user wrote it, as long as it is a query's.
    """

    operands: tuple[At, ...]
    sql: str
    text: str
    is_function: bool = False
    place: TextPlace | None = field(default=None, compare=False, repr=False)

    def moved(self, to: Callable[[At], Other]) -> Residual[Other]:
        """Return the predicate with its operands somewhere else."""
        operands = tuple(map(to, self.operands))
        return Residual(operands=operands, sql=self.sql, text=self.text, is_function=self.is_function)


Predicate: TypeAlias = Equality[At] | Band[At] | Residual[At]
Conjunction: TypeAlias = tuple[Predicate[At], ...]
"""Predicates that all hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByKind(Generic[At]):
    """The predicates of a conjunction, each kind in the order they had."""

    equalities: tuple[Equality[At], ...]
    bands: tuple[Band[At], ...]
    residuals: tuple[Residual[At], ...]


def by_kind(conjunction: Iterable[Predicate[At]]) -> ByKind[At]:
    """Return the predicates of each kind."""
    equalities: list[Equality[At]] = []
    bands: list[Band[At]] = []
    residuals: list[Residual[At]] = []
    for predicate in conjunction:
        match predicate:
            case Equality():
                equalities.append(predicate)
            case Band():
                bands.append(predicate)
            case Residual():
                residuals.append(predicate)
            case _:
                assert_never(predicate)
    return ByKind(equalities=tuple(equalities), bands=tuple(bands), residuals=tuple(residuals))


def operands_of(predicate: Predicate[At]) -> tuple[At, ...]:
    """Return all that a predicate reads."""
    match predicate:
        case Equality() | Band():
            return predicate.left, predicate.right
        case Residual():
            return predicate.operands
        case _:
            assert_never(predicate)


def with_sides(predicate: Equality[At] | Band[At], left: Other, right: Other) -> Equality[Other] | Band[Other]:
    """Return the predicate between two other operands."""
    match predicate:
        case Equality():
            return Equality(left=left, right=right)
        case Band():
            return Band(left=left, right=right, order=predicate.order, low=predicate.low, high=predicate.high)
        case _:
            assert_never(predicate)


def mapped(predicate: Predicate[At], to: Callable[[At], Other]) -> Predicate[Other]:
    """Return the predicate with its operands somewhere else.

    >>> mapped(Band(left="a.x", right="b.x", order="integer", low=0), str.upper)
    Band(left='A.X', right='B.X', order='integer', low=0, high=None)
    """
    match predicate:
        case Equality() | Band():
            return with_sides(predicate, to(predicate.left), to(predicate.right))
        case Residual():
            return predicate.moved(to)
        case _:
            assert_never(predicate)


def negated(bound: float | None) -> float | None:
    """Return the bound of the opposite difference."""
    return None if bound is None else -bound
