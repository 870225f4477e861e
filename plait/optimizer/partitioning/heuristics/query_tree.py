"""Heuristic 5: tree optimization.

Operators are optimized two by two. What a pair has in one partition is from then on one group of a single operator,
and pairs are united in the same way, up to the root.
"""

from __future__ import annotations

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.heuristics.solving import Solve
from plait.optimizer.partitioning.traffic import Traffic


def unite_pairwise(traffic: Traffic, solve: Solve) -> Ints:
    """Return a choice that a tree of pairs of operators leads to."""
    into = np.arange(traffic.groups)
    nodes = [traffic.operator == operator for operator in np.unique(traffic.operator)]
    choice = np.zeros(traffic.groups, dtype=np.int64)
    while True:
        pairs = [np.logical_or.reduce(nodes[at : at + 2]) for at in range(0, len(nodes), 2)]
        for number, groups in enumerate(pairs):
            clusters = np.unique(into[groups], return_inverse=True)[1]
            choice[groups] = solve(traffic.restricted(groups).united(clusters))[clusters]
            into[groups] = number * traffic.partitions + choice[groups]
        if len(pairs) == 1:
            return choice
        nodes = pairs
