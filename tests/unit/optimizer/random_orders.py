"""Random probe orders with intermediate stores, as some strategy might choose them: any must compute the same."""

from __future__ import annotations

import random
from collections.abc import Collection

from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.covering import cover
from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, may_follow
from plait.plan.model import Plan
from plait.plan.relations import one_per_source
from plait.query.model import Query
from plait.stats.model import Statistics


def random_plan(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions, rng: random.Random) -> Plan:
    """Return a plan with random probe orders, about half of their steps into intermediate stores, for queries of which
    some relations are made wider.
    """
    widened = {source.name for source in options.sources if rng.random() < 0.4}
    wide = cover(queries, lambda query, relation: relation.source if relation.source in widened else None)
    return build(queries, random_orders(wide, rng), statistics, options, covering=wide)


def random_orders(queries: tuple[Query, ...], rng: random.Random) -> tuple[ProbeOrder, ...]:
    """Return one order for each starting relation of each query and of each intermediate store used."""
    orders: list[ProbeOrder] = []
    waiting: list[Subset] = []
    for query in sorted(queries, key=lambda query: query.name):
        everything = tuple(relation.alias for relation in query.relations)
        for start in everything:
            if not query.relation(start).is_table:
                orders.append(_order(query, start, everything, rng, fills=False))
    filled: set[str] = set()
    by_name = {query.name: query for query in queries}
    waiting = [_subset(by_name[order.query], unit) for order in orders for unit in order.units if len(unit) > 1]
    while waiting:
        subset = waiting.pop()
        if subset.store in filled:
            continue
        filled.add(subset.store)
        for start in subset.aliases:
            if not subset.query.relation(start).is_table:
                order = _order(subset.query, start, subset.aliases, rng, fills=True)
                orders.append(order)
                waiting += [_subset(subset.query, unit) for unit in order.units if len(unit) > 1]
    return tuple(orders)


def _subset(query: Query, aliases: Collection[str]) -> Subset:
    return Subset.of(query, aliases, one_per_source)


def _order(query: Query, start: str, within: tuple[str, ...], rng: random.Random, *, fills: bool) -> ProbeOrder:
    units: list[tuple[str, ...]] = [(start,)]
    joined = {start}
    graph = query.graph
    while joined != set(within):
        outside = set(within) - joined
        first = rng.choice([alias for alias in may_follow(query, joined) if alias in outside])
        unit = {first}
        connected = first in graph.neighbours_of(joined)
        while connected and rng.random() < 0.6:
            near = [alias for alias in graph.neighbours_of(unit) if alias in outside and alias not in unit]
            if not near:
                break
            unit.add(rng.choice(near))
        if all(query.relation(alias).is_table for alias in unit):
            unit = {first}
        units.append(tuple(relation.alias for relation in query.relations if relation.alias in unit))
        joined |= unit
    return ProbeOrder(query=query.name, units=tuple(units), fills=fills)
