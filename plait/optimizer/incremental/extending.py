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
    fills_by_store,
    store_name_of,
    stores_read,
)
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.incremental.beside import Beside, cheapest_beside, probe_tuples, work
from plait.optimizer.options import BUDGETED, PlanOptions
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.optimizer.strategies import STRATEGIES
from plait.plan.coverage import takes_all_of
from plait.plan.model import Member, Plan
from plait.plan.relations import StoreName
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


def extension(plan: Plan, queries: tuple[Query, ...], given: Given, covering: tuple[Query, ...] = ()) -> Plan:
    """Return the plan of queries that are added. `covering`: what is joined in their place, if that is settled."""
    store_name = store_name_of(plan)
    if given.plans_together:
        joined = covering or tuple(_as_wide_as_pays(plan, query, given) for query in queries)
        orders = tuple(order for query in joined for order in _beside(plan, query, given).orders)
    else:
        alone = STRATEGIES[given.options.strategy](queries, given.statistics, given.options)
        joined, orders = queries, choices_of(alone, queries).orders
    filled = tuple(_filled_as_before(plan, orders, joined, store_name))
    return build(queries, filled, given.statistics, given.options, store_name, covering=joined)


def _beside(plan: Plan, query: Query, given: Given) -> Beside:
    """Return the cheapest orders of a query beside those that are there."""
    partitionings = {store.id: store.partition_by for store in plan.stores if store.indexes}
    costs = QueryCosts(query, given.cardinality, given.options, partitionings)
    weight = work(costs) if given.options.strategy == "dppick" else probe_tuples(costs, plan)
    return cheapest_beside(plan, costs, weight, store_name_of(plan))


def _as_wide_as_pays(plan: Plan, query: Query, given: Given) -> Query:
    """Return the query as it is, or as wide as others are whose steps it then shares."""
    wider = {relation.alias: _wider(plan, query, relation, given.cardinality) for relation in query.relations}
    if not any(wider.values()):
        return query
    relations = ((relation, wider[relation.alias]) for relation in query.relations)
    widened = replace(
        query,
        relations=tuple(each if member is None else as_member(each, member) for each, member in relations),
    )
    return min((query, widened), key=lambda each: _beside(plan, each, given).cost)


def _wider(plan: Plan, query: Query, relation: Relation, cardinality: Cardinality) -> Member | None:
    """Return the narrowest member of the plan that takes what a relation takes, and more; None if there is none."""
    own = member_of(query, relation.alias, store_name_of(plan))
    if relation.is_table or any(tree.start == own for tree in plan.trees):
        return None
    extent = Extent(source=relation.source, is_table=False, window_us=None)
    wide = [tree.start for tree in plan.trees if takes_all_of(tree.start, own)]
    return min(
        wide,
        key=lambda member: (
            cardinality.selected_rows(replace(extent, window_us=member.window_us), member.selection),
            member.order,
        ),
        default=None,
    )


def _filled_as_before(
    plan: Plan, orders: Iterable[ProbeOrder], joined: tuple[Query, ...], store_name: StoreName
) -> Iterator[ProbeOrder]:
    """Yield the orders of queries, and for every intermediate store that they come to probe those that fill it: as the
    plan fills it, if it is there.
    """
    by_name = {query.name: query for query in joined}
    answering = [order for order in orders if not order.fills]
    new: dict[str, list[ProbeOrder]] = {}
    for order in orders:
        if order.fills:
            covered = [alias for unit in order.units for alias in unit]
            new.setdefault(Subset.of(by_name[order.query], covered, store_name).store, []).append(order)
    filled = fills_by_store(plan) if any(len(unit) > 1 for order in answering for unit in order.units) else {}
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
