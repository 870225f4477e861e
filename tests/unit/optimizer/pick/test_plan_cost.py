"""What the steps of a plan cost tells which relation began, as the orders that it is made of were chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.pick.plan_cost import edge_costs
from plait.optimizer.planner import plan

CHAIN = example_query("q", "r.a = s.a", "s.b = t.b")
OPTIONS = example_options("fixed")


def tuples(batch_s: float | None) -> dict[str, float]:
    """Return the tuples a second on every edge, of windows of a second."""
    statistics = replace(example_statistics(OPTIONS), batch_s=batch_s)
    planned = plan((CHAIN,), statistics, OPTIONS)
    return {edge.edge: edge.tuples for edge in edge_costs(planned, statistics, OPTIONS.costs)}


def test_of_long_windows_a_step_brings_the_same_whichever_relation_began() -> None:
    every, found = 100.0, tuples(None)
    assert found["r→s→t"] == found["s→r→t"] == pytest.approx(every)
    assert found["t→s→r"] == pytest.approx(1.5 * every)
    assert tuples(0.01) == pytest.approx(found)


def test_of_windows_of_two_batches_the_relation_of_the_higher_rank_finds_what_the_other_misses() -> None:
    found = tuples(0.5)
    # Half a batch is a quarter of what is kept: r misses it of s, s finds it of r beside the rest, and t that of s.
    assert found["r→s→t"] == pytest.approx(75.0)
    assert found["s→r→t"] == pytest.approx(125.0)
    assert found["t→s→r"] == pytest.approx(150.0 * 1.25)
    assert found["r→s"] == found["s→r"] == found["t→s"] == pytest.approx(100.0)
