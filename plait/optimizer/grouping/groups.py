"""Greedy grouping (paper 004, figure 7a): whose joins are done as one.

The best groups are those of least total cost; to find them is NP-hard. So two uses of a join that gain by being one are
a group, and every other that gains by joining it is taken in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.optimizer.grouping.join_classes import JoinClass, Use
from plait.optimizer.grouping.sharing_cost import SharingCost

MOST_VARIANTS: Final = 12
"""A group takes as many different selections and windows at most: each is a bit that its rows have to be asked for."""

_MOST_PARTNERS: Final = 64
"""A use looks for its first partner among so many: with hundreds of them some are like it."""


def query_groups(joined: JoinClass, uses: Sequence[Use], cost: SharingCost) -> tuple[tuple[Use, ...], ...]:
    """Return the groups of uses of one join, the largest gain first taken; uses by themselves are groups of one."""
    left = [tuple(use for use in uses if use.members == members) for members in _distinct(uses)]
    groups = []
    while left:
        group = left.pop(0)
        best = max(left[:_MOST_PARTNERS], key=lambda other: _gain(joined, group, other, cost), default=None)
        if best is not None and _gain(joined, group, best, cost) > 0:
            left.remove(best)
            group += best
            for other in list(left):
                if len(_distinct(group)) < MOST_VARIANTS and _gain(joined, group, other, cost) > 0:
                    left.remove(other)
                    group += other
        groups.append(group)
    return tuple(groups)


def _distinct(uses: Sequence[Use]) -> tuple[object, ...]:
    return tuple(dict.fromkeys(use.members for use in uses))


def _gain(joined: JoinClass, group: Sequence[Use], other: Sequence[Use], cost: SharingCost) -> float:
    """Return by how much one join for all costs less than one for the group and one for the others."""
    apart = cost.shared(joined, group) + cost.shared(joined, other)
    return apart - cost.shared(joined, (*group, *other))


__all__ = ["MOST_VARIANTS", "query_groups"]
