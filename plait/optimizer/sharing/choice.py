"""A choice of arcs that can be taken apart and put together again.

The choice is a tree for each starting member: every node that somebody needs has one arc into it. A node is needed as a
goal, as the tail of a chosen arc, or because an intermediate store in use has to be filled from there. So the cheapest
way to a node, given everything chosen so far, is a shortest path from the nearest needed node, where an arc that probes
an unused intermediate store also costs what it takes to fill it. These costs are upper bounds (two orders that
fill a store may have steps in common with each other), and exact once an arc has been chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plait.optimizer.sharing.problem import Problem

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A choice as it was."""

    cost: float
    taken: float
    arc: list[int]
    needs: list[int]
    uses: list[int]
    key: list[int]


class Choice:
    """A mutable choice of arcs and partitioning keys, with its cost.

    `arc` is the arc into each node, -1 where there is none. `needs` counts who needs a node, `uses` the chosen arcs
    into a store: an intermediate store is in use exactly if that is above zero. `key` is each store's partitioning,
    -1 if it has none. A `banned` intermediate store is not put to use. If `allowed` is given, only these arcs
    (ascending) may be chosen.
    """

    def __init__(self, problem: Problem, allowed: Iterable[int] | None = None) -> None:
        self.problem = problem
        nodes, stores = len(problem.is_root), len(problem.fills)
        self.cost, self.taken, self.work = 0.0, 0.0, 0
        self.arc = [_NONE] * nodes
        self.needs, self.uses = [0] * nodes, [0] * stores
        self.key = [0 if choices else _NONE for choices in problem.choices.tolist()]
        self.banned = [False] * stores
        self._tail, self._head = problem.tail.tolist(), problem.head.tolist()
        self._store = problem.store.tolist()
        self._price: list[float] = problem.price.tolist()
        self._surcharge: list[float] = problem.surcharge.tolist()
        self._opening: list[float] = problem.opening.tolist()
        self._size: list[float] = problem.size.tolist()
        self._is_root = problem.is_root.tolist()
        self._into: list[list[int]] = [[] for _ in range(nodes)]
        self._at: list[list[int]] = [[] for _ in range(stores)]
        for arc in range(len(self._tail)) if allowed is None else allowed:
            self._into[self._head[arc]].append(arc)
            self._at[self._store[arc]].append(arc)

    def price(self, arc: int) -> float:
        """Return what an arc costs under the present partitioning, its store's filling apart."""
        if self._surcharge[arc] and self.key[self._store[arc]] not in self.problem.known[arc]:
            return self._price[arc] + self._surcharge[arc]
        return self._price[arc]

    def require(self, node: int) -> None:
        """Need a node once more, by the cheapest way there if it was not needed before."""
        self._require(node, {})

    def release(self, node: int) -> None:
        """Need a node once less; what only it needed is given up."""
        self.needs[node] -= 1
        if self.needs[node] or self._is_root[node]:
            return
        arc = self.arc[node]
        self.arc[node] = _NONE
        self.cost -= self.price(arc)
        self.leave(self._store[arc])
        self.release(self._tail[arc])

    def use(self, store: int) -> None:
        """Use a store once more; an intermediate one that was not in use has to be filled."""
        if self.problem.fills[store] and not self.uses[store]:
            self.cost += self._opening[store]
            self.taken += self._size[store]
            for fill in self.problem.fills[store]:
                self.require(fill)
        self.uses[store] += 1

    def leave(self, store: int) -> None:
        """Use a store once less; an intermediate one that is not in use any more need not be filled."""
        self.uses[store] -= 1
        if self.problem.fills[store] and not self.uses[store]:
            self.cost -= self._opening[store]
            self.taken -= self._size[store]
            for fill in self.problem.fills[store]:
                self.release(fill)

    def follow(self, path: Sequence[int]) -> None:
        """Choose the arcs of a path from a root, those after the last node that is needed already, and need its end."""
        heads = [self._head[arc] for arc in path]
        joined = max((place for place, node in enumerate(heads) if self.needs[node]), default=-1)
        for arc, node in zip(path[joined + 1 :], heads[joined + 1 :], strict=True):
            self.needs[self._tail[arc]] += 1
            self._arrive(node, arc)
        self.needs[heads[-1]] += 1

    def partition(self, store: int, key: int) -> None:
        """Partition a store by another key."""
        chosen = self.chosen(store)
        self.cost -= sum(self.price(arc) for arc in chosen)
        self.key[store] = key
        self.cost += sum(self.price(arc) for arc in chosen)

    def partition_well(self) -> None:
        """Partition every open store such that the chosen arcs cost least."""
        for store in self.problem.is_open.nonzero()[0].tolist():
            costs = []
            for key in range(int(self.problem.choices[store])):
                self.partition(store, key)
                costs.append(self.cost)
            self.partition(store, costs.index(min(costs)))

    def chosen(self, store: int) -> list[int]:
        """Return the chosen arcs into a store."""
        return [arc for arc in self._at[store] if self.arc[self._head[arc]] == arc]

    def way(self, node: int) -> list[int]:
        """Return the chosen arcs that lead to a node, the last one first."""
        found = []
        while not self._is_root[node]:
            found.append(self.arc[node])
            node = self._tail[self.arc[node]]
        return found

    def size(self, store: int) -> float:
        """Return what a store takes of the budget."""
        return self._size[store]

    def snapshot(self) -> Snapshot:
        """Return the choice as it is now."""
        return Snapshot(
            cost=self.cost,
            taken=self.taken,
            arc=self.arc.copy(),
            needs=self.needs.copy(),
            uses=self.uses.copy(),
            key=self.key.copy(),
        )

    def restore(self, before: Snapshot) -> None:
        """Return to an earlier choice."""
        self.cost, self.taken = before.cost, before.taken
        self.arc[:], self.needs[:] = before.arc, before.needs
        self.uses[:], self.key[:] = before.uses, before.key

    def _require(self, node: int, ways: dict[int, tuple[float, int]]) -> None:
        if not self.needs[node] and not self._is_root[node]:
            self._distance(node, ways)
            arc = ways[node][1]
            self._require(self._tail[arc], ways)
            self._arrive(node, arc)
        self.needs[node] += 1

    def _arrive(self, node: int, arc: int) -> None:
        self.arc[node] = arc
        self.cost += self.price(arc)
        self.use(self._store[arc])

    def _distance(self, node: int, ways: dict[int, tuple[float, int]]) -> float:
        """Return what it costs to reach a node; `ways` remembers that and the last arc, by node, for one state."""
        if self.needs[node] or self._is_root[node]:
            return 0.0
        if node in ways:
            return ways[node][0]
        best, best_arc = math.inf, _NONE
        for arc in self._into[node]:
            self.work += 1
            cost = self.price(arc)
            if cost < best:
                cost += self._distance(self._tail[arc], ways)
            if cost < best:
                cost += self._filling(self._store[arc], ways)
            if cost < best:
                best, best_arc = cost, arc
        ways[node] = (best, best_arc)
        return best

    def _filling(self, store: int, ways: dict[int, tuple[float, int]]) -> float:
        """Return what it costs to have a store: nothing for one that is there."""
        fills = self.problem.fills[store]
        if not fills or self.uses[store]:
            return 0.0
        if self.banned[store] or self.taken + self._size[store] > self.problem.budget:
            return math.inf
        return self._opening[store] + sum(self._distance(fill, ways) for fill in fills)
