"""Orders that are not in force, tried with a few of the tuples that arrive: a plan shows nothing of the steps it does
not take, so without that the best order may never be seen to be.

What is learned is the size of joins (`plait.optimizer.pick.set_sizes`): an order leads through as many of those that
the plan in force does not lead through as it can, those first that were not counted for longest. The tuples find what
the others find, but nothing is delivered and nothing kept. What they take is counted apart and bounded by an
`Allowance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from plait.adapt.forecast import forecast
from plait.adapt.planning import PlanRequest
from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan, Step
from plait.plan.step_names import named_steps
from plait.query.masks import Mask, positions
from plait.query.model import Query
from plait.state.model import Manifest
from plait.stats.cycles import HISTORY, Cycles
from plait.stats.model import Statistics

MOST_SAMPLED: Final = 0.008
"""Samples take at most this share of the probe tuples of a run."""

MOST_IN_BATCH: Final = 0.1
"""And of those of one batch: one batch of a cycle samples for all of them."""

FEWEST_ROWS: Final = 8
"""Of fewer starting tuples nothing is learned that would be worth opening the files."""

_MOST_ORDERS = 32
_DEPTH = 3


def plan_to_sample(request: PlanRequest, manifest: Manifest, running: Plan) -> Plan | None:
    """Return orders that lead where the plan in force does not, on its stores; None if there are none.

    A tree ends where it has nothing new to show, so results are mostly left out.
    """
    options = replace(request.options, strategy="fixed")
    statistics = forecast(options.sources, manifest)
    in_force = {name.after for _, name in named_steps(running)}
    ages = _Ages(manifest.cycles, in_force)
    orders = [
        order
        for query in _in_turn(request.queries, manifest.cycles.number)
        for order in _orders(query, statistics, options, ages)
    ]
    if not orders:
        return None
    asked = {order.query for order in orders}
    made = build([query for query in request.queries if query.name in asked], orders, statistics, options)
    return _on_stores(running, _only_new(made, ages))


def _on_stores(running: Plan, sampled: Plan) -> Plan | None:
    """Return orders on the stores of the plan in force, which keep what all queries need; None if these are others, as
    where every query has its own.
    """
    stores = {store.id: store for store in running.stores if store.intermediate is None}
    if not sampled.trees or not {store.id for store in sampled.stores} <= stores.keys():
        return None
    for store in sampled.stores:
        own = stores[store.id]
        added = tuple(index for index in store.indexes if index not in own.indexes)
        stores[store.id] = replace(own, indexes=own.indexes + added)
    return replace(sampled, stores=tuple(stores[store] for store in sorted(stores)))


def _in_turn(queries: tuple[Query, ...], cycle: int) -> tuple[Query, ...]:
    """Return the queries whose turn it is: where there are many, a few a cycle."""
    starts, chosen = 0, list[Query]()
    for number in range(len(queries)):
        query = queries[(cycle * _MOST_ORDERS + number) % len(queries)]
        starts += len(query.starts)
        if chosen and starts > _MOST_ORDERS:
            break
        chosen.append(query)
    return tuple(chosen)


class _Ages:
    """How many cycles ago a join was last counted; those that an order leads through count as done."""

    def __init__(self, cycles: Cycles, in_force: set[str]) -> None:
        self._ages = dict.fromkeys(in_force, 0)
        self.chosen = set[str]()
        for series in cycles.of("step"):
            silent = next((ago for ago, count in enumerate(reversed(series.counts[0])) if count), HISTORY)
            after = series.name[1]
            self._ages[after] = min(silent + 1 if after not in in_force else 0, self._ages.get(after, HISTORY))

    def of(self, name: str) -> int:
        """Return the age."""
        return self._ages.get(name, HISTORY)

    def is_done(self, name: str) -> None:
        """Take it for counted now."""
        self.chosen |= {name} if self.of(name) else set()
        self._ages[name] = 0


def _orders(query: Query, statistics: Statistics, options: PlanOptions, ages: _Ages) -> Iterator[ProbeOrder]:
    """Yield for every starting relation the order that leads to the join most worth looking at: one that was not
    counted for long, by few tuples. After it the order goes on anyhow.
    """
    costs = QueryCosts(query, Cardinality(statistics=statistics), options)
    others, leads_somewhere = [], False
    for position in positions(costs.streams):
        units = _to_the_oldest(costs, 1 << position, ages)
        joined = sum(units)
        leads_somewhere |= len(units) > 1
        ages.is_done(costs.name(joined, costs.everything))
        while joined != costs.everything:
            unit = costs.following(joined, costs.everything)[0]
            units, joined = (*units, unit), joined | unit
        others.append(ProbeOrder(query=query.name, units=tuple(map(costs.among, units))))
    if leads_somewhere:
        yield from others


def _to_the_oldest(costs: QueryCosts, start: Mask, ages: _Ages) -> tuple[Mask, ...]:
    """Return the way from a starting relation to the join of at most `_DEPTH` steps with the highest age for what one
    tuple takes on the way there; only the start if nothing is old.
    """
    best: tuple[Mask, ...] = (start,)
    best_worth = 0.0
    ways: dict[Mask, tuple[float, float, tuple[Mask, ...]]] = {start: (0.0, 1.0, (start,))}
    for _ in range(_DEPTH):
        longer: dict[Mask, tuple[float, float, tuple[Mask, ...]]] = {}
        for joined, (taken, tuples, units) in ways.items():
            for unit in costs.following(joined, costs.everything):
                way = taken + tuples, tuples * costs.step(joined, unit, costs.origin(start)).growth, (*units, unit)
                longer[joined | unit] = min(way, longer.get(joined | unit, way))
        for joined, (taken, _, units) in longer.items():
            worth = ages.of(costs.name(joined, costs.everything)) / taken
            if worth > best_worth:
                best, best_worth = units, worth
        ways = longer
    return best


def _only_new(plan: Plan, ages: _Ages) -> Plan:
    """Return the plan without results, and without the steps after those that were chosen."""
    names = dict(named_steps(plan))

    def cut(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept = []
        for step in steps:
            children = cut(step.children)
            if children or names[step.edge].after in ages.chosen:
                kept.append(replace(step, outputs=(), fills=(), children=children))
        return tuple(kept)

    trees = (replace(tree, outputs=(), children=cut(tree.children)) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.children))


@dataclass(slots=True)
class Allowance:
    """How much may be sampled: a share of the probe tuples there have been, less what samples have taken. What one
    starting tuple takes is known after the first sample; before it, a tuple for every step is expected.
    """

    probed: int = 0
    sampled: int = 0
    _per_row: float | None = None

    def every(self, rows: int, probe_tuples: int, steps: int) -> int | None:
        """Return that every so manieth of the `rows` that arrived may be sampled, after a batch that took so many
        probe tuples; None: not now.
        """
        self.probed += probe_tuples
        left = min(self.probed * MOST_SAMPLED - self.sampled, probe_tuples * MOST_IN_BATCH)
        allowed = left / (self._per_row or max(steps, 1))
        return None if allowed < FEWEST_ROWS or not rows else max(round(rows / allowed), 1)

    def pass_by(self, probe_tuples: int) -> None:
        """Note a batch in which nothing is sampled."""
        self.probed += probe_tuples

    def note(self, rows: int, probe_tuples: int) -> None:
        """Note what a sample of so many starting tuples took."""
        self.sampled += probe_tuples
        taken = probe_tuples / max(rows, 1)
        self._per_row = taken if self._per_row is None else max(taken, (self._per_row + taken) / 2)


__all__ = ["FEWEST_ROWS", "MOST_IN_BATCH", "MOST_SAMPLED", "Allowance", "plan_to_sample"]
