"""Statistics the optimizer plans with.

|R| (rows in the window) is rate times window for a stream with a window, the rows seen so far for a table or an
unbounded stream. The selectivity of an equality is measured, or else 1 / max(distinct left, distinct right). Unknown
is None; the optimizer, not this module, decides what to assume then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatistics:
    """One source. `rate_rows_per_s` per second of event time; `rows` in total; `distinct` by canonical key
    (`KeyColumn.name`, or a bare column name where declared); `selectivity` by ``Selection.sql``.
    """

    source: str
    rate_rows_per_s: float | None = None
    rows: float | None = None
    distinct: tuple[tuple[str, float], ...] = ()
    selectivity: tuple[tuple[str, float], ...] = ()
    _distinct: Mapping[str, float] = field(init=False, repr=False, compare=False)
    _selectivity: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distinct", dict(self.distinct))
        object.__setattr__(self, "_selectivity", dict(self.selectivity))

    def distinct_of(self, name: str) -> float | None:
        """Return how many values a key or column has, None if nobody knows."""
        return self._distinct.get(name)

    def selectivity_of(self, sql: str) -> float | None:
        """Return the share of rows that pass a selection, None if nobody knows."""
        return self._selectivity.get(sql)


Side: TypeAlias = tuple[str, str]
"""(source, key name): one side of an equality."""


KEY_SEPARATOR = "\x1f"
"""Stands between the key names of a side where several equalities hold at once."""


def conjunction(pairs: Iterable[tuple[Side, Side]]) -> tuple[Side, Side]:
    """Return equalities between two sources, which hold at once, as one: the keys of each side together.

    The sides are in order of their sources and the keys in the order of the first side, whichever way round they came.

    >>> conjunction([(("s", "b"), ("r", "y")), (("s", "a"), ("r", "x"))]) == (("r", "x\x1fy"), ("s", "a\x1fb"))
    True
    """
    ordered = sorted((left, right) if left[0] <= right[0] else (right, left) for left, right in pairs)
    sides = tuple((own[0][0], KEY_SEPARATOR.join(key for _, key in own)) for own in zip(*ordered, strict=True))
    return sides[0], sides[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSelectivity:
    """The measured selectivity, over pairs, of an equality or of several at once (`conjunction`), and from how many
    pairs it was counted, where that is known.

    The sides are in order; a join has no direction.
    """

    sides: tuple[Side, Side]
    selectivity: float
    pairs: float = field(default=math.inf, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStatistics:
    """How many distinct values of a key a store will hold (κ)."""

    store: str
    key: str
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatistics:
    """What the tuples that take a step find (`plait.plan.step_names`): `matching`, the share that matches anything (γ),
    and `matches`, how many partners one of these has (μ, at least 1). `weight`: how much that says, against other steps
    that lead to the same join: the matches it was counted from, fewer the longer ago that was.
    """

    before: str
    after: str
    matching: float
    matches: float
    weight: float = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySets:
    """A sample of the rows of a source by the selections they pass (paper 004, section 4): `sets` has for each set of
    them, bit i standing for ``selections[i]``, the number of rows that pass just these.

    >>> sample = QuerySets(source="v", selections=("a", "b", "c"), sets=((0b011, 3), (0b001, 1), (0b100, 2)))
    >>> sample.overlap(("a", "b")), sample.overlap(("a", "c")), sample.overlap(("a", "d"))
    (0.5714285714285714, 1.0, None)
    """

    source: str
    selections: tuple[str, ...]
    sets: tuple[tuple[int, int], ...]

    def rows(self, selections: Iterable[str]) -> int:
        """Return Crd: the rows that pass one of these selections at least."""
        mask = sum(1 << self.selections.index(each) for each in set(selections))
        return sum(rows for passed, rows in self.sets if passed & mask)

    def overlap(self, selections: Sequence[str]) -> float | None:
        """Return the rows that pass one of these selections as a share of what they pass each; None if the sample says
        nothing of one of them.
        """
        if not set(selections) <= set(self.selections):
            return None
        each = [self.rows((selection,)) for selection in selections]
        return self.rows(selections) / sum(each) if all(each) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """All sources, ordered by name, the equalities that were measured, ordered by their sides, the steps, ordered
    by name, the keys that stores hold, ordered by store, and samples of query sets, ordered by source. `batch_s`:
    seconds of event time that a batch brings.
    """

    sources: tuple[SourceStatistics, ...] = ()
    joins: tuple[JoinSelectivity, ...] = ()
    steps: tuple[StepStatistics, ...] = ()
    keys: tuple[KeyStatistics, ...] = ()
    batch_s: float | None = None
    query_sets: tuple[QuerySets, ...] = ()
    _by_source: Mapping[str, SourceStatistics] = field(init=False, repr=False, compare=False)
    _by_sides: Mapping[tuple[Side, Side], JoinSelectivity] = field(init=False, repr=False, compare=False)
    _by_key: Mapping[Side, float] = field(init=False, repr=False, compare=False)
    _joined: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_joined", frozenset(each.before for each in self.steps))
        object.__setattr__(self, "_by_source", {each.source: each for each in self.sources})
        object.__setattr__(self, "_by_sides", {each.sides: each for each in self.joins})
        object.__setattr__(self, "_by_key", {(each.store, each.key): each.kept for each in self.keys})

    def has_step_from(self, joined: str) -> bool:
        """Tell whether a step was measured that tuples of this join take (`StepStatistics.before`)."""
        return joined in self._joined

    def selectivity(self, left: Side, right: Side) -> float | None:
        """Return the measured selectivity of an equality, None if it was not measured."""
        measured = self.join(left, right)
        return None if measured is None else measured.selectivity

    def join(self, left: Side, right: Side) -> JoinSelectivity | None:
        """Return what was measured of an equality."""
        return self._by_sides.get((left, right) if left <= right else (right, left))

    def kept(self, store: str, key: str) -> float | None:
        """Return κ of a store, None if it was not measured."""
        return self._by_key.get((store, key))

    def overlap(self, source: str, selections: Sequence[str]) -> float | None:
        """Return how much selections of a source overlap (`QuerySets.overlap`), None if there is no sample of them."""
        return next((each.overlap(selections) for each in self.query_sets if each.source == source), None)

    def of(self, source: str) -> SourceStatistics:
        """Return what is known about this source; all unknown if it was never seen."""
        return self._by_source.get(source) or SourceStatistics(source=source)
