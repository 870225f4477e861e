"""What a plan would cost without one of its intermediate stores, everything else left as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.draft import Draft
from plait.optimizer.assemble.estimates import write_estimates
from plait.optimizer.assemble.flows import estimate_flows
from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.assemble.orders_of_plan import choices_of, stores_read
from plait.optimizer.assemble.probe_trees import merge_into_trees
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, may_follow
from plait.plan.model import Plan, ProbeTree, Step
from plait.query.model import Query
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """A probe order, its edges in the plan, the stores it reads by their relations, and the one it fills."""

    order: ProbeOrder
    edges: tuple[str, ...]
    reads: Mapping[tuple[str, ...], str]
    fills: str | None


class MarginalBenefit:
    """Answers for every intermediate store of a plan what it saves.

    Orders that read the store probe its parts one by one instead, the smallest join first, and steps that others take
    anyway cost nothing more; the orders that fill it are left out. Partitionings stay. A solver might do better without
    it, so what is saved is an upper bound.
    """

    def __init__(self, plan: Plan, queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> None:
        self._plan, self._options = plan, options
        self._cardinality = Cardinality(statistics=statistics)
        choices = choices_of(plan, queries)
        by_name = {query.name: query for query in queries}
        self._queries = CoveredQueries.of((by_name[query.name] for query in choices.joined), choices.joined)
        self._joined = {query.name: query for query in choices.joined}
        self._store_name, self._sizes = choices.store_name, dict[str, JoinSizes]()
        self._orders = [
            _Order(
                order=order,
                edges=edges,
                reads={subset.aliases: subset.store for subset in self._stores_read(order)},
                fills=self._target(order) if order.fills else None,
            )
            for order, edges in zip(choices.orders, choices.edges, strict=True)
        ]
        self._needed = Counter(edge for each in self._orders for edge in each.edges)
        steps = {path: step for tree in plan.trees for path, step in _paths(tree)}
        self._edges = {path: step.edge for path, step in steps.items()}
        self._costs = {step.edge: step.estimate.probe_tuples_per_s or 0.0 for step in steps.values()}

    def saved_per_s(self, store: str) -> float:
        """Return how many more probe tuples per second of event time there would be without this store."""
        changed = [each for each in self._orders if store in each.reads.values()]
        given_up = [each for each in self._orders if each.fills == store and each not in changed]
        needed = self._needed - Counter(edge for each in (*changed, *given_up) for edge in each.edges)
        gone = {edge for each in (*changed, *given_up) for edge in each.edges if not needed[edge]}
        instead = (
            replace(each.order, units=tuple(self._without(each, store))) for each in changed if each.fills != store
        )
        draft = Draft(
            queries=self._queries,
            orders=tuple(instead),
            options=self._options,
            cardinality=self._cardinality,
            store_name=self._store_name,
            stores=self._plan.stores,
        )
        for step_of_assembly in (merge_into_trees, estimate_flows, write_estimates):
            draft = step_of_assembly(draft)
        added = sum(
            step.estimate.probe_tuples_per_s or 0.0
            for tree in draft.trees
            for path, step in _paths(tree)
            if not needed[self._edges.get(path, "")]
        )
        return added - sum(self._costs[edge] for edge in sorted(gone))

    def _stores_read(self, order: ProbeOrder) -> Iterator[Subset]:
        return stores_read(order, self._joined[order.query], self._store_name)

    def _target(self, order: ProbeOrder) -> str:
        covered = [alias for unit in order.units for alias in unit]
        return Subset.of(self._joined[order.query], covered, self._store_name).store

    def _without(self, each: _Order, store: str) -> Iterator[tuple[str, ...]]:
        """Yield the units of an order, the store's relations one by one."""
        query, joined = self._joined[each.order.query], frozenset[str]()
        if query.name not in self._sizes:
            self._sizes[query.name] = JoinSizes(query, self._cardinality, self._options)
        sizes = self._sizes[query.name]
        parts = next(frozenset(aliases) for aliases, name in each.reads.items() if name == store)
        for unit in each.order.units:
            if frozenset(unit) != parts:
                yield unit
                joined |= frozenset(unit)
                continue
            while not parts <= joined:
                chosen = self._next(sizes, joined, parts)
                yield (chosen,)
                joined |= {chosen}

    @staticmethod
    def _next(sizes: JoinSizes, joined: frozenset[str], parts: frozenset[str]) -> str:
        near = (alias for alias in may_follow(sizes.query, joined) if alias in parts)
        return min(near, key=lambda alias: sizes.size(joined | {alias}))


def _paths(tree: ProbeTree) -> Iterator[tuple[tuple[object, ...], Step]]:
    """Yield what a step computes, by content, and the step."""
    for path, step in tree.walk():
        taken = ((each.member, each.predicates, each.parts) for each in (*path, step))
        yield (tree.start, *taken), step
