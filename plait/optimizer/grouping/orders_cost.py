"""What probe orders cost together: the tuples that are sent and the rows that are found, each step once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from plait.optimizer.assemble.intermediate_stores import member_of
from plait.optimizer.assemble.probe_trees import Arrow, arrow_to
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes, arriving
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.relations import one_per_source
from plait.query.model import Query
from plait.query.predicates import Equality

Costs: TypeAlias = tuple[tuple[int, float], ...]
"""The steps of a query's orders, each by a number that equal steps have, with what it costs per second."""


@dataclass(slots=True, kw_only=True)
class StepNumbers:
    """Tells steps that are the same from others: those that do the same at the end of the same path."""

    cardinality: Cardinality
    options: PlanOptions
    _numbers: dict[tuple[int, Arrow], int] = field(default_factory=dict)

    def costs(self, query: Query, orders: Iterable[ProbeOrder]) -> Costs:
        """Return the steps of a query's orders, of relations one by one: a tuple that knows a key of what it probes is
        taken to know its partition.
        """
        sizes = JoinSizes(query, self.cardinality, self.options)
        return tuple(dict(step for order in orders for step in self._steps(sizes, order)).items())

    def _steps(self, sizes: JoinSizes, order: ProbeOrder) -> Iterator[tuple[int, float]]:
        query, streams = sizes.query, set(sizes.query.starts)
        (start,) = order.units[0]
        joined: tuple[str, ...] = (start,)
        node = self._number(-1, Arrow(member=member_of(query, start, one_per_source)))
        for unit in order.units[1:]:
            arrow, (alias,) = arrow_to(query, joined, unit, one_per_source)
            before, joined = joined, (*joined, alias)
            node = self._number(node, arrow)
            is_told = any(isinstance(each, Equality) for each in arrow.predicates) and not sizes.is_at_random(alias)
            sent = arriving(sizes.size(frozenset(before)), len(streams.intersection(before)))
            found = arriving(sizes.size(frozenset(joined)), len(streams.intersection(joined)))
            yield node, sizes.pace(start) * (sent * (1 if is_told else sizes.parallelism(alias)) + found)

    def _number(self, before: int, arrow: Arrow) -> int:
        return self._numbers.setdefault((before, arrow), len(self._numbers))


def orders_cost(
    queries: Iterable[Query], orders: Iterable[ProbeOrder], cardinality: Cardinality, options: PlanOptions
) -> float:
    """Return the cost of all orders per second."""
    numbers = StepNumbers(cardinality=cardinality, options=options)
    by_query: dict[str, list[ProbeOrder]] = {}
    for order in orders:
        by_query.setdefault(order.query, []).append(order)
    steps: dict[int, float] = {}
    for query in queries:
        steps.update(numbers.costs(query, by_query.get(query.name, ())))
    return sum(steps.values())


_ROUNDS = 4


def cheaper_variants(own: list[Costs], wide: list[Costs]) -> list[bool]:
    """Return of each query whether it does better wide, given what the others do. From all of them wide on, one after
    the other leaves, or comes back, while that lowers the cost of all.
    """
    taken = Counter(node for steps in wide for node, _ in steps)
    is_wide = [True] * len(own)

    def alone(steps: Costs) -> float:
        return sum(cost for node, cost in steps if not taken[node])

    for _ in range(_ROUNDS):
        before = list(is_wide)
        for place, variants in enumerate(zip(own, wide, strict=True)):
            taken.subtract(node for node, _ in variants[is_wide[place]])
            is_wide[place] = alone(variants[True]) < alone(variants[False])
            taken.update(node for node, _ in variants[is_wide[place]])
        if is_wide == before:
            break
    return is_wide


__all__ = ["Costs", "StepNumbers", "cheaper_variants", "orders_cost"]
