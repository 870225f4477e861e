"""Heuristic 1: optimize streams in parallel.

Sources that no operator joins have no table in common, and equation 10 adds their costs up: each is a problem by
itself. Sources that joins couple, directly or over others, are one problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plait.optimizer.linear.linear_program import Bools
from plait.optimizer.partitioning.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The groups of some sources that are coupled, and what they draw."""

    groups: Bools
    traffic: Traffic


def parts(traffic: Traffic) -> tuple[Part, ...]:
    """Return the independent parts. Groups that draw nothing belong to none."""
    coupled, wanted = list(range(traffic.sources)), traffic.load != 0
    wanted[traffic.source[traffic.row_class], traffic.group] = True
    for operator in np.unique(traffic.operator):
        drawn = np.flatnonzero(wanted[:, traffic.operator == operator].any(axis=1)).tolist()
        united = {coupled[source] for source in drawn}
        if len(united) > 1:
            coupled = [min(united) if each in united else each for each in coupled]
    found = []
    for first in sorted(set(coupled)):
        sources = np.array(coupled) == first
        groups = wanted[sources].any(axis=0)
        if groups.any():
            found.append(Part(groups=groups, traffic=_of_sources(traffic.restricted(groups), sources)))
    return tuple(found)


def _of_sources(traffic: Traffic, sources: Bools) -> Traffic:
    number = np.cumsum(sources) - 1
    return replace(traffic, source=number[traffic.source], load=traffic.load[sources], latency=traffic.latency[sources])
