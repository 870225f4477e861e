"""What is left to decide: the network in parts that can be decided one by one, each a problem with prices.

Two decisions depend on each other if they concern arcs through one node (other than a root, where everything that
starts alike begins), arcs that probe an intermediate store and arcs that fill it, or arcs that probe one store whose
partitioning is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plait.optimizer.multi_query.network import Floats, Ints, Network
from plait.optimizer.multi_query.patterns import Pattern
from plait.optimizer.multi_query.splits import Places, SplitSet, split_sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Ascending indices of arcs, of stores that they probe, and of the goals (nodes) that queries must reach."""

    arcs: Ints
    stores: Ints
    goals: Ints


def components(network: Network, *, joined: bool = False) -> tuple[Component, ...]:
    """Return the independent parts; `joined` makes them one, for a constraint over all of them."""
    goals = np.unique(np.array([goal for nodes in network.goals for goal in nodes], dtype=np.int64))
    goals = goals[~network.is_root[goals]] if len(goals) else goals
    if joined or not len(network.tail):
        whole = Component(arcs=np.arange(len(network.tail)), stores=np.unique(network.store), goals=goals)
        return (whole,) if len(network.tail) else ()
    group = _groups(network)
    of_arc = group[network.head]
    parts = []
    for each in np.unique(group[goals]):
        arcs = np.flatnonzero(of_arc == each)
        parts.append(Component(arcs=arcs, stores=np.unique(network.store[arcs]), goals=goals[group[goals] == each]))
    return tuple(parts)


def _groups(network: Network) -> Ints:
    """Return for every node the smallest node of its component."""
    parent = list(range(len(network.nodes)))

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def unite(one: int, other: int) -> None:
        one, other = find(one), find(other)
        parent[max(one, other)] = min(one, other)

    first: dict[int, int] = {}
    for store, probed in enumerate(network.stores):
        if probed.intermediate is not None:
            first[store] = probed.intermediate.fills[0]
            for fill in probed.intermediate.fills[1:]:
                unite(first[store], fill)
    is_coupling = [probed.intermediate is not None or probed.is_open for probed in network.stores]
    roots = network.is_root.tolist()
    for tail, head, store in zip(network.tail.tolist(), network.head.tolist(), network.store.tolist(), strict=True):
        if not roots[tail]:
            unite(tail, head)
        if is_coupling[store]:
            unite(first.setdefault(store, head), head)
    return np.array([find(node) for node in range(len(parent))], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is minimized: `probe` per probe tuple and `store` per row that is kept in
    an intermediate store, both per second of event time.

    All intermediate stores in use together may take `budget` of `sizes` (by store of the network).
    """

    probe: float
    store: float
    budget: float
    sizes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Nodes and stores are numbered anew. Arcs into a node come before the arcs out of it.

    By arc: `arcs` its index in the network, `joined` the number of members before it, `price`, and `surcharge` if it
    does not know the partition, that is if the key its store is partitioned by is not among `known`. By store: `fills`
    the nodes that have to be reached if it is an intermediate store in use, () for a source; `opening` what using it
    costs, `size` of `budget`; `choices` the number of keys it may be partitioned by. `queries` holds the goals of each
    connected query of streams without self-joins, `trees` the sets that plans by binary trees are made of
    (`plait.optimizer.multi_query.splits`).
    """

    arcs: Ints
    tail: Ints
    head: Ints
    joined: Ints
    store: Ints
    price: Floats
    surcharge: Floats
    known: tuple[frozenset[int], ...]
    is_root: npt.NDArray[np.bool_]
    goals: Ints
    queries: tuple[tuple[int, ...], ...]
    trees: tuple[tuple[SplitSet, ...], ...]
    fills: tuple[tuple[int, ...], ...]
    opening: Floats
    size: Floats
    budget: float
    choices: Ints

    @property
    def is_open(self) -> npt.NDArray[np.bool_]:
        """Return for each store whether it may be partitioned in more than one way and somebody would pay for it."""
        pays = np.zeros(len(self.choices), dtype=np.bool_)
        pays[self.store[self.surcharge > 0]] = True
        return pays & (self.choices > 1)


def problem(network: Network, component: Component, weights: Weights) -> Problem:
    """Return the problem of one component."""
    arcs = component.arcs
    nodes, ends = np.unique(np.concatenate((network.tail[arcs], network.head[arcs])), return_inverse=True)
    store_place = {store: index for index, store in enumerate(component.stores.tolist())}
    node_place = {node: index for index, node in enumerate(nodes.tolist())}
    probed = [network.stores[store] for store in component.stores.tolist()]
    parallelism = np.array([each.parallelism for each in network.stores], dtype=np.float64)
    price = network.cost[arcs] * weights.probe
    known, bounds = network.known.tolist(), network.known_from.tolist()
    return Problem(
        arcs=arcs,
        tail=ends[: len(arcs)],
        head=ends[len(arcs) :],
        joined=network.members[network.tail[arcs]],
        store=np.array([store_place[store] for store in network.store[arcs].tolist()], dtype=np.int64),
        price=price,
        surcharge=price * (parallelism[network.store[arcs]] - 1),
        known=tuple(frozenset(known[bounds[arc] : bounds[arc + 1]]) for arc in arcs.tolist()),
        is_root=network.is_root[nodes],
        goals=np.array([node_place[goal] for goal in component.goals.tolist()], dtype=np.int64),
        queries=tuple(
            tuple(node_place[goal] for goal in goals)
            for asked, goals in zip(network.asked, network.goals, strict=True)
            if all(goal in node_place for goal in goals) and _is_counted(asked.pattern)
        ),
        trees=_trees(network, node_place, tuple(zip(*ends.reshape(2, -1).tolist(), strict=True))),
        fills=tuple(
            () if each.intermediate is None else tuple(node_place[node] for node in each.intermediate.fills)
            for each in probed
        ),
        opening=np.array(
            [0.0 if each.intermediate is None else each.intermediate.rows_per_s * weights.store for each in probed]
        ),
        size=weights.sizes[component.stores],
        budget=weights.budget,
        choices=np.array([each.choices for each in probed], dtype=np.int64),
    )


def _is_counted(pattern: Pattern) -> bool:
    """Return whether the orders that fill intermediate stores of this pattern are orders of the pattern itself."""
    return all(pattern.is_stream) and pattern.is_connected and not any(member.ordinal for member in pattern.members)


def _trees(
    network: Network, node_place: dict[int, int], ends: tuple[tuple[int, int], ...]
) -> tuple[tuple[SplitSet, ...], ...]:
    """Return the split sets of all queries whose goals are all in the problem; `ends` are (tail, head) by arc."""
    places = Places(
        content={network.nodes[node]: node for node in node_place},
        node=node_place,
        arc={pair: arc for arc, pair in enumerate(ends)},
    )
    made = (
        split_sets(network, number, places)
        for number, goals in enumerate(network.goals)
        if all(goal in node_place for goal in goals) and len(network.member_bits[number]) > 2
    )
    return tuple(sets for sets in made if sets)


class AncestorArcs:
    """Which arcs may lie on the way to a node of a problem; `into` holds the arcs into each node."""

    def __init__(self, problem: Problem) -> None:
        self.into: list[list[int]] = [[] for _ in problem.is_root]
        self._tail = problem.tail.tolist()
        for arc, head in enumerate(problem.head.tolist()):
            self.into[head].append(arc)

    def to(self, node: int) -> list[int]:
        """Return the arcs on all paths to a node, ascending."""
        leading: list[int] = []
        seen, waiting = {node}, [node]
        while waiting:
            arcs = self.into[waiting.pop()]
            leading += arcs
            for arc in arcs:
                if self._tail[arc] not in seen:
                    seen.add(self._tail[arc])
                    waiting.append(self._tail[arc])
        return sorted(leading)
