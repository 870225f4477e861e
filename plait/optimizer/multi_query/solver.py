"""Solve one problem: local search, then the relaxation and local search from what it suggests, then branch and bound.

Each stage begins with the best solution so far and is left out once that is proved good enough. Solutions of large
problems are perturbed a little before the relaxation, too, because that may take longer than there is time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from plait.optimizer.linear.highs import SAFETY, Limits, optimize, relax
from plait.optimizer.multi_query.local_search import Search
from plait.optimizer.multi_query.network import Floats
from plait.optimizer.multi_query.problem import Problem
from plait.optimizer.multi_query.program import Program, program
from plait.optimizer.multi_query.solution import ArcSolution, UnreachableError

_WORK_PER_ARC = 250
"""How often one run of the local search may look at an arc, on average. Most end long before."""

_LARGE_ROWS = 20_000
"""Programs with more rows take longer to relax than to search; branch and bound would not get beyond the relaxation."""

_SUGGESTIONS = ((0.9, 0.5), (0.9, 0.1))
"""(discount, threshold) by which a solution is made from the relaxation, in the order they are tried."""

_FIRST_ROUNDS = 5
_ROUNDS = 30
"""How often every query is planned anew at perturbed costs: before a large problem is relaxed, and after."""

_MOST_REFITS = 3
"""How often keys are fixed as they were chosen to relax the rest; once for a large problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Who found the solution, and a lower bound of its cost."""

    solver: str
    bound: float


def search(solution: ArcSolution) -> None:
    """Improve a solution by local search."""
    Search(solution, _work(solution)).run()


def _work(solution: ArcSolution) -> int:
    return _WORK_PER_ARC * len(solution.problem.tail)


def solve(solution: ArcSolution, limits: Limits) -> Solved:
    """Improve a solution as far as the limits allow."""
    solving = _Solving(solution, limits)
    search(solution)
    if solving.is_large:
        solving.perturb(_FIRST_ROUNDS)
    solving.refit()
    solving.relax()
    solving.perturb(_ROUNDS)
    if not solving.is_large:
        solving.optimize()
    # Within the allowed gap a partitioning may be left that is not the best for the orders, as `build` picks it.
    solution.partition_well()
    solution.recount()
    return Solved(solver=solving.solver, bound=min(solving.bound, solution.cost))


class _Solving:
    """The stages, and how far they have come."""

    def __init__(self, solution: ArcSolution, limits: Limits) -> None:
        self._solution, self._limits = solution, limits
        self._deadline = perf_counter() + limits.seconds
        self._made = program(solution.problem)
        self.bound, self.solver = simple_bound(solution.problem), "local-search"

    @property
    def is_large(self) -> bool:
        """Whether the relaxation takes longer than the search."""
        return len(self._made.row_lower) > _LARGE_ROWS

    def relax(self) -> None:
        """Get a bound from the relaxation, and improve the solution by what it suggests.

        With open stores it is hard and says little; of a large problem it is solved without surcharges, for the bound.
        """
        if self._is_done():
            return
        is_bare = self.is_large and self._solution.problem.is_open.any()
        relaxed = relax(_without_surcharges(self._made) if is_bare else self._made, self._left())
        self.bound = max(self.bound, relaxed.bound)
        if relaxed.values is not None and not is_bare:
            self._follow(relaxed.values)

    def refit(self) -> None:
        """Relax again with the stores of sources partitioned as chosen: that leaves the relaxation less to cheat with.

        What it suggests may like other keys better, so this is repeated while it helps.
        """
        for _ in range(1 if self.is_large else _MOST_REFITS):
            before = self._solution.cost
            if self._is_done() or not self._solution.problem.is_open.any():
                break
            relaxed = relax(_keyed(self._made, self._solution), self._left())
            if relaxed.values is not None:
                self._follow(relaxed.values)
            if self._solution.cost >= before * (1 - 1e-9):
                break

    def perturb(self, rounds: int) -> None:
        """Get the local search out of where it is stuck."""
        if self._is_done():
            return
        before = self._solution.cost
        perturbed = Search(self._solution, 2 * _work(self._solution))
        perturbed.perturb(rounds)
        perturbed.run()
        if self._solution.cost < before * (1 - 1e-9):
            self.solver = "local-search"

    def optimize(self) -> None:
        """Branch and bound."""
        if self._is_done():
            return
        problem, made = self._solution.problem, self._made
        outcome = optimize(made, values_of(problem, made, self._solution), self._left())
        self.bound = max(self.bound, outcome.bound)
        if outcome.values is not None and self._take(chosen(problem, made, outcome.values)):
            self.solver = "highs"

    def _follow(self, values: Floats) -> None:
        for discount, threshold in _SUGGESTIONS:
            if self._is_done():
                break
            suggested = _suggested(self._solution.problem, self._made, values, discount, threshold)
            search(suggested)
            if self._take(suggested):
                self.solver = "highs"

    def _take(self, better: ArcSolution) -> bool:
        """Adopt another solution if it is cheaper and within the budget."""
        if better.cost >= self._solution.cost * (1 - 1e-9) or better.taken > self._solution.problem.budget:
            return False
        self._solution.adopt(better)
        return True

    def _is_done(self) -> bool:
        cost = self._solution.cost
        proved = (cost - self.bound) <= (self._limits.gap + 2 * SAFETY) * cost
        return proved or perf_counter() >= self._deadline

    def _left(self) -> Limits:
        return Limits(seconds=self._deadline - perf_counter(), gap=self._limits.gap)


def simple_bound(problem: Problem) -> float:
    """Return what the dearest goal of every root costs at least, as if all intermediate stores were there."""
    least = [0.0 if root else math.inf for root in problem.is_root.tolist()]
    roots = list(range(len(least)))
    for tail, head, price in zip(problem.tail.tolist(), problem.head.tolist(), problem.price.tolist(), strict=True):
        if least[tail] + price < least[head]:
            least[head], roots[head] = least[tail] + price, roots[tail]
    dearest: dict[int, float] = {}
    for goal in problem.goals.tolist():
        dearest[roots[goal]] = max(dearest.get(roots[goal], 0.0), least[goal])
    return sum(dearest.values())


def _without_surcharges(made: Program) -> Program:
    """Return the program in which all tuples know their partition: it costs less, and a bound of it is a bound."""
    cost = made.cost.copy()
    cost[made.b[made.b >= 0]] = 0.0
    return replace(made, cost=cost)


def _keyed(made: Program, solution: ArcSolution) -> Program:
    """Return the program with the stores of sources partitioned as chosen."""
    lower, upper = made.lower.copy(), made.upper.copy()
    for store in np.flatnonzero((made.w >= 0) & (made.z < 0)).tolist():
        columns = made.w[store] + np.arange(solution.problem.choices[store])
        lower[columns] = upper[columns] = 0.0
        lower[columns[solution.key[store]]] = upper[columns[solution.key[store]]] = 1.0
    return replace(made, lower=lower, upper=upper)


def _suggested(problem: Problem, made: Program, values: Floats, discount: float, threshold: float) -> ArcSolution:
    """Return a solution made where the relaxation's arcs cost less and the stores it uses most are there already."""
    remaining = 1 - discount * np.clip(values[: len(problem.tail)], 0.0, 1.0)
    cheaper = replace(problem, price=problem.price * remaining, surcharge=problem.surcharge * remaining)
    use = np.where(made.z >= 0, values[made.z], 0.0)
    guided = ArcSolution(cheaper)
    for store in np.flatnonzero(made.w >= 0).tolist():
        guided.key[store] = int(np.argmax(values[made.w[store] : made.w[store] + problem.choices[store]]))
    held = [store for store in np.argsort(-use, kind="stable").tolist() if use[store] >= threshold]
    for store in held:
        if guided.taken + guided.size(store) <= problem.budget:
            guided.use(store)
    for goal in problem.goals.tolist():
        guided.require(goal)
    return _only(problem, [arc for arc in guided.arc if arc >= 0], guided.key)


def chosen(problem: Problem, made: Program, values: Floats) -> ArcSolution:
    """Return the solution that the values of the columns of an integer solution stand for."""
    keys = [0 if choices else -1 for choices in problem.choices.tolist()]
    for store in np.flatnonzero(made.w >= 0).tolist():
        keys[store] = int(np.argmax(values[made.w[store] : made.w[store] + problem.choices[store]]))
    return _only(problem, np.flatnonzero(values[: len(problem.tail)] > 0.5).tolist(), keys)


def _only(problem: Problem, arcs: list[int], keys: list[int]) -> ArcSolution:
    """Return the solution of what the goals need of these arcs; of all arcs where the budget leaves no way among them,
    since stores that fill each other need more room in one order than in another.
    """
    try:
        within = _cheapest(problem, sorted(arcs), keys)
    except UnreachableError:
        within = _cheapest(problem, None, keys)
    solution = ArcSolution(problem)
    solution.adopt(within)
    return solution


def _cheapest(problem: Problem, arcs: list[int] | None, keys: list[int]) -> ArcSolution:
    """Return a solution of these arcs, None for all, each goal by the cheapest way."""
    within = ArcSolution(problem, arcs)
    within.key[:] = keys
    for goal in problem.goals.tolist():
        within.require(goal)
    return within


def values_of(problem: Problem, made: Program, solution: ArcSolution) -> Floats:
    """Return the values of the columns that stand for a solution."""
    values = np.zeros(len(made.cost))
    arcs = np.array([arc for arc in solution.arc if arc >= 0], dtype=np.int64)
    values[arcs] = 1.0
    reached = made.x[problem.head[arcs]]
    values[reached[reached >= 0]] = 1.0
    for store, column in enumerate(made.z.tolist()):
        if column >= 0 and solution.uses[store]:
            values[column] = 1.0
    for store, column in enumerate(made.w.tolist()):
        if column >= 0 and (made.z[store] < 0 or solution.uses[store]):
            values[column + solution.key[store]] = 1.0
    for arc in arcs.tolist():
        if made.b[arc] >= 0 and solution.key[problem.store[arc]] not in problem.known[arc]:
            values[made.b[arc]] = 1.0
    ways = {goal: set(solution.way(goal)) for goal in problem.goals.tolist()}
    for column, arc, goal in made.flows.tolist():
        values[column] = float(arc in ways[goal])
    return values
