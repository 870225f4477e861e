"""What probe orders cost together: the tuples that are sent and the rows that are found, each step once."""

from __future__ import annotations

from collections.abc import Iterable

from plait.optimizer.assemble.intermediate_stores import member_of
from plait.optimizer.assemble.probe_trees import Arrow, arrow_to
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes, arriving
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.relations import one_per_source
from plait.query.model import Query
from plait.query.predicates import Equality


def orders_cost(
    queries: Iterable[Query], orders: Iterable[ProbeOrder], cardinality: Cardinality, options: PlanOptions
) -> float:
    """Return the cost of all orders per second, of relations one by one: a tuple that knows a key of what it probes is
    taken to know its partition.
    """
    sizes = {query.name: JoinSizes(query, cardinality, options) for query in queries}
    taken: dict[tuple[int, Arrow], int] = {}
    cost = 0.0
    for order in orders:
        known = sizes[order.query]
        query, streams = known.query, set(known.query.starts)
        (start,) = order.units[0]
        joined: tuple[str, ...] = (start,)
        node = taken.setdefault((-1, Arrow(member=member_of(query, start, one_per_source))), len(taken))
        for unit in order.units[1:]:
            arrow, (alias,) = arrow_to(query, joined, unit, one_per_source)
            before, joined = joined, (*joined, alias)
            is_new = (node, arrow) not in taken
            node = taken.setdefault((node, arrow), len(taken))
            if not is_new:
                continue
            is_told = any(isinstance(each, Equality) for each in arrow.predicates) and not known.is_at_random(alias)
            sent = arriving(known.size(frozenset(before)), len(streams.intersection(before)))
            found = arriving(known.size(frozenset(joined)), len(streams.intersection(joined)))
            cost += known.pace(start) * (sent * (1 if is_told else known.parallelism(alias)) + found)
    return cost


__all__ = ["orders_cost"]
