"""Improve a choice by moves until none helps: the incumbent for the solver, and what remains if it runs out of time.

A move gives up the ways to some goals and takes the cheapest ones anew, under a changed circumstance: none, an
intermediate store that is filled come what may, one that is banned, or another partitioning key. It is kept if the
whole is cheaper. Everything is tried in one fixed order and nothing looks at a clock, so equal problems have equal
outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from plait.optimizer.sharing.choice import Choice
from plait.optimizer.sharing.problem import Problem

Change: TypeAlias = Callable[[], None]

_LEAST_GAIN = 1e-9


class Search:
    """Moves on one choice. `most_work` bounds the arcs looked at."""

    def __init__(self, choice: Choice, most_work: int) -> None:
        self.choice, self._most_work = choice, most_work
        self._goals = choice.problem.goals.tolist()
        self._concerned = concerned_goals(choice.problem)

    def run(self) -> None:
        """Try all moves again and again, until a whole round brings nothing."""
        while self._round() and not self._is_spent():
            pass

    def _round(self) -> bool:
        before = self.choice.cost
        for goal in self._goals:
            self._try((goal,), _nothing, _nothing)
        for store, fills in enumerate(self.choice.problem.fills):
            if self._is_spent():
                break
            if fills:
                self._toggle(store)
        for store in self.choice.problem.is_open.nonzero()[0].tolist():
            self._rekey(store)
        return self.choice.cost < before - _LEAST_GAIN * max(1.0, before)

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
                goals = self._concerned[store]
                self._try(goals, partial(self.choice.partition, store, key), _nothing)

    def _try(self, goals: Iterable[int], change: Change, after: Change) -> None:
        """Keep the move if it pays; `after` undoes what was only needed meanwhile."""
        choice = self.choice
        before = choice.snapshot()
        for goal in goals:
            choice.release(goal)
        change()
        for goal in goals:
            choice.require(goal)
        after()
        worth = choice.cost < before.cost - _LEAST_GAIN * max(1.0, before.cost)
        if not worth or choice.taken > choice.problem.budget:
            choice.restore(before)


def _nothing() -> None:
    pass


def concerned_goals(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return for each store the goals whose ways may probe it or fill it."""
    into: list[list[tuple[int, int]]] = [[] for _ in problem.is_root]
    for tail, head, store in zip(problem.tail.tolist(), problem.head.tolist(), problem.store.tolist(), strict=True):
        into[head].append((tail, store))
    filled: dict[int, list[int]] = {}
    for store, fills in enumerate(problem.fills):
        for node in fills:
            filled.setdefault(node, []).append(store)
    found: list[list[int]] = [[] for _ in problem.fills]
    for goal in problem.goals.tolist():
        seen, waiting, stores = {goal}, [goal], set(filled.get(goal, ()))
        while waiting:
            for tail, store in into[waiting.pop()]:
                stores.add(store)
                if tail not in seen:
                    seen.add(tail)
                    waiting.append(tail)
                    stores.update(filled.get(tail, ()))
        for store in sorted(stores):
            found[store].append(goal)
    return tuple(tuple(goals) for goals in found)
