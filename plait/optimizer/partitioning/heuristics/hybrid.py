"""Heuristic 6: hybrid execution.

Operators that are alike are optimized together, apart from others: nothing is planned to be shared between bunches.
Alike are those that draw on the same sources and have as many key groups. What happens to fall together is still sent
once, so the whole never costs more than its bunches do.
"""

from __future__ import annotations

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.heuristics.solving import Solve
from plait.optimizer.partitioning.traffic import Traffic

BUNCH = 8
"""Operators that the tree of paper 001 is content to optimize together."""


def run_in_bunches(traffic: Traffic, solve: Solve, size: int = BUNCH) -> Ints:
    """Return a choice of which every bunch of operators was decided without the others."""
    choice = np.zeros(traffic.groups, dtype=np.int64)
    for bunch in bunches(traffic, size):
        groups = np.isin(traffic.operator, bunch)
        choice[groups] = solve(traffic.restricted(groups))
    return choice


def bunches(traffic: Traffic, size: int) -> list[list[int]]:
    """Return the operators in bunches of alike ones."""
    alike: dict[tuple[bytes, int], list[int]] = {}
    for operator in np.unique(traffic.operator).tolist():
        groups = traffic.operator == operator
        sources = traffic.load[:, groups].any(axis=1)
        alike.setdefault((sources.tobytes(), int(groups.sum())), []).append(operator)
    return [each[at : at + size] for each in alike.values() for at in range(0, len(each), size)]
