"""The plan of queries that are added to one in force, as if there were nothing else, but so that it joins it well.

Its orders take steps that are there already where that is cheapest, and probe the intermediate stores that are there;
these are filled as before. New ones it gets only from strategies that plan every query by itself: a store has to be
filled before the first batch, and whether it pays is found out when the whole plan is reconsidered, beside the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.intermediate_stores import Subset, member_of
from plait.optimizer.assemble.orders_of_plan import (
    as_member,
    choices_of,
    filling_orders,
    stores_read,
)
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.incremental.beside import Beside, cheapest_beside, probe_tuples, work
from plait.optimizer.incremental.growing import Growing
from plait.optimizer.options import BUDGETED, PlanOptions
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.optimizer.strategies import STRATEGIES
from plait.plan.coverage import takes_all_of
from plait.plan.model import Member, Plan
from plait.plan.strategy_names import StrategyName
from plait.query.model import Query, Relation
from plait.stats.model import Statistics

TOGETHER: Final[frozenset[StrategyName]] = frozenset({"ilp", "dppick", "adhoc"})
"""The strategies that choose the orders of a query with a view to the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What all additions to a plan have in common."""

    statistics: Statistics
    options: PlanOptions

    @property
    def plans_together(self) -> bool:
        """Whether orders are chosen beside those that are there, and so without new stores: under a budget too, of
        which nobody knows here how much is left.
        """
        strategy = self.options.strategy
        is_limited = self.options.storage_rows is not None or self.options.storage_bytes is not None
        return strategy in TOGETHER or (strategy in BUDGETED and is_limited)

    @property
    def cardinality(self) -> Cardinality:
        """The numbers that the statistics tell."""
        return Cardinality(statistics=self.statistics)


def extension(plan: Growing, queries: tuple[Query, ...], given: Given, covering: tuple[Query, ...] = ()) -> Plan:
    """Return the plan of queries that are added. `covering`: what is joined in their place, if that is settled."""
    if given.plans_together:
        chosen = [_beside(plan, each, given) for each in covering] or [
            _as_wide_as_pays(plan, query, given) for query in queries
        ]
        joined = tuple(beside.query for beside in chosen)
        orders = tuple(order for beside in chosen for order in beside.orders)
    else:
        alone = STRATEGIES[given.options.strategy](queries, given.statistics, given.options)
        joined, orders = queries, choices_of(alone, queries).orders
    filled = tuple(_filled_as_before(plan, orders, joined))
    options = _of_what_is_read(given.options, queries)
    return build(queries, filled, given.statistics, options, plan.store_name, covering=joined)


def _of_what_is_read(options: PlanOptions, queries: tuple[Query, ...]) -> PlanOptions:
    """Return the options without the sources that these queries do not read: they have stores, or get them later."""
    read = {relation.source for query in queries for relation in query.relations}
    return replace(
        options,
        sources=tuple(source for source in options.sources if source.name in read),
        parallelism_by_source=tuple(each for each in options.parallelism_by_source if each[0] in read),
    )


def _beside(plan: Growing, query: Query, given: Given) -> Beside:
    """Return the cheapest orders of a query beside those that are there."""
    partitionings = {store.id: store.partition_by for store in plan.stores.values() if store.indexes}
    costs = QueryCosts(query, given.cardinality, given.options, partitionings)
    weight = work(costs) if given.options.strategy == "dppick" else probe_tuples(costs, plan.stores)
    return cheapest_beside(plan, costs, weight)


def _as_wide_as_pays(plan: Growing, query: Query, given: Given) -> Beside:
    """Return the orders of a query as it is, or as wide as others are whose steps it then shares."""
    wider = {relation.alias: _wider(plan, query, relation, given.cardinality) for relation in query.relations}
    narrow = _beside(plan, query, given)
    if not any(wider.values()):
        return narrow
    relations = ((relation, wider[relation.alias]) for relation in query.relations)
    widened = replace(
        query,
        relations=tuple(each if member is None else as_member(each, member) for each, member in relations),
    )
    return min((narrow, _beside(plan, widened, given)), key=lambda each: each.cost)


def _wider(plan: Growing, query: Query, relation: Relation, cardinality: Cardinality) -> Member | None:
    """Return the narrowest member of the plan that takes what a relation takes, and more; None if there is none."""
    own = member_of(query, relation.alias, plan.store_name)
    if relation.is_table or own in plan.trees:
        return None
    extent = Extent(source=relation.source, is_table=False, window_us=None)
    return min(
        (start for start in plan.starts_like(own) if takes_all_of(start, own)),
        key=lambda member: (
            cardinality.selected_rows(replace(extent, window_us=member.window_us), member.selection),
            member.order,
        ),
        default=None,
    )


def _filled_as_before(plan: Growing, orders: Iterable[ProbeOrder], joined: tuple[Query, ...]) -> Iterator[ProbeOrder]:
    """Yield the orders of queries, and for every intermediate store that they come to probe those that fill it: as the
    plan fills it, if it is there.
    """
    by_name, store_name = {query.name: query for query in joined}, plan.store_name
    answering = [order for order in orders if not order.fills]
    new: dict[str, list[ProbeOrder]] = {}
    for order in orders:
        if order.fills:
            covered = [alias for unit in order.units for alias in unit]
            new.setdefault(Subset.of(by_name[order.query], covered, store_name).store, []).append(order)
    filled = plan.fills() if any(len(unit) > 1 for order in answering for unit in order.units) else {}
    waiting, seen = list(answering), set[str]()
    while waiting:
        order = waiting.pop()
        yield order
        for subset in stores_read(order, by_name[order.query], store_name):
            if subset.store not in seen:
                seen.add(subset.store)
                before = filling_orders(subset, filled.get(subset.store, ()))
                waiting += [fill for fill, _ in before] or new[subset.store]


__all__ = ["TOGETHER", "Given", "extension"]
