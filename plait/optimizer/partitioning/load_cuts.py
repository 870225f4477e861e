"""Rows that tie the fullest partition to how often classes are parted: valid for whole numbers, and tight between them.

The relaxation spreads every group evenly over all partitions, which costs nothing and levels all loads. But a class
whose groups are in λ partitions has a part of at least f(λ), the best that parting it so often can do. So the fullest
partition is at least f(λ): what lowers it has to be paid for in λ, which is what is sent. And where more classes than
k times the partitions are whole, k + 1 of them share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plait.optimizer.linear.linear_program import Floats
from plait.optimizer.partitioning.lower_bound import processing_bounds
from plait.optimizer.partitioning.traffic import Traffic

_MOST_PARTED = 6
"""Of so many groups all 203 ways to part them are looked at; classes of more get no such rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """z[source] + `slope` · (λ of the `classes`, added up) ≥ `least`."""

    source: int
    classes: tuple[int, ...]
    slope: float
    least: float


def load_cuts(traffic: Traffic, members: Mapping[int, Sequence[int]]) -> Iterator[Cut]:
    """Yield what must hold of classes whose λ has a column, `members` by class: the groups that it counts."""
    base = processing_bounds(traffic)
    for row_class, groups in members.items():
        source = int(traffic.source[row_class])
        if len(groups) <= _MOST_PARTED:
            yield from _parted(source, row_class, _least(traffic, source, groups), float(base[source]))
    for source in range(traffic.sources):
        yield from _crowded(traffic, source, members, float(base[source]))


def _least(traffic: Traffic, source: int, groups: Sequence[int]) -> Floats:
    """Return what groups cost the partition they are in, at least."""
    loads = traffic.load[source, list(groups)]
    return np.asarray(loads * (traffic.latency[source].min() * traffic.processing))


def _parted(source: int, row_class: int, loads: Floats, base: float) -> Iterator[Cut]:
    """Yield the lower convex hull of (λ, f(λ)), one row a side, as far as it is above what holds anyway."""
    hull: list[tuple[int, float]] = []
    for parts, fullest in enumerate(fullest_parts(loads.tolist()), start=1):
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], (parts, fullest)):
            hull.pop()
        hull.append((parts, fullest))
    for (few, high), (many, low) in pairwise(hull):
        if high > base:
            slope = (high - low) / (many - few)
            yield Cut(source=source, classes=(row_class,), slope=slope, least=high + slope * few)


def _is_above(left: tuple[int, float], point: tuple[int, float], right: tuple[int, float]) -> bool:
    along = (point[0] - left[0]) / (right[0] - left[0])
    return point[1] >= left[1] + along * (right[1] - left[1])


def fullest_parts(loads: Sequence[float]) -> list[float]:
    """Return the least that the fullest of 1, 2, ... parts can have.

    >>> fullest_parts([3.0, 2.0, 2.0])
    [7.0, 4.0, 3.0]
    """
    best = [float("inf")] * len(loads)

    def put(place: int, parts: list[float]) -> None:
        if place == len(loads):
            best[len(parts) - 1] = min(best[len(parts) - 1], max(parts))
            return
        for part in range(len(parts)):
            parts[part] += loads[place]
            put(place + 1, parts)
            parts[part] -= loads[place]
        put(place + 1, [*parts, loads[place]])

    put(0, [])
    return best


def _crowded(traffic: Traffic, source: int, members: Mapping[int, Sequence[int]], base: float) -> Iterator[Cut]:
    """Yield that whole classes, more than k times the partitions, make one partition as full as k + 1 of them."""
    pins = traffic.source[traffic.row_class] == source
    if (np.bincount(traffic.group[pins], minlength=traffic.groups) > 1).any():
        return  # classes that have groups in common are not apart
    starts = traffic.start.tolist()
    of_source = np.flatnonzero(traffic.source == source).tolist()
    groups = {each: members.get(each, traffic.group[starts[each] : starts[each + 1]].tolist()) for each in of_source}
    weights = {each: float(_least(traffic, source, own).sum()) for each, own in groups.items()}
    heavy = sorted(weights, key=lambda each: -weights[each])
    for together in range(1, (len(heavy) - 1) // traffic.partitions + 1):
        some = heavy[: together * traffic.partitions + 1]
        fullest = sum(weights[each] for each in some[-together - 1 :])
        parted = tuple(each for each in some if each in members)
        if fullest > base and parted:
            slope = fullest - base
            yield Cut(source=source, classes=parted, slope=slope, least=fullest + slope * len(parted))
