"""Improve a choice by moves until none helps: the incumbent for the solver, and what remains if it runs out of time.

A move gives something up and takes the cheapest ways anew; it is kept if the whole is cheaper then. What is given up
are

- the ways to some goals, under a changed circumstance: none, an intermediate store that is filled come what may, one
  that is banned, another partitioning key;
- the ways to all goals of a query, which is then planned as the best binary tree;
- the last step to one node, whatever builds on it.

Everything is tried in one fixed order, random numbers have a fixed seed, and nothing looks at a clock, so equal
problems have equal outcomes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from plait.optimizer.multi_query.problem import Problem, Ways
from plait.optimizer.multi_query.solution import Choice, Mark
from plait.optimizer.multi_query.splits import Split, SplitSet

Change: TypeAlias = Callable[[], None]

_LEAST_GAIN = 1e-9
_SEED = 1
_NOISE = 0.1
"""By how much costs are falsified to shake a choice, relatively."""

_LARGEST_GROUP = 5


class Search:
    """Moves on one choice. `most_work` bounds the arcs looked at."""

    def __init__(self, choice: Choice, most_work: int) -> None:
        self.choice, self._most_work = choice, choice.work + most_work
        self._goals = choice.problem.goals.tolist()
        self._concerned = concerned_goals(choice.problem)

    def run(self) -> None:
        """Try all moves again and again, until a whole round brings nothing."""
        while self._round() and not self._is_spent():
            pass
        self.choice.partition_well()
        self.choice.recount()

    def _round(self) -> bool:
        choice = self.choice
        before = choice.cost
        for goal in self._goals:
            self._try((goal,), _nothing, _nothing)
        self._replant(choice.problem.trees)
        self._reattach(range(len(choice.needs)))
        for store, fills in enumerate(choice.problem.fills):
            if self._is_spent():
                break
            if fills:
                self._toggle(store)
        for store in choice.problem.is_open.nonzero()[0].tolist():
            self._rekey(store)
        choice.partition_well()
        return choice.cost < before - _LEAST_GAIN * max(1.0, before)

    def shake(self, rounds: int) -> None:
        """Plan groups of queries that have steps in common anew at falsified costs, every query `rounds` times."""
        trees = self.choice.problem.trees
        near, rng = neighbours(trees), random.Random(_SEED)
        most = rounds * len(trees)
        for number in range(most):
            if self._is_spent():
                break
            first = rng.randrange(len(trees))
            others = rng.sample(near[first], min(len(near[first]), number * _LARGEST_GROUP // most))
            self._shake([trees[query] for query in (first, *others)], lambda: 1 + _NOISE * rng.random())
        self.choice.recount()

    def _is_spent(self) -> bool:
        return self.choice.work > self._most_work

    def _toggle(self, store: int) -> None:
        """Fill an intermediate store that is not in use, or do without one that is."""
        choice, goals = self.choice, self._concerned[store]
        if choice.uses[store]:
            self._try(goals, lambda: self._ban(store, True), lambda: self._ban(store, False))
        elif choice.taken + choice.size(store) <= choice.problem.budget:
            self._try(goals, lambda: choice.use(store), lambda: choice.leave(store))

    def _ban(self, store: int, banned: bool) -> None:
        self.choice.banned[store] = banned

    def _rekey(self, store: int) -> None:
        """Try every other partitioning of a store."""
        for key in range(int(self.choice.problem.choices[store])):
            if key != self.choice.key[store]:
                self._try(self._concerned[store], partial(self.choice.partition, store, key), _nothing)

    def _reattach(self, nodes: Iterable[int], *, inside: bool = False) -> None:
        """Try to reach each node by another last step."""
        choice = self.choice
        for node in choice.alternatives(nodes):
            if choice.needs[node]:
                mark = choice.begin(inside=inside)
                choice.reattach(node)
                self._keep(mark)

    def _replant(self, queries: Iterable[tuple[SplitSet, ...]]) -> None:
        """Plan queries anew as binary trees, one after the other."""
        for sets in queries:
            mark = self.choice.begin()
            self._plant((sets,), _exact)
            self._keep(mark)

    def _shake(self, queries: list[tuple[SplitSet, ...]], noise: Noise) -> None:
        """Plan queries anew at falsified costs, then repair; keep what is as cheap as before, too."""
        mark = self.choice.begin()
        self._plant(queries, noise)
        self._reattach((node for sets in queries for each in sets for node in each.nodes), inside=True)
        self._keep(mark, or_equal=True)

    def _plant(self, queries: Iterable[tuple[SplitSet, ...]], noise: Noise) -> None:
        choice, queries = self.choice, tuple(queries)
        goals = dict.fromkeys(node for sets in queries for node in sets[-1].nodes)
        for goal in goals:
            choice.release(goal)
        held = [node for sets in queries for node in plant(choice, sets, noise)]
        for goal in goals:
            choice.require(goal)
        for node in reversed(held):
            choice.release(node)

    def _try(self, goals: Iterable[int], change: Change, after: Change) -> None:
        """Change something while there are no ways to these goals; `after` undoes what was only needed meanwhile."""
        choice = self.choice
        mark = choice.begin()
        for goal in goals:
            choice.release(goal)
        change()
        for goal in goals:
            choice.require(goal)
        after()
        self._keep(mark)

    def _keep(self, mark: Mark, *, or_equal: bool = False) -> None:
        """Keep the move if it pays, else take it back."""
        choice = self.choice
        least = (-1 if or_equal else 1) * _LEAST_GAIN * max(1.0, mark.cost)
        if choice.cost > mark.cost - least or choice.taken > choice.problem.budget:
            choice.undo(mark)


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
    found: list[set[int]] = [set() for _ in trees]
    for queries in at.values():
        for query in queries:
            found[query].update(queries)
    return [sorted(others - {query}) for query, others in enumerate(found)]


def concerned_goals(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return for each store the goals whose ways may probe it or fill it."""
    ways, tails, stores = Ways(problem), problem.tail.tolist(), problem.store.tolist()
    filled: dict[int, list[int]] = {}
    for store, fills in enumerate(problem.fills):
        for node in fills:
            filled.setdefault(node, []).append(store)
    found: list[list[int]] = [[] for _ in problem.fills]
    for goal in problem.goals.tolist():
        arcs = ways.to(goal)
        concerned = {stores[arc] for arc in arcs}
        for node in {goal, *(tails[arc] for arc in arcs)}:
            concerned.update(filled.get(node, ()))
        for store in sorted(concerned):
            found[store].append(goal)
    return tuple(tuple(goals) for goals in found)


Noise: TypeAlias = Callable[[], float]
"""A factor by which the cost of a split is falsified."""


def plant(choice: Choice, sets: tuple[SplitSet, ...], noise: Noise) -> list[int]:
    """Choose the arcs of the best tree; return the nodes that are needed once more for it, smaller ones first.

    Every step is paid once, whoever asked for it, so what a tree adds is the sum over its splits of the steps that are
    not there yet and of the stores that have to be opened. An intermediate store that is not in use is partitioned as
    the split that probes it likes best.
    """
    best = _best(choice, sets, noise)
    held: list[int] = []

    def grow(place: int) -> None:
        split = best[place]
        if split is None:
            return
        for half in split.halves:
            grow(half)
        for arc in split.arcs:
            _prepare(choice, arc)
            if choice.hold(arc):
                held.append(choice.head(arc))

    grow(len(sets) - 1)
    return held


def _best(choice: Choice, sets: tuple[SplitSet, ...], noise: Noise) -> list[Split | None]:
    """Return the split that adds least for every set, None where there is nothing to add."""
    costs: list[float] = []
    found: list[Split | None] = []
    for each in sets:
        if all(choice.is_reached(node) for node in each.nodes):
            costs.append(0.0)
            found.append(None)
            continue
        least, chosen = math.inf, None
        for split in each.splits:
            cost = costs[split.halves[0]] + costs[split.halves[1]]
            if cost < least:
                cost += _added(choice, split) * noise()
            if cost < least:
                least, chosen = cost, split
        costs.append(least)
        found.append(chosen)
    return found


def _added(choice: Choice, split: Split) -> float:
    cost, opened = 0.0, set()
    choice.work += len(split.arcs)
    for arc in split.arcs:
        if not choice.is_reached(choice.head(arc)):
            store = choice.store(arc)
            if choice.is_unused(store):
                opened.add(store)
                cost += choice.least_price(arc)
            else:
                cost += choice.price(arc)
    return cost + sum(choice.opening(store) for store in sorted(opened))


def _prepare(choice: Choice, arc: int) -> None:
    """Partition an intermediate store that is about to be opened by a key that the arc knows."""
    store, known = choice.store(arc), choice.problem.known[arc]
    if choice.is_unused(store) and known and choice.key[store] not in known:
        choice.partition(store, min(known))
