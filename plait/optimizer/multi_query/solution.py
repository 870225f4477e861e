"""A solution of the problem that can be taken apart and put together again.

It is a tree of arcs for each starting member: every node that somebody needs has one arc into it. A node is needed as a
goal, as the tail of a chosen arc, or because an intermediate store in use has to be filled from there. So the cheapest
way to a node, given everything chosen so far, is a shortest path from the nearest needed node, where an arc that probes
an unused intermediate store also costs what it takes to fill it. These costs are upper bounds (two orders that
fill a store may have steps in common with each other), and exact once an arc has been chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plait.optimizer.multi_query.problem import Problem

_NONE = -1


class UnreachableError(Exception):
    """No arcs that a solution may take lead to a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """Where a move began."""

    writes: int
    cost: float
    taken: float


class ArcSolution:
    """Chosen arcs and partitioning keys, mutable, with their cost.

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
        self._log: list[tuple[list[int], int, int]] = []
        self._tail: list[int] = problem.tail.tolist()
        self._head: list[int] = problem.head.tolist()
        self._store: list[int] = problem.store.tolist()
        self._price: list[float] = problem.price.tolist()
        self._surcharge: list[float] = problem.surcharge.tolist()
        self._opening: list[float] = problem.opening.tolist()
        self._size: list[float] = problem.size.tolist()
        self._is_root: list[bool] = problem.is_root.tolist()
        self._is_intermediate = [bool(fills) for fills in problem.fills]
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

    def least_price(self, arc: int) -> float:
        """Return what an arc costs under the partitioning that suits it best."""
        return self._price[arc] + (0.0 if self.problem.known[arc] else self._surcharge[arc])

    def opening(self, store: int) -> float:
        """Return what using a store costs besides the arcs that fill it."""
        return self._opening[store]

    def is_unused(self, store: int) -> bool:
        """Return whether this is an intermediate store that is not in use."""
        return bool(self.problem.fills[store]) and not self.uses[store]

    def require(self, node: int) -> None:
        """Need a node once more, by the cheapest way there if it was not needed before.

        Raises UnreachableError where no way is left within the storage budget; the solution is of no use then.
        """
        self._require(node, {})

    def hold(self, arc: int) -> bool:
        """Choose an arc whose tail is needed and need its head, unless that is needed already; tell whether it was."""
        node = self._head[arc]
        if self.needs[node]:
            return False
        self._need(self._tail[arc])
        self._arrive(node, arc)
        self._need(node)
        return True

    def head(self, arc: int) -> int:
        """Return where an arc leads."""
        return self._head[arc]

    def store(self, arc: int) -> int:
        """Return what an arc probes."""
        return self._store[arc]

    def is_reached(self, node: int) -> bool:
        """Return whether nothing more is to be paid for a node."""
        return self._is_root[node] or self.needs[node] > 0

    def release(self, node: int) -> None:
        """Need a node once less; what only it needed is given up."""
        self._write(self.needs, node, self.needs[node] - 1)
        if not self.needs[node] and not self._is_root[node]:
            self._detach(node)

    def reattach(self, node: int) -> None:
        """Reach a needed node by what is the cheapest way once the one it has is given up."""
        needs = self.needs[node]
        self._write(self.needs, node, 0)
        self._detach(node)
        self._require(node, {})
        self._write(self.needs, node, needs)

    def alternatives(self, among: Iterable[int]) -> list[int]:
        """Return the needed nodes that could be reached in more than one way."""
        return [node for node in dict.fromkeys(among) if self.needs[node] and len(self._into[node]) > 1]

    def use(self, store: int) -> None:
        """Use a store once more; an intermediate one that was not in use has to be filled."""
        if self.problem.fills[store] and not self.uses[store]:
            self.cost += self._opening[store]
            self.taken += self._size[store]
            for fill in self.problem.fills[store]:
                self.require(fill)
        self._write(self.uses, store, self.uses[store] + 1)

    def leave(self, store: int) -> None:
        """Use a store once less; an intermediate one that is not in use any more need not be filled."""
        self._write(self.uses, store, self.uses[store] - 1)
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
            self._need(self._tail[arc])
            self._arrive(node, arc)
        self._need(heads[-1])

    def partition(self, store: int, key: int) -> None:
        """Partition a store by another key."""
        chosen = self.chosen(store)
        self.cost -= sum(self.price(arc) for arc in chosen)
        self._write(self.key, store, key)
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
        arcs = []
        while not self._is_root[node]:
            arcs.append(self.arc[node])
            node = self._tail[self.arc[node]]
        return arcs

    def size(self, store: int) -> float:
        """Return what a store takes of the budget."""
        return self._size[store]

    def begin(self, *, inside: bool = False) -> Savepoint:
        """Begin a move, perhaps `inside` another. Moves before it can be taken back no more, those around it can."""
        if not inside:
            self._log.clear()
        return Savepoint(writes=len(self._log), cost=self.cost, taken=self.taken)

    def undo(self, savepoint: Savepoint) -> None:
        """Take back everything since a move began."""
        while len(self._log) > savepoint.writes:
            values, index, value = self._log.pop()
            values[index] = value
        self.cost, self.taken = savepoint.cost, savepoint.taken

    def adopt(self, other: ArcSolution) -> None:
        """Become equal to another solution for the same nodes and stores."""
        self.arc[:], self.needs[:] = other.arc, other.needs
        self.uses[:], self.key[:] = other.uses, other.key
        self.recount()

    def recount(self) -> None:
        """Add up cost and sizes anew, so that rounding does not gather over many moves."""
        self._log.clear()
        opened = [store for store, fills in enumerate(self.problem.fills) if fills and self.uses[store]]
        self.cost = math.fsum(
            [self.price(arc) for arc in self.arc if arc != _NONE] + [self._opening[store] for store in opened]
        )
        self.taken = math.fsum(self._size[store] for store in opened)

    def _write(self, values: list[int], index: int, value: int) -> None:
        self._log.append((values, index, values[index]))
        values[index] = value

    def _require(self, node: int, ways: dict[int, tuple[float, int]]) -> None:
        if not self.needs[node] and not self._is_root[node]:
            self._distance(node, ways)
            arc = ways[node][1]
            if arc == _NONE:
                raise UnreachableError
            self._require(self._tail[arc], ways)
            self._arrive(node, arc)
        self._need(node)

    def _need(self, node: int) -> None:
        self._write(self.needs, node, self.needs[node] + 1)

    def _detach(self, node: int) -> None:
        arc = self.arc[node]
        self._write(self.arc, node, _NONE)
        self.cost -= self.price(arc)
        self.leave(self._store[arc])
        self.release(self._tail[arc])

    def _arrive(self, node: int, arc: int) -> None:
        self._write(self.arc, node, arc)
        self.cost += self.price(arc)
        self.use(self._store[arc])

    def _distance(self, node: int, ways: dict[int, tuple[float, int]]) -> float:
        """Return what it costs to reach a node; `ways` remembers that and the last arc, by node, for one state."""
        if self.needs[node] or self._is_root[node]:
            return 0.0
        if node in ways:
            return ways[node][0]
        best, best_arc = math.inf, _NONE
        into, needs, is_root = self._into[node], self.needs, self._is_root
        self.work += len(into)
        # Most of a search is spent here, so what costs nothing is not called.
        for arc in into:
            cost = self.price(arc) if self._surcharge[arc] else self._price[arc]
            if cost >= best:
                continue
            tail, store = self._tail[arc], self._store[arc]
            if not needs[tail] and not is_root[tail]:
                cost += ways[tail][0] if tail in ways else self._distance(tail, ways)
            if cost < best and self._is_intermediate[store] and not self.uses[store]:
                cost += self._filling(store, ways)
            if cost < best:
                best, best_arc = cost, arc
        ways[node] = (best, best_arc)
        return best

    def _filling(self, store: int, ways: dict[int, tuple[float, int]]) -> float:
        """Return what it costs to have an intermediate store that is not there."""
        if self.banned[store] or self.taken + self._size[store] > self.problem.budget:
            return math.inf
        return self._opening[store] + sum(self._distance(fill, ways) for fill in self.problem.fills[store])
