"""The grid of shared partitioning's optimizer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.components.table_choice import (
    BEYOND,
    EXACT,
    Budget,
    Found,
    GridCase,
    drawn_traffic,
    is_missed,
    solve,
    table,
)

CASE = GridCase(queries=2, partitions=4, groups=8, kind="paper")


@pytest.mark.parametrize(("kind", "sources"), [("paper", 1), ("joins", 2), ("rows", 1)])
def test_a_problem_has_the_size_of_its_name(kind: str, sources: int) -> None:
    traffic = drawn_traffic(replace(CASE, kind=kind), 1)
    assert (traffic.groups, traffic.partitions, traffic.sources) == (16, 4, sources)


def test_a_small_case_is_solved_exactly_within_its_budget() -> None:
    found = solve(CASE, 1, Budget(exact_s=4.0))
    assert found.exact is not None
    assert found.best == pytest.approx(found.exact, rel=1e-4)
    assert found.best <= found.quick <= 1.0
    assert not is_missed(found)
    assert table([found]).row_count == 1


def test_only_gaps_of_the_paper_s_model_are_held_to_a_target() -> None:
    found = Found(case=CASE, quick=1.0, quick_s=0.2, best=1.0, best_s=4.0, gap=0.01, found_by=())
    large = replace(found, case=GridCase(queries=32, partitions=32, groups=128, kind="paper"))
    assert is_missed(found)
    assert not is_missed(large)
    assert is_missed(replace(large, gap=0.06))
    assert not is_missed(replace(found, case=replace(CASE, kind="rows")))
    assert len({*EXACT, *BEYOND}) == len(EXACT) + len(BEYOND)
