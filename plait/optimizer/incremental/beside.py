"""The cheapest probe orders of one query beside those that a plan has: steps that are there already cost nothing more.

What a tuple costs from here on depends on what it has been joined with, not on the order in which, so the cheapest rest
is remembered by set of relations. Two orders share a step only if they have come the same way; but a way that has once
left the others never meets them again, so sequences are looked at only as far as others have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.assemble.intermediate_stores import Subset, member_of
from plait.optimizer.assemble.probe_trees import arrow_to
from plait.optimizer.estimate.join_sizes import arriving
from plait.optimizer.incremental.growing import Growing
from plait.optimizer.pick.best_order import Units
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.conditions import between, key_pairs
from plait.plan.model import Step, Store, part_column
from plait.plan.relations import StoreName, one_per_source
from plait.query.masks import Mask, positions
from plait.query.model import Query

Weight: TypeAlias = Callable[[Mask, Mask], float]
"""(what has been joined, what is probed) → the cost of all tuples that take this step, per window contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Probe orders of a query as it is joined, and what they cost per second beyond what others take."""

    query: Query
    orders: tuple[ProbeOrder, ...]
    cost: float


def cheapest_beside(plan: Growing, costs: QueryCosts, weight: Weight) -> Beside:
    """Return the cheapest order from each stream of a query, by way of the intermediate stores that the plan has.
    A wide query has the orders of `greedy`, of which nothing is said what they cost.
    """
    if costs.is_wide:
        ways = ((alias, costs.greedy(costs.mask(alias))) for alias in costs.query.starts)
        return Beside(query=costs.query, orders=tuple(_order(costs, alias, units) for alias, units in ways), cost=0.0)
    kept = plan.intermediates
    sets = costs.connected() if kept else ()
    costs.kept = frozenset(mask for mask in sets if costs.streams & ~mask and costs.store(mask) in kept)
    search = _Search(costs, weight, plan.store_name)
    orders, cost = [], 0.0
    for alias in costs.query.starts:
        tree = plan.trees.get(member_of(costs.query, alias, plan.store_name))
        found, units = search.beside(costs.mask(alias), (alias,), () if tree is None else tree.children)
        cost += found * costs.sizes.pace(alias)
        orders.append(_order(costs, alias, units))
    return Beside(query=costs.query, orders=tuple(orders), cost=cost)


def _order(costs: QueryCosts, start: str, units: Units) -> ProbeOrder:
    return ProbeOrder(query=costs.query.name, units=((start,), *map(costs.among, units)))


_Way: TypeAlias = tuple[float, tuple[Mask, ...]]
"""What the rest of an order costs, and what it probes."""


class _Search:
    """The cheapest ways to all relations of a query."""

    def __init__(self, costs: QueryCosts, weight: Weight, store_name: StoreName) -> None:
        self._costs, self._weight, self._store_name = costs, weight, store_name
        self._rest: dict[Mask, _Way] = {costs.everything: (0.0, ())}

    def beside(self, joined: Mask, path: tuple[str, ...], steps: tuple[Step, ...]) -> _Way:
        """Return the cheapest rest where others go on with these steps."""
        if not steps or joined == self._costs.everything:
            return self.rest(joined)
        ways = []
        for unit in self._costs.following(joined, self._costs.everything):
            arrow, aliases = arrow_to(self._costs.query, path, self._costs.among(unit), self._store_name)
            taken = next((step for step in steps if arrow.is_of(step)), None)
            if taken is None:
                cost, units = self.rest(joined | unit)
                ways.append((self._weight(joined, unit) + cost, (unit, *units)))
            else:
                cost, units = self.beside(joined | unit, (*path, *aliases), taken.children)
                ways.append((cost, (unit, *units)))
        return min(ways, key=_cost)

    def rest(self, joined: Mask) -> _Way:
        """Return the cheapest rest where nobody else goes."""
        known = self._rest.get(joined)
        if known is None:
            ways = []
            for unit in self._costs.following(joined, self._costs.everything):
                cost, units = self.rest(joined | unit)
                ways.append((self._weight(joined, unit) + cost, (unit, *units)))
            known = self._rest[joined] = min(ways, key=_cost)
        return known


def _cost(way: _Way) -> float:
    return way[0]


def work(costs: QueryCosts) -> Weight:
    """Let steps cost what `dppick` takes them for: look-ups and matches."""
    return lambda joined, unit: costs.size(joined) * costs.step(joined, unit).price


def _parts(costs: QueryCosts, unit: Mask) -> dict[str, int]:
    """Return which part of an intermediate store each relation is; none of the store of a source."""
    if not unit & (unit - 1):
        return {}
    subset = Subset.of(costs.query, costs.among(unit), one_per_source)
    return {alias: part for part, alias in enumerate(subset.aliases)}


def probe_tuples(costs: QueryCosts, stores: Mapping[str, Store]) -> Weight:
    """Let steps cost the tuples sent along them (papers 000 and 002). `stores`: those there are, by id."""
    query, aliases = costs.query, costs.aliases

    def copies(joined: Mask, unit: Mask) -> int:
        store = stores.get(costs.store(unit))
        parallelism = costs.sizes.partitions(frozenset(costs.among(unit))) if store is None else store.parallelism
        if parallelism == 1:
            return 1
        parts = _parts(costs, unit)
        known = {
            part_column(parts.get(right), key.name)
            for right in costs.among(unit)
            if not costs.sizes.is_at_random(right)
            for left in positions(joined)
            for _, key in key_pairs(between(query, aliases[left], right))
        }
        if store is None or not store.indexes:
            return 1 if known else parallelism
        return 1 if store.partition_by and known.issuperset(store.partition_by) else parallelism

    def weight(joined: Mask, unit: Mask) -> float:
        return arriving(costs.size(joined), (joined & costs.streams).bit_count()) * copies(joined, unit)

    return weight


__all__ = ["Beside", "Weight", "cheapest_beside", "probe_tuples", "work"]
