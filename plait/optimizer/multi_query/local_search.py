"""Improve a solution by moves until none helps: the incumbent for the solver, and what remains if it runs out of time.

A move gives something up and takes the cheapest ways anew; it is kept if the whole is cheaper then. What is given up
are

- the ways to some goals, under a changed circumstance: none, an intermediate store that is filled come what may, one
  that is banned, another partitioning key;
- the ways to all goals of a query, which is then planned as the best binary tree;
- the last step to one node, whatever builds on it.

Invariant: between two moves every goal is reached, every intermediate store in use is filled and the budget is kept; a
move that does not end so, or does not pay, is undone from the log of its writes, which costs what it wrote. A round
over all moves takes about (goals + nodes + stores × goals near them) shortest paths, each over the arcs that lead to a
node; `most_work` bounds the arcs looked at, since the number of rounds has no useful bound.

Everything is tried in one fixed order, random numbers have a fixed seed, and nothing looks at a clock, so equal
problems have equal outcomes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from plait.optimizer.multi_query.problem import AncestorArcs, Problem
from plait.optimizer.multi_query.solution import ArcSolution, Savepoint
from plait.optimizer.multi_query.splits import Split, SplitSet

Change: TypeAlias = Callable[[], None]

_LEAST_GAIN = 1e-9
_SEED = 1
_NOISE = 0.1
"""By how much costs are perturbed at most, relatively."""

_LARGEST_GROUP = 5


class Search:
    """Moves on one solution. `most_work` bounds the arcs looked at."""

    def __init__(self, solution: ArcSolution, most_work: int) -> None:
        self.solution, self._most_work = solution, solution.work + most_work
        self._goals = solution.problem.goals.tolist()
        self._concerned = concerned_goals(solution.problem)

    def run(self) -> None:
        """Try all moves again and again, until a whole round brings nothing."""
        while self._round() and not self._is_spent():
            pass
        self.solution.partition_well()
        self.solution.recount()

    def _round(self) -> bool:
        solution = self.solution
        before = solution.cost
        for goal in self._goals:
            self._try((goal,), _nothing, _nothing)
        self._replant(solution.problem.trees)
        self._reattach(range(len(solution.needs)))
        for store, fills in enumerate(solution.problem.fills):
            if self._is_spent():
                break
            if fills:
                self._toggle(store)
        for store in solution.problem.is_open.nonzero()[0].tolist():
            self._rekey(store)
        solution.partition_well()
        return solution.cost < before - _LEAST_GAIN * max(1.0, before)

    def perturb(self, rounds: int) -> None:
        """Plan groups of queries that have steps in common anew at perturbed costs, every query `rounds` times."""
        trees = self.solution.problem.trees
        near, rng = neighbours(trees), random.Random(_SEED)
        most = rounds * len(trees)
        for number in range(most):
            if self._is_spent():
                break
            first = rng.randrange(len(trees))
            others = rng.sample(near[first], min(len(near[first]), number * _LARGEST_GROUP // most))
            self._perturb([trees[query] for query in (first, *others)], lambda: 1 + _NOISE * rng.random())
        self.solution.recount()

    def _is_spent(self) -> bool:
        return self.solution.work > self._most_work

    def _toggle(self, store: int) -> None:
        """Fill an intermediate store that is not in use, or do without one that is."""
        solution, goals = self.solution, self._concerned[store]
        if solution.uses[store]:
            self._try(goals, lambda: self._ban(store, True), lambda: self._ban(store, False))
        elif solution.taken + solution.size(store) <= solution.problem.budget:
            self._try(goals, lambda: solution.use(store), lambda: solution.leave(store))

    def _ban(self, store: int, banned: bool) -> None:
        self.solution.banned[store] = banned

    def _rekey(self, store: int) -> None:
        """Try every other partitioning of a store."""
        for key in range(int(self.solution.problem.choices[store])):
            if key != self.solution.key[store]:
                self._try(self._concerned[store], partial(self.solution.partition, store, key), _nothing)

    def _reattach(self, nodes: Iterable[int], *, inside: bool = False) -> None:
        """Try to reach each node by another last step."""
        solution = self.solution
        for node in solution.alternatives(nodes):
            if solution.needs[node]:
                savepoint = solution.begin(inside=inside)
                solution.reattach(node)
                self._keep(savepoint)

    def _replant(self, queries: Iterable[tuple[SplitSet, ...]]) -> None:
        """Plan queries anew as binary trees, one after the other."""
        for sets in queries:
            savepoint = self.solution.begin()
            self._plant((sets,), _exact)
            self._keep(savepoint)

    def _perturb(self, queries: list[tuple[SplitSet, ...]], noise: Noise) -> None:
        """Plan queries anew at perturbed costs, then repair; keep what is as cheap as before, too."""
        savepoint = self.solution.begin()
        self._plant(queries, noise)
        self._reattach((node for sets in queries for each in sets for node in each.nodes), inside=True)
        self._keep(savepoint, or_equal=True)

    def _plant(self, queries: Iterable[tuple[SplitSet, ...]], noise: Noise) -> None:
        solution, queries = self.solution, tuple(queries)
        goals = dict.fromkeys(node for sets in queries for node in sets[-1].nodes)
        for goal in goals:
            solution.release(goal)
        held = [node for sets in queries for node in plant(solution, sets, noise)]
        for goal in goals:
            solution.require(goal)
        for node in reversed(held):
            solution.release(node)

    def _try(self, goals: Iterable[int], change: Change, after: Change) -> None:
        """Change something while there are no ways to these goals; `after` undoes what was only needed meanwhile."""
        solution = self.solution
        savepoint = solution.begin()
        for goal in goals:
            solution.release(goal)
        change()
        for goal in goals:
            solution.require(goal)
        after()
        self._keep(savepoint)

    def _keep(self, savepoint: Savepoint, *, or_equal: bool = False) -> None:
        """Keep the move if it pays, else take it back."""
        solution = self.solution
        least = (-1 if or_equal else 1) * _LEAST_GAIN * max(1.0, savepoint.cost)
        if solution.cost > savepoint.cost - least or solution.taken > solution.problem.budget:
            solution.undo(savepoint)


def _nothing() -> None:
    pass


def _exact() -> float:
    return 1.0


def neighbours(trees: tuple[tuple[SplitSet, ...], ...]) -> list[list[int]]:
    """Return for each query the others that go through a node of its own, ascending."""
    at: dict[int, list[int]] = {}
    for query, sets in enumerate(trees):
        for node in dict.fromkeys(node for each in sets if each.splits for node in each.nodes):
            at.setdefault(node, []).append(query)
    near: list[set[int]] = [set() for _ in trees]
    for queries in at.values():
        for query in queries:
            near[query].update(queries)
    return [sorted(others - {query}) for query, others in enumerate(near)]


def concerned_goals(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return for each store the goals whose ways may probe it or fill it."""
    ways, tails, stores = AncestorArcs(problem), problem.tail.tolist(), problem.store.tolist()
    filled: dict[int, list[int]] = {}
    for store, fills in enumerate(problem.fills):
        for node in fills:
            filled.setdefault(node, []).append(store)
    concerning: list[list[int]] = [[] for _ in problem.fills]
    for goal in problem.goals.tolist():
        arcs = ways.to(goal)
        concerned = {stores[arc] for arc in arcs}
        for node in {goal, *(tails[arc] for arc in arcs)}:
            concerned.update(filled.get(node, ()))
        for store in sorted(concerned):
            concerning[store].append(goal)
    return tuple(tuple(goals) for goals in concerning)


Noise: TypeAlias = Callable[[], float]
"""A factor by which the cost of a split is perturbed."""


def plant(solution: ArcSolution, sets: tuple[SplitSet, ...], noise: Noise) -> list[int]:
    """Choose the arcs of the best tree; return the nodes that are needed once more for it, smaller ones first.

    Every step is paid once, whoever asked for it, so what a tree adds is the sum over its splits of the steps that are
    not there yet and of the stores that have to be opened. An intermediate store that is not in use is partitioned as
    the split that probes it likes best.
    """
    best = _best(solution, sets, noise)
    held: list[int] = []

    def grow(place: int) -> None:
        split = best[place]
        if split is None:
            return
        for half in split.halves:
            grow(half)
        for arc in split.arcs:
            _prepare(solution, arc)
            if solution.hold(arc):
                held.append(solution.head(arc))

    grow(len(sets) - 1)
    return held


def _best(solution: ArcSolution, sets: tuple[SplitSet, ...], noise: Noise) -> list[Split | None]:
    """Return the split that adds least for every set, None where there is nothing to add."""
    costs: list[float] = []
    best: list[Split | None] = []
    for each in sets:
        if all(solution.is_reached(node) for node in each.nodes):
            costs.append(0.0)
            best.append(None)
            continue
        least, chosen = math.inf, None
        for split in each.splits:
            cost = costs[split.halves[0]] + costs[split.halves[1]]
            if cost < least:
                cost += _added(solution, split) * noise()
            if cost < least:
                least, chosen = cost, split
        costs.append(least)
        best.append(chosen)
    return best


def _added(solution: ArcSolution, split: Split) -> float:
    cost, opened = 0.0, set()
    solution.work += len(split.arcs)
    for arc in split.arcs:
        if not solution.is_reached(solution.head(arc)):
            store = solution.store(arc)
            if solution.is_unused(store):
                opened.add(store)
                cost += solution.least_price(arc)
            else:
                cost += solution.price(arc)
    return cost + sum(solution.opening(store) for store in sorted(opened))


def _prepare(solution: ArcSolution, arc: int) -> None:
    """Partition an intermediate store that is about to be opened by a key that the arc knows."""
    store, known = solution.store(arc), solution.problem.known[arc]
    if solution.is_unused(store) and known and solution.key[store] not in known:
        solution.partition(store, min(known))
