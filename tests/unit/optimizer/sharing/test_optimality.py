"""The decision against the paper's formulation and against going through everything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.optimizer.sharing import decide
from tests.unit.optimizer.sharing.evaluate import check, probe_tuples
from tests.unit.optimizer.sharing.instances import Instance, instance
from tests.unit.optimizer.sharing.paper import groups
from tests.unit.optimizer.sharing.reference import BruteForce, optimum


def best(case: Instance) -> float:
    """Decide without a gap; the orders must do what they have to, at the cost they claim."""
    decision = decide(case.queries, case.statistics, replace(case.options, gap=0.0, time_limit_s=60.0))
    check(decision.orders, case.queries)
    cost = probe_tuples(decision.orders, case.queries, case.statistics, case.options)
    assert cost == pytest.approx(decision.solution.objective, rel=1e-9)
    assert decision.solution.bound == pytest.approx(cost, rel=1e-5)
    return cost


def brute_force(case: Instance, ceiling: float) -> float:
    """Return the least cost over the paper's whole search space if it is below the ceiling, else the ceiling."""
    return BruteForce(groups(case.queries, case.statistics, case.options), ceiling).optimum()


@pytest.mark.parametrize("seed", range(12))
def test_going_through_everything_finds_the_same_optimum(seed: int) -> None:
    """Two queries of up to three relations: no ceiling, every choice is looked at unless it costs too much already."""
    case = instance(seed, queries=2, size=3, sources=4, parallelism=1 + 2 * (seed % 2))
    assert brute_force(case, float("inf")) == pytest.approx(best(case), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_going_through_everything_finds_nothing_cheaper(seed: int) -> None:
    case = instance(seed, queries=2, size=4, sources=5, tables=seed % 3)
    found = best(case)
    assert brute_force(case, found * (1 - 1e-7)) == found * (1 - 1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_the_program_of_the_paper_has_the_same_optimum(seed: int) -> None:
    """Up to four queries of up to five relations, one partition a store."""
    case = instance(seed, queries=2 + seed % 3, size=5, tables=seed % 2)
    assert optimum(groups(case.queries, case.statistics, case.options)) == pytest.approx(best(case), rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_the_program_of_the_paper_has_the_same_optimum_with_several_partitions(seed: int) -> None:
    case = instance(seed, queries=2 + seed % 2, size=3 + seed % 2, sources=5, parallelism=4)
    assert optimum(groups(case.queries, case.statistics, case.options)) == pytest.approx(best(case), rel=1e-6)
