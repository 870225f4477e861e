"""The decision against the paper's formulation and against going through everything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.estimate.storage_budget import storage_budget
from plait.optimizer.multi_query import decide
from tests.unit.optimizer.multi_query.evaluate import check, intermediate_rows, probe_tuples
from tests.unit.optimizer.multi_query.instances import Instance, instance
from tests.unit.optimizer.multi_query.paper import groups, whole
from tests.unit.optimizer.multi_query.reference import BruteForce, RemainingBudget, optimum


def best(case: Instance) -> float:
    """Decide without a gap; the orders must do what they have to, at the cost they claim."""
    decision = decide(case.queries, case.statistics, case.options)
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


@pytest.mark.parametrize("seed", range(24))
def test_going_through_everything_finds_nothing_cheaper(seed: int) -> None:
    case = instance(seed + 200, queries=2 + seed % 3, size=4, sources=5, tables=seed % 2)
    found = best(case)
    assert brute_force(case, found * (1 - 1e-7)) == found * (1 - 1e-7)


@pytest.mark.parametrize("seed", range(24))
def test_the_program_of_the_paper_has_the_same_optimum(seed: int) -> None:
    """Up to four queries of up to five relations, one partition a store."""
    case = instance(seed, queries=2 + seed % 3, size=5, tables=seed % 2)
    assert optimum(groups(case.queries, case.statistics, case.options)) == pytest.approx(best(case), rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_the_program_of_the_paper_has_the_same_optimum_with_several_partitions(seed: int) -> None:
    case = instance(seed, queries=2 + seed % 2, size=3 + seed % 2, sources=5, parallelism=4)
    assert optimum(groups(case.queries, case.statistics, case.options)) == pytest.approx(best(case), rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_program_of_the_paper_has_the_same_optimum_within_a_storage_budget(seed: int) -> None:
    case = instance(seed, queries=2 + seed % 2, size=4, sources=5)
    made = groups(case.queries, case.statistics, case.options)
    cardinality = Cardinality(statistics=case.statistics)
    rows = {
        whole(query).result(unit): JoinSizes(query, cardinality, case.options).size(frozenset(unit))
        for query in case.queries
        for unit in whole(query).mirs()
        if len(unit) > 1
    }
    inputs = 1e15 - storage_budget(case.queries, cardinality, replace(case.options, storage_rows=1e15)).left
    free = decide(case.queries, case.statistics, case.options)
    wanted = intermediate_rows(free.orders, case.queries, case.statistics, case.options)
    for share in (0.8, 0.4, 0.1):
        limited = replace(case, options=replace(case.options, storage_rows=inputs + share * wanted))
        remaining = RemainingBudget(rows=rows, most=share * wanted * (1 + 1e-9))
        assert optimum(made, remaining=remaining) == pytest.approx(best(limited), rel=1e-6)


@pytest.mark.parametrize("left_out", ["subqueries", "one partitioning"])
def test_without_a_constraint_the_program_of_the_paper_is_cheaper_somewhere(left_out: str) -> None:
    """So the comparisons above would notice if the product's program did not have it."""
    cases = [instance(seed, queries=3, size=3, sources=4, parallelism=4) for seed in range(4)]
    made = [groups(case.queries, case.statistics, case.options) for case in cases]
    assert any(optimum(each, leave_out=left_out) < optimum(each) * 0.999 for each in made)
