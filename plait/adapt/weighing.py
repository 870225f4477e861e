"""What plans cost, what they did cost, and what it costs to change from one to another, all in one unit.

Judged is what the strategy minimizes, lest its plan be judged by what it was not made for: `dppick` nanoseconds of
look-ups and matches, but for results, which whatever plan there is must find, and what intermediate stores take in
every batch; the others probe tuples, and `ilp` the
rows that enter intermediate stores besides. For all of them tuples are forecast as `dppick` does, from what was
measured of the steps in force: what is measured afterwards is then compared with a forecast that knew as much as there
was to know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.plan_cost import EdgeCost, edge_costs
from plait.plan.changelog import StoreAdded, StoreChanged, changelog
from plait.plan.coming import covers
from plait.plan.model import Plan
from plait.plan.step_names import named_steps
from plait.plan.traversals import fillings, intermediates
from plait.stats.cycles import Cycles
from plait.stats.model import Statistics

PROBE_TUPLE_NS: Final = 250.0
"""A look-up among 65,000 keys and one match (``python -m benchmarks costs``)."""

INDEX_ROW_NS: Final = 100.0
"""To sort the rows of a bucket by another key."""

RESTART_NS: Final = 1e9
"""Spark's query is stopped and started in about a second, in which no core works."""

_US_PER_S = 1_000_000
_NS_PER_S = 1_000_000_000
_COUNTS_WORK = "dppick"
_WEIGHS_STORES = "ilp"


def cost_of(plan: Plan, statistics: Statistics, options: PlanOptions) -> float:
    """Return what a plan is forecast to cost per second of event time."""
    steps = sum(
        _cost(edge, edge.tuples, edge.tuples * edge.step.growth, options) for edge in _edges(plan, statistics, options)
    )
    return steps + _standing(plan, statistics, options)


def measured_cost(plan: Plan, statistics: Statistics, options: PlanOptions, cycles: Cycles) -> float | None:
    """Return what a plan did cost per second of event time in the last cycle; None if no time has passed in it, or
    nothing was counted.
    """
    seconds = advance_s(cycles)
    counted = {series.name: tuple(counts[-1] for counts in series.counts if counts) for series in cycles.of("step")}
    by_name: dict[tuple[str, ...], list[EdgeCost]] = {}
    names = dict(named_steps(plan))
    for edge in _edges(plan, statistics, options):
        by_name.setdefault(tuple(names[edge.edge]), []).append(edge)
    seen = [(edges, counted[name]) for name, edges in by_name.items() if counted.get(name)]
    if not seconds or not seen:
        return None
    cost = 0.0
    for edges, (probes, _, matches) in seen:
        # Steps that begin differently are counted as one: each is taken to have its forecast share.
        expected = sum(edge.tuples for edge in edges)
        for edge in edges:
            share = edge.tuples / expected if expected > 0 else 1 / len(edges)
            cost += _cost(edge, probes * share, matches * share, options)
    return cost / seconds + _standing(plan, statistics, options)


def advance_s(cycles: Cycles) -> float:
    """Return by how much event time moved on in the last cycle, in the stream that came farthest."""
    ends = [series.counts[1][-1] for series in cycles.of("source") if series.counts[1]]
    return max(ends, default=0) / _US_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is there when a plan changes: `rows` by store, and of the intermediate stores that come already the share of
    the work that is `left`.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, float] = field(default_factory=dict)


def change_cost(
    running: Plan, wanted: Plan, statistics: Statistics, options: PlanOptions, stored: Stored
) -> tuple[float, float]:
    """Return what it costs to fill the stores, and to build the indexes, that a change needs."""
    before = {store.id: store for store in running.stores}
    filled, sorting_ns = set(), 0.0
    for change in changelog(running, wanted):
        if not isinstance(change, StoreAdded | StoreChanged):
            continue
        store, known = change.store, before.get(change.store.id)
        if store.intermediate is not None and (known is None or not covers(known, store)):
            filled.add(store.id)
        elif known is not None:
            added = sum(index not in known.indexes for index in store.indexes)
            sorting_ns += added * stored.rows.get(store.id, 0) * INDEX_ROW_NS
    return _filling(wanted, frozenset(filled), statistics, options, stored), sorting_ns / _unit_ns(options)


def delay_s(filling: float, options: PlanOptions, cycles: Cycles, slice_s: float | None) -> float:
    """Return the event time that passes until so much work of filling is done: `slice_s` of it with each batch, or all
    with one where that is not known. No query is answered any cheaper before.
    """
    if filling <= 0:
        return 0.0
    batch_s = advance_s(cycles) / max(cycles.batches[-1], 1) if cycles.batches else 0.0
    return batch_s * (math.ceil(filling * _unit_ns(options) / _NS_PER_S / slice_s) if slice_s else 1)


def restart_cost(options: PlanOptions) -> float:
    """Return what it costs to restart Spark's query."""
    return RESTART_NS * options.parallelism / _unit_ns(options)


def _filling(plan: Plan, filled: frozenset[str], statistics: Statistics, options: PlanOptions, stored: Stored) -> float:
    """Return the cost of sending what is stored, or left to send, through the steps that fill these stores: of each one
    part is sent, that with the fewest rows.
    """
    ways: dict[str, list[tuple[int, list[str]]]] = {}
    for start, steps, fill in fillings(plan):
        if fill.store in filled:
            rows = stored.rows.get(start.store, 0)
            ways.setdefault(fill.store, []).append((rows, [step.edge for step in steps]))
    if not ways:
        return 0.0
    edges = {edge.edge: edge for edge in _edges(plan, statistics, options)}
    cost, paid = 0.0, set[str]()
    for store, found in sorted(ways.items()):
        rows, path = min(found)
        arriving = edges[path[0]].tuples
        scale = stored.left.get(store, 1.0) * rows / arriving if arriving > 0 else 0.0
        for name in (name for name in path if name not in paid):
            paid.add(name)
            tuples = edges[name].tuples * scale
            cost += _cost(edges[name], tuples, tuples * edges[name].step.growth, options)
    return cost


def _edges(plan: Plan, statistics: Statistics, options: PlanOptions) -> Iterator[EdgeCost]:
    return edge_costs(plan, statistics, options.costs)


def _cost(edge: EdgeCost, tuples: float, matches: float, options: PlanOptions) -> float:
    """Return the cost of so many tuples that take a step, and of their matches."""
    if options.strategy == _COUNTS_WORK:
        look_up = max(edge.step.price - edge.step.growth * options.costs.match, 0.0)
        match = 0.0 if edge.answers else options.costs.match
        return tuples * look_up + matches * (match + edge.fills * options.costs.keep)
    if options.strategy == _WEIGHS_STORES:
        return tuples * edge.copies * options.probe_weight + matches * edge.fills * options.store_weight
    return tuples * edge.copies


def _standing(plan: Plan, statistics: Statistics, options: PlanOptions) -> float:
    """Return what intermediate stores cost by themselves, where the strategy counts it."""
    if options.strategy != _COUNTS_WORK:
        return 0.0
    return options.costs.of_stores(len(intermediates(plan)), statistics.batch_s)


def _unit_ns(options: PlanOptions) -> float:
    """Return what a unit of cost takes of a core."""
    if options.strategy == _COUNTS_WORK:
        return 1.0
    if options.strategy == _WEIGHS_STORES and options.probe_weight > 0:
        return PROBE_TUPLE_NS / options.probe_weight
    return PROBE_TUPLE_NS


__all__ = [
    "INDEX_ROW_NS",
    "PROBE_TUPLE_NS",
    "RESTART_NS",
    "Stored",
    "advance_s",
    "change_cost",
    "cost_of",
    "delay_s",
    "measured_cost",
    "restart_cost",
]
