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
    by_members: dict[object, tuple[Use, ...]] = {}
    for use in uses:
        by_members[use.members] = (*by_members.get(use.members, ()), use)
    left = [(same, cost.shared(joined, same)) for same in by_members.values()]
    groups = []
    while left:
        group, alone = left.pop(0)
        gains = [alone + apart - cost.shared(joined, (*group, *other)) for other, apart in left[:_MOST_PARTNERS]]
        if gains and max(gains) > 0:
            best, apart = left.pop(gains.index(max(gains)))
            group, alone = (*group, *best), alone + apart - max(gains)
            for other, apart in list(left) if len(_distinct(group)) < MOST_VARIANTS else ():
                together = cost.shared(joined, (*group, *other))
                if len(_distinct(group)) < MOST_VARIANTS and together < alone + apart:
                    left.remove((other, apart))
                    group, alone = (*group, *other), together
        groups.append(group)
    return tuple(groups)


def _distinct(uses: Sequence[Use]) -> tuple[object, ...]:
    return tuple(dict.fromkeys(use.members for use in uses))


__all__ = ["MOST_VARIANTS", "query_groups"]
