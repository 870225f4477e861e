"""Decide probe orders, intermediate stores and partitionings for all queries at once (paper 000, section V)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import storage_budget
from plait.optimizer.linear.highs import Limits
from plait.optimizer.multi_query.explore import Explorer
from plait.optimizer.multi_query.network import Intermediate, Network
from plait.optimizer.multi_query.patterns import ContentSizes, distinct_patterns
from plait.optimizer.multi_query.problem import Component, Weights, components, problem
from plait.optimizer.multi_query.solution import ArcSolution
from plait.optimizer.multi_query.solver import search, solve
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, cheapest_extension, choose_orders
from plait.plan.expected import Solution
from plait.query.masks import positions
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
    return cheapest_orders(
        explore(queries, statistics, options), Limits(seconds=deadline - perf_counter(), gap=options.gap)
    )


def cheapest_orders(space: Space, limits: Limits) -> Decision:
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
    network = explorer.network(distinct_patterns(queries))
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


def greedy_paths(
    network: Network, queries: Mapping[str, Query], statistics: Statistics, options: PlanOptions
) -> dict[int, list[int]]:
    """Return for every goal the arcs of a greedy probe order that leads there."""
    nodes = {node: index for index, node in enumerate(network.nodes)}
    arcs = {ends: arc for arc, ends in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True))}
    paths: dict[int, list[int]] = {}
    for number, asked in enumerate(network.asked):
        name, aliases = asked.queries[0]
        place = {alias: position for position, alias in enumerate(aliases)}
        for order in choose_orders((queries[name],), statistics, options, cheapest_extension):
            begin = network.member_bits[number][place[order.units[0][0]]]
            mask, visited = 0, []
            for unit in order.units:
                mask |= sum(1 << place[alias] for alias in unit)
                visited.append(nodes[begin, network.content(number, mask)])
            paths[visited[-1]] = [arcs[ends] for ends in pairwise(visited)]
    return paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The arc into each node that has one, by node, and the intermediate stores in use; indices of the network."""

    arc_into: Mapping[int, int]
    stores: tuple[int, ...]


def orders_of(network: Network, chosen: Chosen, queries: Mapping[str, Query]) -> tuple[ProbeOrder, ...]:
    """Return the probe orders of all queries, then those that fill intermediate stores."""
    orders = []
    for number, asked in enumerate(network.asked):
        for goal in network.goals[number]:
            bits = network.member_bits[number]
            for name, aliases in asked.queries:
                units = _units(network, chosen, goal, dict(zip(bits, aliases, strict=True)))
                orders.append(ProbeOrder(query=name, units=_in_from_order(units, queries[name])))
    orders.sort(key=lambda order: (order.query, order.units[0]))
    for store in chosen.stores:
        intermediate = network.stores[store].intermediate
        if intermediate is not None:
            orders += _fills(network, chosen, intermediate, queries)
    return tuple(orders)


def _fills(
    network: Network, chosen: Chosen, intermediate: Intermediate, queries: Mapping[str, Query]
) -> list[ProbeOrder]:
    name, aliases = network.asked[intermediate.asked].queries[0]
    members = [aliases[position] for position in positions(intermediate.mask)]
    alias_of = dict(zip(intermediate.member_bits, members, strict=True))
    return [
        ProbeOrder(
            query=name,
            units=_in_from_order(_units(network, chosen, fill, alias_of), queries[name]),
            fills=True,
        )
        for fill in intermediate.fills
    ]


def _units(network: Network, chosen: Chosen, node: int, alias_of: Mapping[int, str]) -> list[set[str]]:
    """Return what the path to a node probes, the starting relation first."""
    units: list[set[str]] = []
    while not network.is_root[node]:
        arc = chosen.arc_into[node]
        before = int(network.tail[arc])
        new = network.nodes[node][1] & ~network.nodes[before][1]
        units.append({alias for bit, alias in alias_of.items() if bit & new})
        node = before
    units.append({alias_of[network.nodes[node][0]]})
    return units[::-1]


def _in_from_order(units: list[set[str]], query: Query) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(relation.alias for relation in query.relations if relation.alias in unit) for unit in units)
