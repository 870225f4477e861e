"""Split the network into parts that can be decided one by one.

Two decisions depend on each other if they concern arcs through one node (other than a root, where everything that
starts alike begins), arcs that probe an intermediate store and arcs that fill it, or arcs that probe one store whose
partitioning is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait.optimizer.multi_query.network import Ints, Network


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
