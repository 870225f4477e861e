"""From one join tree a query to the plan of all, within one storage budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.estimate.storage_budget import StorageBudget, storage_budget
from plait.optimizer.join_trees.join_tree import Aliases, Inner, JoinTrees
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan
from plait.plan.relations import one_per_source
from plait.query.model import Query
from plait.stats.model import Statistics


@dataclass(slots=True, kw_only=True)
class RemainingBudget:
    """What the budget leaves for intermediate stores. One that a query before has already costs nothing more."""

    budget: StorageBudget
    left: float
    kept: set[str] = field(default_factory=set)

    def size(self, trees: JoinTrees, operator: Aliases) -> float:
        """Return what the store of an operator would take, in rows or bytes."""
        if store_of(trees.query, operator) in self.kept:
            return 0.0
        rows = trees.rows(operator)
        if not self.budget.in_bytes:
            return rows
        sources = [trees.query.relation(alias).source for alias in trees.members(operator)]
        return rows * sum(self.budget.width_bytes[source] for source in sources)

    def size_of_all(self, trees: JoinTrees, inner: Inner) -> float:
        """Return what the stores of these operators would take; equal ones are one."""
        stores = {store_of(trees.query, operator): operator for operator in trees.ordered(inner)}
        return sum(self.size(trees, operator) for operator in stores.values())

    def holds(self, trees: JoinTrees, inner: Inner) -> bool:
        """Tell whether the stores of all these operators fit."""
        return self.size_of_all(trees, inner) <= self.left

    def take(self, trees: JoinTrees, inner: Inner) -> None:
        """Give these operators their stores."""
        self.left -= self.size_of_all(trees, inner)
        self.kept |= {store_of(trees.query, operator) for operator in inner}


ChooseTree: TypeAlias = Callable[[JoinTrees, RemainingBudget], Inner]
"""Chooses the inner operators of a query's join tree."""


def store_of(query: Query, operator: Aliases) -> str:
    """Return the id of the store an inner operator would have."""
    return Subset.of(query, operator, one_per_source).store


def plan_trees(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions, choose: ChooseTree) -> Plan:
    """Plan every query as the join tree chosen for it, in order of names, out of the budget that is left.

    Equal stores are one, filled as the first operator that has it fills it. With more budget a query takes no more
    probes, but it may take budget from those after it.
    """
    cardinality = Cardinality(statistics=statistics)
    budget = storage_budget(queries, cardinality, options)
    remaining = RemainingBudget(budget=budget, left=budget.left)
    orders: list[ProbeOrder] = []
    for query in sorted(queries, key=lambda query: query.name):
        trees = JoinTrees(JoinSizes(query, cardinality, options))
        inner = choose(trees, remaining)
        orders += _orders(trees, inner, remaining)
        remaining.take(trees, inner)
    return build(queries, orders, statistics, options)


def _orders(trees: JoinTrees, inner: Inner, remaining: RemainingBudget) -> Iterator[ProbeOrder]:
    """Return the probe orders of a query and of the stores that nobody fills yet, each filled for one operator."""
    stores = {store_of(trees.query, operator): operator for operator in reversed(trees.ordered(inner))}
    filling = {operator for store, operator in stores.items() if store not in remaining.kept}
    return (order for operator, order in trees.orders(inner) if operator is None or operator in filling)
