"""Solve one problem: local search, then the relaxation and local search from what it suggests, then branch and bound.

Each stage begins with the best choice so far and is left out once that is proved good enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from plait.optimizer.sharing.choice import Choice
from plait.optimizer.sharing.highs import SAFETY, Limits, optimize, relax
from plait.optimizer.sharing.network import Floats
from plait.optimizer.sharing.problem import Problem
from plait.optimizer.sharing.program import Program, program
from plait.optimizer.sharing.search import Search

_MOST_WORK = 5_000_000
"""Arcs that one run of the local search may look at: a few seconds."""

_MOST_ROWS = 40_000
"""Programs with more rows are not given to branch and bound, which would not get beyond the relaxation."""

_SUGGESTIONS = ((0.9, 0.5), (0.9, 0.1))
"""(discount, threshold) by which a choice is made from the relaxation, in the order they are tried."""

_ROUNDS = 40
"""How often every query is planned anew at falsified costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Who found the choice, and a lower bound of its cost."""

    solver: str
    bound: float


def search(choice: Choice) -> None:
    """Improve a choice by local search."""
    Search(choice, _MOST_WORK).run()


def solve(choice: Choice, limits: Limits) -> Solved:
    """Improve a choice as far as the limits allow."""
    deadline, problem = perf_counter() + limits.seconds, choice.problem
    search(choice)
    made = program(problem)
    relaxed = relax(made, _left(deadline, limits))
    bound, solver = relaxed.bound, "local-search"
    if relaxed.values is not None and _gap(choice, bound) > limits.gap:
        for discount, threshold in _SUGGESTIONS:
            suggested = _suggested(problem, made, relaxed.values, discount, threshold)
            search(suggested)
            if _take(choice, suggested):
                solver = "highs"
            if _gap(choice, bound) <= limits.gap or perf_counter() > deadline:
                break
    if relaxed.values is not None and _gap(choice, bound) > limits.gap and perf_counter() < deadline:
        before = choice.cost
        Search(choice, _MOST_WORK).shake(_ROUNDS)
        solver = "local-search" if choice.cost < before else solver
    if _gap(choice, bound) > limits.gap and len(made.row_lower) <= _MOST_ROWS and perf_counter() < deadline:
        found = optimize(made, values_of(problem, made, choice), _left(deadline, limits))
        bound = max(bound, found.bound)
        if found.values is not None and _take(choice, chosen(problem, made, found.values)):
            solver = "highs"
    return Solved(solver=solver, bound=min(bound, choice.cost))


def _left(deadline: float, limits: Limits) -> Limits:
    return Limits(seconds=deadline - perf_counter(), gap=limits.gap)


def _gap(choice: Choice, bound: float) -> float:
    return (choice.cost - bound) / choice.cost - 2 * SAFETY if choice.cost > 0 else 0.0


def _take(choice: Choice, better: Choice) -> bool:
    """Adopt another choice if it is cheaper and within the budget."""
    if better.cost >= choice.cost * (1 - 1e-9) or better.taken > choice.problem.budget:
        return False
    choice.adopt(better)
    return True


def _suggested(problem: Problem, made: Program, values: Floats, discount: float, threshold: float) -> Choice:
    """Return a choice made where the relaxation's arcs cost less and the stores it uses most are there already."""
    remaining = 1 - discount * np.clip(values[: len(problem.tail)], 0.0, 1.0)
    cheaper = replace(problem, price=problem.price * remaining, surcharge=problem.surcharge * remaining)
    use = np.where(made.z >= 0, values[made.z], 0.0)
    guided = Choice(cheaper)
    for store in np.flatnonzero(made.w >= 0).tolist():
        guided.key[store] = int(np.argmax(values[made.w[store] : made.w[store] + problem.choices[store]]))
    held = [store for store in np.argsort(-use, kind="stable").tolist() if use[store] >= threshold]
    for store in held:
        if guided.taken + guided.size(store) <= problem.budget:
            guided.use(store)
    for goal in problem.goals.tolist():
        guided.require(goal)
    return _only(problem, [arc for arc in guided.arc if arc >= 0], guided.key)


def chosen(problem: Problem, made: Program, values: Floats) -> Choice:
    """Return the choice that the values of the columns of an integer solution stand for."""
    keys = [0 if choices else -1 for choices in problem.choices.tolist()]
    for store in np.flatnonzero(made.w >= 0).tolist():
        keys[store] = int(np.argmax(values[made.w[store] : made.w[store] + problem.choices[store]]))
    return _only(problem, np.flatnonzero(values[: len(problem.tail)] > 0.5).tolist(), keys)


def _only(problem: Problem, arcs: list[int], keys: list[int]) -> Choice:
    """Return the choice of what the goals need of these arcs."""
    within = Choice(problem, sorted(arcs))
    within.key[:] = keys
    for goal in problem.goals.tolist():
        within.require(goal)
    choice = Choice(problem)
    choice.adopt(within)
    return choice


def values_of(problem: Problem, made: Program, choice: Choice) -> Floats:
    """Return the values of the columns that stand for a choice."""
    values = np.zeros(len(made.cost))
    arcs = np.array([arc for arc in choice.arc if arc >= 0], dtype=np.int64)
    values[arcs] = 1.0
    reached = made.x[problem.head[arcs]]
    values[reached[reached >= 0]] = 1.0
    for store, column in enumerate(made.z.tolist()):
        if column >= 0 and choice.uses[store]:
            values[column] = 1.0
    for store, column in enumerate(made.w.tolist()):
        if column >= 0 and (made.z[store] < 0 or choice.uses[store]):
            values[column + choice.key[store]] = 1.0
    for arc in arcs.tolist():
        if made.b[arc] >= 0 and choice.key[problem.store[arc]] not in problem.known[arc]:
            values[made.b[arc]] = 1.0
    ways = {goal: set(choice.way(goal)) for goal in problem.goals.tolist()}
    for column, arc, goal in made.flows.tolist():
        values[column] = float(arc in ways[goal])
    return values
