"""Run HiGHS on a program: one thread, a fixed seed, silent."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import highspy
import numpy as np

from plait.errors import PlaitError
from plait.optimizer.linear.linear_program import Bools, Floats, LinearProgram

_SEED = 1
_SIMPLEX_ROWS = 10_000
"""Up to so many rows the simplex method is faster than the interior point method."""

_TOLERANCE = 1e-4
"""Enough for a suggestion; the bound does not depend on it."""

SAFETY = 1e-7
"""What a bound from HiGHS may be off by, relatively: its own tolerances, and rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop: seconds, and the relative gap that is good enough."""

    seconds: float
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A lower bound of the objective, and the values of the columns; None if it found none."""

    bound: float
    values: Floats | None


class _Solver(highspy.Highs):  # type: ignore[misc, unused-ignore]
    """HiGHS without callbacks: to set one prints a banner, whatever the options say."""

    def enableCallbacks(self) -> None:
        """Do not."""


def relax(made: LinearProgram, limits: Limits) -> Outcome:
    """Solve the relaxation, in which every column may take fractions."""
    solver = _loaded(made, limits, is_integer=np.zeros_like(made.is_integer))
    if len(made.row_lower) > _SIMPLEX_ROWS:
        solver.setOptionValue("solver", "ipm")
        solver.setOptionValue("run_crossover", "off")
        solver.setOptionValue("ipm_optimality_tolerance", _TOLERANCE)
    solver.run()
    solution = solver.getSolution()
    if not solution.dual_valid:
        return Outcome(bound=0.0, values=None)
    return Outcome(
        bound=_dual_bound(made, np.array(solution.row_dual)) * (1 - SAFETY),
        values=np.array(solution.col_value) if solution.value_valid else None,
    )


def _dual_bound(made: LinearProgram, prices: Floats) -> float:
    """Return the lower bound that any prices of the rows give, however far from optimal: all columns are bounded."""
    prices = np.where(np.isinf(made.row_upper), np.maximum(prices, 0.0), prices)
    prices = np.where(np.isinf(made.row_lower), np.minimum(prices, 0.0), prices)
    paid = np.where(prices > 0, made.row_lower, made.row_upper)
    rows = np.repeat(np.arange(len(prices)), np.diff(made.start))
    reduced = made.cost - np.bincount(made.index, weights=made.value * prices[rows], minlength=len(made.cost))
    columns = np.where(reduced > 0, made.lower, made.upper) * reduced
    return float((prices[prices != 0] * paid[prices != 0]).sum() + columns.sum())


def optimize(made: LinearProgram, start: Floats, limits: Limits) -> Outcome:
    """Solve the program itself, from a feasible `start`."""
    begun = perf_counter()
    found, claimed = _optimize(made, start, limits, presolve=True)
    if found.values is None or float(made.cost @ found.values) <= claimed + SAFETY * abs(claimed):
        return found
    # HiGHS 1.16 takes a start into the presolved program, where it may cost less, and hands back the start as it was.
    left = Limits(seconds=limits.seconds - (perf_counter() - begun), gap=limits.gap)
    again, _ = _optimize(made, start, left, presolve=False)
    return Outcome(bound=max(found.bound, again.bound), values=found.values if again.values is None else again.values)


def _optimize(made: LinearProgram, start: Floats, limits: Limits, *, presolve: bool) -> tuple[Outcome, float]:
    """Return what HiGHS finds, and the objective that it claims for it."""
    solver = _loaded(made, limits, is_integer=made.is_integer)
    solver.setOptionValue("presolve", "choose" if presolve else "off")
    known = highspy.HighsSolution()
    known.col_value = start.tolist()
    solver.setSolution(known)
    solver.run()
    info = solver.getInfo()
    has_solution = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    found = Outcome(
        bound=max(info.mip_dual_bound, 0.0) * (1 - SAFETY),
        values=np.array(solver.getSolution().col_value) if has_solution else None,
    )
    return found, info.objective_function_value


def _loaded(made: LinearProgram, limits: Limits, *, is_integer: Bools) -> _Solver:
    solver = _Solver()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", _SEED),
        ("time_limit", max(limits.seconds, 0.0)),
        ("mip_rel_gap", limits.gap),
        ("mip_abs_gap", 0.0),
    ):
        solver.setOptionValue(name, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(made.cost), len(made.row_lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = made.cost, made.lower, made.upper
    lp.row_lower_, lp.row_upper_ = made.row_lower, made.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = made.start, made.index, made.value
    if is_integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[integer] for integer in is_integer.tolist()]
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise PlaitError("HiGHS refused the program it was to solve: use strategy 'greedy', and report this")
    return solver
