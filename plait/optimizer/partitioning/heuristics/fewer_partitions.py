"""Heuristic 7: merge partitions.

Partitions are put together to logical ones, fewer by half each time but no fewer than nodes; groups are divided among
those first, and within each among its own partitions afterwards. Partitions of one node stay neighbours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.heuristics.solving import Solve
from plait.optimizer.partitioning.traffic import Traffic


def merge_partitions(traffic: Traffic, times: int, nodes: int, solve: Solve) -> Ints:
    """Return a choice made in two phases: which logical partition, then which of its partitions."""
    wanted = max(traffic.partitions >> times, min(nodes, traffic.partitions))
    logical = np.arange(traffic.partitions) * wanted // traffic.partitions
    if wanted in (1, traffic.partitions):
        return solve(traffic)
    first = solve(_logical(traffic, logical))
    choice = np.zeros(traffic.groups, dtype=np.int64)
    for each in range(wanted):
        groups, within = first == each, np.flatnonzero(logical == each)
        if groups.any():
            choice[groups] = within[solve(traffic.restricted(groups).towards(within))]
    return choice


def _logical(traffic: Traffic, logical: Ints) -> Traffic:
    """Return the traffic towards logical partitions.

    Rows to one cost what they cost on average to those it stands for. It processes as fast as all of them together.
    """
    count = int(logical.max()) + 1
    sizes = np.bincount(logical, minlength=count)
    latency = np.stack([np.bincount(logical, weights=each, minlength=count) / sizes for each in traffic.latency])
    return replace(traffic, latency=latency, processing=traffic.processing / float(sizes.mean()))
