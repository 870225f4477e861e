"""What no choice of partitions can fall below, without solving anything."""

from __future__ import annotations

import numpy as np

from plait.optimizer.linear.linear_program import Floats
from plait.optimizer.partitioning.traffic import Traffic


def lower_bound(traffic: Traffic) -> float:
    """Return a bound of the total cost: every row sent at least once, to the nearest partition, and loads even."""
    return sending_bound(traffic) + float(sum(processing_bounds(traffic)))


def sending_bound(traffic: Traffic) -> float:
    """Return what sending costs if all that share rows are together."""
    if not len(traffic.source):
        return 0.0
    largest = np.maximum.reduceat(traffic.rows, traffic.start[:-1])
    # What corrects the sum of pairs (`pairs.of_pairs`) may be negative.
    least, most = traffic.latency.min(axis=1)[traffic.source], traffic.latency.max(axis=1)[traffic.source]
    return float((largest * np.where(largest < 0, most, least)).sum())


def processing_bounds(traffic: Traffic) -> Floats:
    """Return for each source a bound of what processing it costs.

    Loads even; or the least that two, three and so on groups come to of which some must share a partition, there being
    more groups than that many times the partitions.
    """
    return traffic.processing * np.array(
        [_fullest(traffic.load[source], traffic.latency[source]) for source in range(traffic.sources)]
    )


def _fullest(load: Floats, latency: Floats) -> float:
    even = load.sum() / (1.0 / latency).sum()
    heavy_first = np.concatenate(([0.0], np.cumsum(-np.sort(-load))))
    together = np.arange(0, (len(load) - 1) // len(latency) + 1)
    last = together * len(latency) + 1
    crowded = (heavy_first[last] - heavy_first[last - together - 1]).max() if len(load) else 0.0
    return float(max(even, crowded * latency.min()))
