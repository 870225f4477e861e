"""Plan one query anew as the binary tree that adds least to what the others have chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from plait.optimizer.multi_query.solution import Choice
from plait.optimizer.multi_query.splits import Split, SplitSet

Noise: TypeAlias = Callable[[], float]
"""A factor by which the cost of a split is falsified."""


def plant(choice: Choice, sets: tuple[SplitSet, ...], noise: Noise) -> list[int]:
    """Choose the arcs of the best tree; return the nodes that are needed once more for it, smaller ones first.

    Every step is paid once, whoever asked for it, so what a tree adds is the sum over its splits of the steps that are
    not there yet and of the stores that have to be opened. An intermediate store that is not in use is partitioned as
    the split that probes it likes best.
    """
    best = _best(choice, sets, noise)
    held: list[int] = []

    def grow(place: int) -> None:
        split = best[place]
        if split is None:
            return
        for half in split.halves:
            grow(half)
        for arc in split.arcs:
            _prepare(choice, arc)
            if choice.hold(arc):
                held.append(choice.head(arc))

    grow(len(sets) - 1)
    return held


def _best(choice: Choice, sets: tuple[SplitSet, ...], noise: Noise) -> list[Split | None]:
    """Return the split that adds least for every set, None where there is nothing to add."""
    costs: list[float] = []
    found: list[Split | None] = []
    for each in sets:
        if all(choice.is_reached(node) for node in each.nodes):
            costs.append(0.0)
            found.append(None)
            continue
        least, chosen = math.inf, None
        for split in each.splits:
            cost = costs[split.halves[0]] + costs[split.halves[1]]
            if cost < least:
                cost += _added(choice, split) * noise()
            if cost < least:
                least, chosen = cost, split
        costs.append(least)
        found.append(chosen)
    return found


def _added(choice: Choice, split: Split) -> float:
    cost, opened = 0.0, set()
    choice.work += len(split.arcs)
    for arc in split.arcs:
        if not choice.is_reached(choice.head(arc)):
            store = choice.store(arc)
            if choice.is_unused(store):
                opened.add(store)
                cost += choice.least_price(arc)
            else:
                cost += choice.price(arc)
    return cost + sum(choice.opening(store) for store in sorted(opened))


def _prepare(choice: Choice, arc: int) -> None:
    """Partition an intermediate store that is about to be opened by a key that the arc knows."""
    store, known = choice.store(arc), choice.problem.known[arc]
    if choice.is_unused(store) and known and choice.key[store] not in known:
        choice.partition(store, min(known))
