"""Read probe orders back out of a plan, so that they can be changed and planned again.

Whatever strategy made it, a plan is its probe orders and the queries that are joined, which may cover the user's;
`build` makes an equal plan of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Fill, Member, Output, Plan, Step
from plait.plan.relations import StoreName, one_per_query, one_per_source
from plait.plan.traversals import endings, fillings, intermediates, path_members, units_of
from plait.query.model import Query, Relation

Ending: TypeAlias = tuple[Member, tuple[Step, ...], Output]
"""Where a path starts, its steps, and a query that is complete at its end."""


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
    return _choices(plan, queries, list(endings(plan)))


def reading_choices(plan: Plan, queries: tuple[Query, ...]) -> Choices:
    """Return of that what has to do with intermediate stores: the orders that probe one, and those that fill it."""
    reading = [ending for ending in endings(plan) if any(step.parts for step in ending[1])]
    concerned = {output.query for _, _, output in reading}
    return _choices(plan, tuple(query for query in queries if query.name in concerned), reading)


def _choices(plan: Plan, queries: tuple[Query, ...], found: Sequence[Ending]) -> Choices:
    joined = joined_queries(plan, queries, found)
    store_name = store_name_of(plan)
    taken = [
        (ProbeOrder(query=output.query, units=units_of(steps, output.aliases)), _edges(steps))
        for _, steps, output in found
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


def store_name_of(plan: Plan) -> StoreName:
    """Return how the stores of sources are named in a plan."""
    is_own = any(store.id != store.source for store in plan.stores if store.source is not None)
    return one_per_query if is_own else one_per_source


def joined_queries(plan: Plan, queries: tuple[Query, ...], found: Iterable[Ending]) -> tuple[Query, ...]:
    """Return the queries with the selections and windows of the members that stand for their relations in `found`, in
    which each of them must end.
    """
    members = {
        (output.query, alias): path_members(start, steps)[position]
        for start, steps, output in found
        for alias, position in output.positions
    }
    return tuple(
        replace(
            query,
            relations=tuple(as_member(relation, members[query.name, relation.alias]) for relation in query.relations),
        )
        for query in queries
    )


def as_member(relation: Relation, member: Member) -> Relation:
    """Return a relation with the selection and window of a member that stands for it."""
    return replace(
        relation,
        selections=member.selection.conjuncts,
        alternatives=tuple(each.conjuncts for each in member.selection.any_of),
        window_us=member.window_us,
    )


def _fills(
    plan: Plan, orders: list[ProbeOrder], joined: Mapping[str, Query], store_name: StoreName
) -> Iterator[tuple[ProbeOrder, tuple[str, ...]]]:
    """Yield the orders that fill intermediate stores, in the aliases of a query that reads the store.

    A store that only fills larger ones is read by the orders that fill these, so the largest come first.
    """
    stores = [store.id for store, _ in intermediates(plan)]
    filled = fills_by_store(plan) if stores and orders else {}
    read: dict[str, Subset] = {}

    def note(order: ProbeOrder) -> None:
        for subset in stores_read(order, joined[order.query], store_name):
            read.setdefault(subset.store, subset)

    for order in orders if stores else ():
        note(order)
    for store in reversed(stores):
        if store in read:
            for order, edges in filling_orders(read[store], filled[store]):
                note(order)
                yield order, edges


Filling: TypeAlias = tuple[tuple[Step, ...], Fill]
"""The steps that end in an intermediate store, and how it takes what they find."""


def fills_by_store(plan: Plan) -> dict[str, list[Filling]]:
    """Return the ways by which each intermediate store of a plan is filled."""
    by_store: dict[str, list[Filling]] = {}
    for _, steps, fill in fillings(plan):
        by_store.setdefault(fill.store, []).append((steps, fill))
    return by_store


def filling_orders(subset: Subset, filled: Iterable[Filling]) -> Iterator[tuple[ProbeOrder, tuple[str, ...]]]:
    """Yield how an intermediate store is filled, in the aliases of a query that reads it, with the edges."""
    for steps, fill in filled:
        places = sorted(range(len(fill.positions)), key=fill.positions.__getitem__)
        aliases = tuple(subset.aliases[place] for place in places)
        yield ProbeOrder(query=subset.query.name, units=units_of(steps, aliases), fills=True), _edges(steps)


def stores_read(order: ProbeOrder, query: Query, store_name: StoreName) -> Iterator[Subset]:
    """Yield the intermediate stores that an order probes."""
    return (Subset.of(query, unit, store_name) for unit in order.units if len(unit) > 1)
