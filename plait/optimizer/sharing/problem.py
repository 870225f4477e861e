"""What is left to decide: one independent part of the network, with prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plait.optimizer.sharing.components import Component
from plait.optimizer.sharing.network import Floats, Ints, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is minimized: `probe` per probe tuple and `store` per row of an intermediate store.

    All intermediate stores in use together may take `budget` of `sizes` (by store of the network).
    """

    probe: float
    store: float
    budget: float
    sizes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Nodes and stores are numbered anew. Arcs into a node come before the arcs out of it.

    By arc: `arcs` its index in the network, `price`, and `surcharge` if it does not know the partition, that is if the
    key its store is partitioned by is not among `known`. By store: `fills` the nodes that have to be reached if it is
    an intermediate store in use, () for a source; `opening` what using it costs, `size` of `budget`; `choices` the
    number of keys it may be partitioned by.
    """

    arcs: Ints
    tail: Ints
    head: Ints
    store: Ints
    price: Floats
    surcharge: Floats
    known: tuple[frozenset[int], ...]
    is_root: npt.NDArray[np.bool_]
    goals: Ints
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
        store=np.array([store_place[store] for store in network.store[arcs].tolist()], dtype=np.int64),
        price=price,
        surcharge=price * (parallelism[network.store[arcs]] - 1),
        known=tuple(frozenset(known[bounds[arc] : bounds[arc + 1]]) for arc in arcs.tolist()),
        is_root=network.is_root[nodes],
        goals=np.array([node_place[goal] for goal in component.goals.tolist()], dtype=np.int64),
        fills=tuple(
            () if each.intermediate is None else tuple(node_place[node] for node in each.intermediate.fills)
            for each in probed
        ),
        opening=np.array(
            [0.0 if each.intermediate is None else each.intermediate.rows * weights.store for each in probed]
        ),
        size=weights.sizes[component.stores],
        budget=weights.budget,
        choices=np.array([each.choices for each in probed], dtype=np.int64),
    )
