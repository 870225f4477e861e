"""Sizes of joins by content, each number computed once for all queries."""

from __future__ import annotations

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.multi_query.patterns import Join, Mask, Pattern
from plait.plan.model import Member


class ContentSizes:
    """|R| of members and f of joins, remembered across patterns."""

    def __init__(self, cardinality: Cardinality) -> None:
        self._cardinality = cardinality
        self._rows: dict[Member, float] = {}
        self._selectivity: dict[tuple[object, ...], float] = {}

    def rows(self, pattern: Pattern, position: int) -> float:
        """Return |R| of a member after its selection."""
        member = pattern.members[position]
        if member not in self._rows:
            self._rows[member] = self._cardinality.selected_rows(pattern.extent(position), member.selection)
        return self._rows[member]

    def pace(self, pattern: Pattern, position: int) -> float:
        """Return how many windows of a member pass per second."""
        return self._cardinality.pace(pattern.extent(position))

    def selectivity(self, pattern: Pattern, join: Join) -> float:
        """Return f of all predicates of a join."""
        left, right = pattern.extent(join.left), pattern.extent(join.right)
        known = (left, right, join.between)
        if known not in self._selectivity:
            self._selectivity[known] = self._cardinality.between(left, right, join.between)
        return self._selectivity[known]


class PatternSizes:
    """|⋈ X| for sets of one pattern's members.

    Members are multiplied in their canonical order, so that a set which two patterns have in common has the same size
    to the last bit.
    """

    def __init__(self, pattern: Pattern, sizes: ContentSizes) -> None:
        self._rows = [sizes.rows(pattern, position) for position in range(len(pattern.members))]
        self._joins: list[list[tuple[Mask, float]]] = [[] for _ in pattern.members]
        for join in pattern.joins:
            self._joins[join.left].append((1 << join.right, sizes.selectivity(pattern, join)))
        self._sizes: dict[Mask, float] = {0: 1.0}

    def size(self, mask: Mask) -> float:
        """Return |⋈ X|."""
        known = self._sizes.get(mask)
        if known is None:
            first = (mask & -mask).bit_length() - 1
            rest = mask & (mask - 1)
            known = self.size(rest) * self._rows[first]
            for other, selectivity in self._joins[first]:
                if other & rest:
                    known *= selectivity
            self._sizes[mask] = known
        return known
