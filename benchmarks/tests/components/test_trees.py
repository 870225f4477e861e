"""The benchmark of join trees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.components.trees import Stored, capacity, keeps_its_budget
from benchmarks.workloads.tpch_trees import tree_queries


def test_at_low_selectivity_and_a_tenth_of_a_relation_a_task_left_deep_sends_less_than_half_of_flat() -> None:
    found = capacity(1e-8, 0.1)
    assert found.left_deep < found.flat / 2
    assert found.bushy <= found.left_deep


def test_the_advantage_shrinks_as_tasks_hold_more_and_as_joins_grow() -> None:
    def ratio(selectivity: float, share: float) -> float:
        found = capacity(selectivity, share)
        return found.left_deep / found.flat

    assert ratio(1e-8, 0.1) < ratio(1e-8, 0.5) < ratio(1e-8, 1.0) == pytest.approx(1.0, abs=0.01)
    assert ratio(1e-8, 0.1) < ratio(1e-6, 0.1) < ratio(1e-5, 0.1)


def test_the_best_tree_is_never_worse_than_flat() -> None:
    assert capacity(1e-5, 0.1).bushy <= capacity(1e-5, 0.1).flat


BEST = Stored(query="q2", scale=1.0, tree="bushy 1.2", inputs=100.0, rows=110.0, probe_tuples=50.0, budget=120.0)


def test_a_tree_that_keeps_more_than_its_budget_is_seen_computed_or_as_run() -> None:
    assert keeps_its_budget([BEST])
    assert not keeps_its_budget([replace(BEST, rows=121.0)])
    assert not keeps_its_budget([replace(BEST, kept=121)])


def test_more_probes_for_more_budget_are_seen() -> None:
    assert keeps_its_budget([BEST, replace(BEST, budget=150.0, probe_tuples=40.0)])
    assert not keeps_its_budget([BEST, replace(BEST, budget=150.0, probe_tuples=60.0)])
    assert keeps_its_budget([BEST, replace(BEST, query="q3", probe_tuples=60.0)])


def test_the_queries_join_what_the_benchmark_says() -> None:
    by_name = {query.name: query for query in tree_queries()}
    assert len(by_name["q2"].joins) == 4
    assert len(by_name["q3"].joins) == 2
    assert len(by_name["q5"].joins) == 6
    for query in by_name.values():
        for position, relation in enumerate(query.relations[1:], start=1):
            assert query.joins_of(relation, query.relations[:position])
