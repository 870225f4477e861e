"""Decide probe orders, intermediate stores and partitionings for all queries at once (paper 000, section V)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import storage_budget
from plait.optimizer.multi_query.components import Component, components
from plait.optimizer.multi_query.explore import Explorer
from plait.optimizer.multi_query.highs import Limits
from plait.optimizer.multi_query.network import Network
from plait.optimizer.multi_query.network_paths import Chosen, greedy_paths, orders_of
from plait.optimizer.multi_query.patterns import ContentSizes, gather
from plait.optimizer.multi_query.problem import Weights, problem
from plait.optimizer.multi_query.solution import ArcSolution
from plait.optimizer.multi_query.solver import search, solve
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Solution
from plait.query.model import Query
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Probe orders for every query and every intermediate store in use, and how good they are."""

    orders: tuple[ProbeOrder, ...]
    solution: Solution


def decide(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Decision:
    """Return the cheapest probe orders that could be found; equal input gives an equal decision.

    They are never worse than those of `greedy`. Only where `options.time_limit_s` ends the search does the decision
    depend on the machine's speed.
    """
    deadline = perf_counter() + options.time_limit_s
    return settle(explore(queries, statistics, options), Limits(seconds=deadline - perf_counter(), gap=options.gap))


def settle(space: Space, limits: Limits) -> Decision:
    """Return the cheapest probe orders of a search space that could be found within the limits."""
    deadline = perf_counter() + limits.seconds

    def solved(component: Component, weights: Weights) -> _Part:
        solution = space.start(component, weights)
        outcome = solve(solution, Limits(seconds=deadline - perf_counter(), gap=limits.gap))
        return _Part(component=component, solution=solution, solver=outcome.solver, bound=outcome.bound)

    parts = space.parts(solved)
    return Decision(
        orders=orders_of(space.network, _chosen(space.network, parts), space.queries), solution=_solution(parts)
    )


def quick_cost(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> float:
    """Return a cost that local search alone reaches, usually a few percent above that of `decide`."""
    space = explore(queries, statistics, options)

    def searched(component: Component, weights: Weights) -> _Part:
        solution = space.start(component, weights)
        search(solution)
        return _Part(component=component, solution=solution, solver="local-search", bound=0.0)

    return sum(part.solution.cost for part in space.parts(searched))


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All that `decide` chooses from, and the greedy probe orders as paths through it."""

    queries: Mapping[str, Query]
    network: Network
    paths: Mapping[int, list[int]]
    weights: Weights
    left: float

    def start(self, component: Component, weights: Weights) -> ArcSolution:
        """Return the greedy probe orders as a solution for one component, its stores partitioned as suits them."""
        asked = problem(self.network, component, weights)
        place = {arc: index for index, arc in enumerate(asked.arcs.tolist())}
        solution = ArcSolution(asked)
        for goal in component.goals.tolist():
            solution.follow([place[arc] for arc in self.paths[goal]])
        solution.partition_well()
        return solution

    def parts(self, solved: Callable[[Component, Weights], _Part]) -> list[_Part]:
        """Return all components, solved; as one if they would exceed the storage budget together."""
        parts = [solved(component, self.weights) for component in components(self.network)]
        if sum(part.solution.taken for part in parts) <= self.left:
            return parts
        limited = replace(self.weights, budget=self.left)
        return [solved(component, limited) for component in components(self.network, joined=True)]


def explore(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Space:
    """Return the search space of these queries."""
    by_name = {query.name: query for query in sorted(queries, key=lambda query: query.name)}
    cardinality = Cardinality(statistics=statistics)
    limit = storage_budget(tuple(by_name.values()), cardinality, options)
    explorer = Explorer(
        options=options,
        sizes=ContentSizes(cardinality),
        widths=limit.width_bytes,
        wanted=lambda rows, bytes: limit.size(rows, bytes) <= limit.left,
    )
    network = explorer.network(gather(queries))
    sizes = np.array(
        [0.0 if (made := store.intermediate) is None else limit.size(made.rows, made.bytes) for store in network.stores]
    )
    return Space(
        queries=by_name,
        network=network,
        paths=greedy_paths(network, by_name, statistics, options),
        weights=Weights(probe=options.probe_weight, store=options.store_weight, budget=math.inf, sizes=sizes),
        left=limit.left,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A solved component."""

    component: Component
    solution: ArcSolution
    solver: str
    bound: float


def _chosen(network: Network, parts: list[_Part]) -> Chosen:
    """Return what was chosen in all components, as indices of the network."""
    arc_into: dict[int, int] = {}
    stores: list[int] = []
    for part in parts:
        asked = part.solution.problem
        arcs = asked.arcs[[arc for arc in part.solution.arc if arc >= 0]].tolist()
        arc_into.update(zip(network.head[arcs].tolist(), arcs, strict=True))
        stores += [
            store
            for place, store in enumerate(part.component.stores.tolist())
            if asked.fills[place] and part.solution.uses[place]
        ]
    return Chosen(arc_into=arc_into, stores=tuple(sorted(stores)))


def _solution(parts: list[_Part]) -> Solution:
    """Return how good the whole is. Without anything to decide it is optimal."""
    objective, bound = sum(part.solution.cost for part in parts), sum(part.bound for part in parts)
    return Solution(
        solver="highs" if any(part.solver == "highs" for part in parts) else "local-search",
        objective=objective,
        bound=min(bound, objective),
        gap=max(objective - bound, 0.0) / objective if objective > 0 else 0.0,
    )
