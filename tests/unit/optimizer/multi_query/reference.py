"""Optima over the paper's search space: by its program (algorithm 2), and by going through everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import highspy
import numpy as np

from tests.unit.optimizer.multi_query.paper import Candidate, Group, Key, Result, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """lower ≤ Σ coefficient · variable ≤ upper; variables are told apart by name."""

    name: str
    terms: tuple[tuple[object, float], ...]
    lower: float
    upper: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingBudget:
    """Rows of every intermediate result, and how many all that are used may have together."""

    rows: dict[Result, float]
    most: float


def constraints(groups: Iterable[Group], remaining: RemainingBudget | None = None) -> list[Constraint]:
    """Return the constraints of algorithm 2, one partitioning per store, and perhaps a storage budget.

    Variables: ("x", group, candidate), ("y", step), ("w", store, key), ("u", store) for one that is used.
    """
    listed = list(groups)
    filling: dict[Result, list[int]] = {}
    for number, group in enumerate(listed):
        if group.fills is not None:
            filling.setdefault(group.fills, []).append(number)
    found, keys = [], {}
    for number, group in enumerate(listed):
        chosen = [("x", number, place) for place in range(len(group.candidates))]
        if group.fills is None:
            found.append(_one("probe order", [(variable, 1.0) for variable in chosen]))
        for variable, candidate in zip(chosen, group.candidates, strict=True):
            found.append(_cost(variable, candidate))
            for result in candidate.used:
                found += [_fill(variable, fill, listed[fill]) for fill in filling[result]]
                if remaining is not None:
                    found.append(Constraint(name="used", terms=((("u", result), 1.0), (variable, -1.0)), lower=0.0))
            for store, key in candidate.order[1:]:
                keys.setdefault(store, {})[key] = None
                found.append(
                    Constraint(name="partitioning", terms=((("w", store, key), 1.0), (variable, -1.0)), lower=0.0)
                )
    for store, choices in keys.items():
        found.append(_one("one partitioning", [(("w", store, key), 1.0) for key in choices]))
    if remaining is not None:
        terms = tuple((("u", result), rows) for result, rows in remaining.rows.items())
        found.append(Constraint(name="budget", terms=terms, lower=0.0, upper=remaining.most))
    return found


def _one(name: str, terms: list[tuple[object, float]]) -> Constraint:
    return Constraint(name=name, terms=tuple(terms), lower=1.0, upper=1.0)


def _cost(variable: object, candidate: Candidate) -> Constraint:
    """−PCost · x + Σ StepCost · y ≥ 0."""
    steps = [(("y", step), cost) for step, cost in zip(candidate.steps, candidate.costs, strict=True)]
    return Constraint(name="cost", terms=((variable, -candidate.cost), *steps), lower=0.0)


def _fill(variable: object, number: int, group: Group) -> Constraint:
    """−x + Σ x' ≥ 0."""
    alternatives = [(("x", number, place), 1.0) for place in range(len(group.candidates))]
    return Constraint(name="subqueries", terms=((variable, -1.0), *alternatives), lower=0.0)


def optimum(
    groups: Iterable[Group], *, leave_out: str | None = None, remaining: RemainingBudget | None = None
) -> float:
    """Return the least Σ StepCost · y; without the constraints named `leave_out`."""
    listed = list(groups)
    found = [each for each in constraints(listed, remaining) if each.name != leave_out]
    columns: dict[object, int] = {}
    for each in found:
        for variable, _ in each.terms:
            columns.setdefault(variable, len(columns))
    cost = np.zeros(len(columns))
    for group in listed:
        for candidate in group.candidates:
            for step, price in zip(candidate.steps, candidate.costs, strict=True):
                if ("y", step) in columns:
                    cost[columns["y", step]] = price
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(found)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(columns)), np.ones(len(columns))
    lp.row_lower_ = np.array([each.lower for each in found])
    lp.row_upper_ = np.array([each.upper for each in found])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum([len(each.terms) for each in found])))
    lp.a_matrix_.index_ = np.array([columns[variable] for each in found for variable, _ in each.terms])
    lp.a_matrix_.value_ = np.array([value for each in found for _, value in each.terms])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(columns)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


class BruteForce:
    """Goes through all choices of one candidate per group, giving up where the cost reaches the best so far."""

    def __init__(self, groups: Iterable[Group], ceiling: float = float("inf")) -> None:
        listed = list(groups)
        self._queries = [group for group in listed if group.fills is None]
        self._fills: dict[Result, list[Group]] = {}
        for group in listed:
            if group.fills is not None:
                self._fills.setdefault(group.fills, []).append(group)
        self.best = ceiling
        self.visited = 0

    def optimum(self) -> float:
        """Return the least cost, or the ceiling if nothing is below it."""
        self._choose(list(self._queries), 0.0, {}, {}, frozenset())
        return self.best

    def _choose(
        self,
        waiting: list[Group],
        cost: float,
        paid: dict[Step, float],
        keys: dict[Result, Key | None],
        filled: frozenset[Result],
    ) -> None:
        self.visited += 1
        if cost >= self.best - 1e-9:
            return
        if not waiting:
            self.best = cost
            return
        group, rest = waiting[0], waiting[1:]
        options = []
        for candidate in group.candidates:
            if all(keys.get(store, key) == key for store, key in candidate.order[1:]):
                new = {
                    step: price
                    for step, price in zip(candidate.steps, candidate.costs, strict=True)
                    if step not in paid
                }
                options.append((sum(new.values()), candidate, new))
        for extra, candidate, new in sorted(options, key=lambda option: option[0]):
            opened = [result for result in dict.fromkeys(candidate.used) if result not in filled]
            following = [each for result in opened for each in self._fills[result]]
            self._choose(
                rest + following,
                cost + extra,
                {**paid, **new},
                {**keys, **dict(candidate.order[1:])},
                filled.union(opened),
            )
