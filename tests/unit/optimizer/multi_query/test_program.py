"""The program and its bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from plait.optimizer.linear.highs import optimize, relax
from plait.optimizer.multi_query import Limits, Space, decide, explore, program
from plait.optimizer.multi_query.problem import components
from plait.optimizer.multi_query.solution import ArcSolution
from plait.optimizer.multi_query.solver import chosen, search, simple_bound, values_of
from tests.random_joins import Instance, RandomJoins, draw

LIMITS = Limits(seconds=60.0, gap=0.0)


def equal_joins(*, size: int, queries: int, seed: int = 1, relations: int = 10) -> Instance:
    return draw(RandomJoins(relations=relations, queries=queries, size=size, seed=seed))


def searched(space: Space) -> list[ArcSolution]:
    """Return what local search makes of every component."""
    choices = [space.start(component, space.weights) for component in components(space.network)]
    for solution in choices:
        search(solution)
    return choices


def explored(made: Instance, parallelism: int = 1) -> Space:
    return explore(made.queries, made.statistics, made.options("ilp", parallelism))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [4, 5])
def test_the_steps_of_a_query_of_equal_joins_cost_what_its_row_says(
    size: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that row, which must follow from the others: 2 (n − 1) times the rows of an input."""
    monkeypatch.setattr(program, "_COUNTED", range(0))
    made = equal_joins(size=size, queries=1, seed=seed)
    found = decide(made.queries, made.statistics, replace(made.options("ilp", 1), gap=0.0, time_limit_s=60.0))
    assert found.solution.objective == pytest.approx(200 * (size - 1))
    assert found.solution.bound == pytest.approx(200 * (size - 1), rel=1e-5)


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_no_bound_is_above_a_choice(size: int, parallelism: int) -> None:
    for solution in searched(explored(equal_joins(size=size, queries=8), parallelism)):
        made = program.program(solution.problem)
        relaxed = relax(made, LIMITS)
        assert simple_bound(solution.problem) <= relaxed.bound * (1 + 1e-6) <= solution.cost * (1 + 1e-6)


@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_choice_fulfils_the_program_at_its_cost(parallelism: int) -> None:
    for solution in searched(explored(equal_joins(size=4, queries=8), parallelism)):
        made = program.program(solution.problem)
        values = values_of(solution.problem, made, solution)
        rows = np.repeat(np.arange(len(made.row_lower)), np.diff(made.start))
        sums = np.bincount(rows, weights=made.value * values[made.index], minlength=len(made.row_lower))
        assert np.all(sums >= made.row_lower - 1e-9)
        assert np.all(sums <= made.row_upper + 1e-9)
        assert made.cost @ values == pytest.approx(solution.cost)
        again = chosen(solution.problem, made, values)
        assert again.cost == pytest.approx(solution.cost)


def test_arcs_that_leave_no_way_to_a_goal_become_a_choice_of_all_arcs() -> None:
    """Where the storage budget is tight the arcs of a choice need not fit in another order; here there are none."""
    solution = max(searched(explored(equal_joins(size=4, queries=8))), key=lambda each: each.cost)
    made = program.program(solution.problem)
    nothing = np.zeros_like(values_of(solution.problem, made, solution))
    found = chosen(solution.problem, made, nothing)
    assert all(found.needs[goal] for goal in solution.problem.goals.tolist())
    assert found.cost >= solution.cost * (1 - 1e-9)


def test_branch_and_bound_begins_with_the_choice_it_is_given() -> None:
    """No time to find anything: what comes back is what went in."""
    solution = max(searched(explored(equal_joins(size=4, queries=12))), key=lambda each: each.cost)
    made = program.program(solution.problem)
    found = optimize(made, values_of(solution.problem, made, solution), Limits(seconds=0.0, gap=0.0))
    if found.values is not None:
        assert chosen(solution.problem, made, found.values).cost <= solution.cost * (1 + 1e-9)


def test_moves_can_be_taken_back() -> None:
    solution = max(searched(explored(equal_joins(size=4, queries=12))), key=lambda each: each.cost)
    before = (solution.cost, solution.arc.copy(), solution.needs.copy(), solution.uses.copy(), solution.key.copy())
    savepoint = solution.begin()
    for goal in solution.problem.goals.tolist():
        solution.release(goal)
    inner = solution.begin(inside=True)
    for goal in solution.problem.goals.tolist()[::2]:
        solution.require(goal)
    solution.undo(inner)
    assert not any(solution.uses)
    assert solution.cost == pytest.approx(0.0, abs=1e-9)
    solution.undo(savepoint)
    assert (solution.cost, solution.arc, solution.needs, solution.uses, solution.key) == before


def test_costs_kept_move_by_move_are_those_added_up_anew() -> None:
    for solution in searched(explored(equal_joins(size=5, queries=8), 4)):
        kept = solution.cost
        solution.recount()
        assert math.isclose(kept, solution.cost, rel_tol=1e-12)
