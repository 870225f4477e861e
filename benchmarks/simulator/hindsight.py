"""What the best plans in hindsight would have taken of a recording, and what a policy missed against them.

Without a look at the data nobody knows which plan is best: what the plan of FROM takes in the first cycle beyond the
best is the price of that (`unavoidable`). And a change that has saved nothing until the next one was in vain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from benchmarks.simulator.recording import Cycle, EdgeCounts, Recording, plan_options, plans_of
from benchmarks.simulator.replay import Replayed, taken

_WORTH = 0.3
"""What a change of the best orders saves for it to be a shift of the data, of what all take in a cycle."""
_APART = 3

BLIND: Final = 1
"""In so many cycles nobody knows which plan is best: a plan is changed after a cycle at the earliest."""


def cost_of(cycle: Cycle, edges: Sequence[str], by: str = "probes") -> int:
    """Return what a plan of these edges takes in a cycle."""
    cost: int = getattr(taken([cycle.edges.get(edge, EdgeCounts()) for edge in edges]), by)
    return cost


def unavoidable(recording: Recording, began: Sequence[str], by: str = "probes") -> int:
    """Return what the plan at the start takes beyond the best while nobody can know better."""
    best = best_by_cycle(recording, by)
    return sum(cost_of(recording.cycles[cycle], began, by) - best[cycle] for cycle in range(min(BLIND, len(best))))


def gains_of_changes(recording: Recording, replayed: Replayed, by: str = "probes") -> list[int]:
    """Return what each change has saved until the next one, or the end."""
    plans = [replayed.began, *(edges for _, edges in replayed.changes)]
    bounds = [*(cycle + 1 for cycle, _ in replayed.changes), len(recording.cycles)]
    return [
        sum(cost_of(cycle, before, by) - cost_of(cycle, after, by) for cycle in recording.cycles[low:high])
        for (before, after), (low, high) in zip(pairwise(plans), pairwise(bounds), strict=True)
    ]


def best_by_cycle(recording: Recording, by: str = "operations") -> list[int]:
    """Return what the best orders of each cycle take, chosen in hindsight for each starting relation."""
    return [sum(min(costs.values()) for costs in starts.values()) for starts in _costs(recording, by)]


def best_single(recording: Recording, by: str = "operations") -> int:
    """Return what the best orders for all cycles together take, chosen in hindsight."""
    sums: dict[str, dict[str, int]] = {}
    for starts in _costs(recording, by):
        for start, costs in starts.items():
            for order, cost in costs.items():
                sums.setdefault(start, {})[order] = sums.get(start, {}).get(order, 0) + cost
    return sum(min(costs.values()) for costs in sums.values())


def real_shifts(recording: Recording, by: str = "probes") -> tuple[int, ...]:
    """Return after which cycles the best orders in hindsight change, if a change must save `_WORTH` of what a cycle
    takes; those a few cycles apart are one.
    """
    cycles = _costs(recording, by)
    penalty = _WORTH * sum(best_by_cycle(recording, by)) / max(len(cycles), 1)
    changed = set[int]()
    for start in cycles[0] if cycles else ():
        changed |= _changes([each[start] for each in cycles], penalty)
    found: list[int] = []
    for cycle in sorted(changed):
        if not found or cycle - found[-1] > _APART:
            found.append(cycle)
    return tuple(found)


def _changes(costs: Sequence[Mapping[str, int]], penalty: float) -> set[int]:
    """Return where the cheapest way through the cycles goes from one order to another."""
    ways: dict[str, tuple[float, tuple[int, ...]]] = {order: (float(cost), ()) for order, cost in costs[0].items()}
    for cycle, each in enumerate(costs[1:]):
        cheapest, moves = min(ways.values())
        jumped = cheapest + penalty, (*moves, cycle)
        ways = {
            order: (before[0] + cost, before[1])
            for order, cost in each.items()
            for before in (min(ways[order], jumped),)
        }
    return set(min(ways.values())[1])


def _costs(recording: Recording, by: str) -> Sequence[Mapping[str, Mapping[str, int]]]:
    plans = plans_of(recording.query, recording.orders, plan_options(recording.streams))
    paths: dict[str, dict[str, tuple[str, ...]]] = {}
    for plan in plans:
        for tree in plan.trees:
            edges = tuple(step.edge for _, step in tree.walk())
            paths.setdefault(tree.start.store, {})[edges[-1]] = edges
    return [
        {
            start: {order: cost_of(cycle, edges, by) for order, edges in orders.items()}
            for start, orders in paths.items()
        }
        for cycle in recording.cycles
    ]


__all__ = [
    "BLIND",
    "best_by_cycle",
    "best_single",
    "cost_of",
    "gains_of_changes",
    "real_shifts",
    "unavoidable",
]
