"""Sizes of joins by content, each number computed once for all queries."""

from __future__ import annotations

from plait.optimizer.multi_query.patterns import ContentSizes, Mask, Pattern


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
