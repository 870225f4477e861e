"""Read probe orders back out of a plan, so that they can be changed and planned again.

Whatever strategy made it, a plan is its probe orders and the queries that are joined, which may cover the user's;
`build` makes an equal plan of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan, Step
from plait.plan.relations import StoreName, one_per_query, one_per_source
from plait.plan.traversals import endings, fillings, intermediates, path_members, units_of
from plait.query.model import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a strategy decided. `store_name` names the stores of sources, `joined` are the queries as they are joined.

    `edges[i]` are the edges of ``orders[i]`` in the plan.
    """

    orders: tuple[ProbeOrder, ...]
    edges: tuple[tuple[str, ...], ...]
    joined: tuple[Query, ...]
    store_name: StoreName


def choices_of(plan: Plan, queries: tuple[Query, ...]) -> Choices:
    """Return what was decided for these queries, all of which the plan must be for."""
    joined = _joined(plan, queries)
    store_name = _store_name(plan)
    taken = [
        (ProbeOrder(query=output.query, units=units_of(steps, output.aliases)), _edges(steps))
        for _, steps, output in endings(plan)
    ]
    taken += _fills(plan, [order for order, _ in taken], {query.name: query for query in joined}, store_name)
    return Choices(
        orders=tuple(order for order, _ in taken),
        edges=tuple(edges for _, edges in taken),
        joined=joined,
        store_name=store_name,
    )


def _edges(steps: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(step.edge for step in steps)


def _store_name(plan: Plan) -> StoreName:
    is_own = any(store.id != store.source for store in plan.stores if store.source is not None)
    return one_per_query if is_own else one_per_source


def _joined(plan: Plan, queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Return the queries with the selections and windows of the members that stand for their relations."""
    members = {
        (output.query, alias): path_members(start, steps)[position]
        for start, steps, output in endings(plan)
        for alias, position in output.positions
    }
    return tuple(
        replace(
            query,
            relations=tuple(
                replace(
                    relation,
                    selections=members[query.name, relation.alias].selection.conjuncts,
                    alternatives=tuple(each.conjuncts for each in members[query.name, relation.alias].selection.any_of),
                    window_us=members[query.name, relation.alias].window_us,
                )
                for relation in query.relations
            ),
        )
        for query in queries
    )


def _fills(
    plan: Plan, orders: list[ProbeOrder], joined: Mapping[str, Query], store_name: StoreName
) -> Iterator[tuple[ProbeOrder, tuple[str, ...]]]:
    """Yield the orders that fill intermediate stores, in the aliases of a query that reads the store.

    A store that only fills larger ones is read by the orders that fill these, so the largest come first.
    """
    stores = [store.id for store, _ in intermediates(plan)]
    filled = list(fillings(plan))
    read: dict[str, Subset] = {}

    def note(order: ProbeOrder) -> None:
        for subset in stores_read(order, joined[order.query], store_name):
            read.setdefault(subset.store, subset)

    for order in orders if stores else ():
        note(order)
    for store in reversed(stores):
        subset = read[store]
        for _, steps, fill in filled:
            if fill.store == store:
                places = sorted(range(len(fill.positions)), key=fill.positions.__getitem__)
                aliases = tuple(subset.aliases[place] for place in places)
                order = ProbeOrder(query=subset.query.name, units=units_of(steps, aliases), fills=True)
                note(order)
                yield order, _edges(steps)


def stores_read(order: ProbeOrder, query: Query, store_name: StoreName) -> Iterator[Subset]:
    """Yield the intermediate stores that an order probes."""
    return (Subset.of(query, unit, store_name) for unit in order.units if len(unit) > 1)
