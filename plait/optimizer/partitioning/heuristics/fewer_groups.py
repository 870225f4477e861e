"""Heuristic 4: merge key groups.

Neighbours of an operator become one key group as often as asked, but no fewer than there are partitions; their numbers
are added up, and both go where the one goes.
"""

from __future__ import annotations

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.heuristics.solving import Solve
from plait.optimizer.partitioning.traffic import Traffic


def merge_key_groups(traffic: Traffic, times: int, solve: Solve) -> Ints:
    """Return a choice in which runs of up to ``2 ** times`` neighbours stay together."""
    into = merged(traffic, times)
    return solve(traffic.united(into))[into]


def merged(traffic: Traffic, times: int) -> Ints:
    """Return the merged key group of each group, numbered from 0."""
    into = np.zeros(traffic.groups, dtype=np.int64)
    found = 0
    for operator in np.unique(traffic.operator):
        groups = np.flatnonzero(traffic.operator == operator)
        wanted = max(len(groups) >> times, min(traffic.partitions, len(groups)))
        into[groups] = found + np.arange(len(groups)) * wanted // len(groups)
        found += wanted
    return into
