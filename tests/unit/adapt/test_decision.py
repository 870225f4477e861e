"""A plan is taken only if it gains, judged for both plans by the same statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.adapt.decision import MARGIN, Change, change_between, cost_of, decide
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.stats.model import Statistics

OPTIONS = example_options("fixed")
QUERY = example_query("q", "r.a = s.a", "s.b = t.b")


def planned(options: PlanOptions, strategy: str) -> tuple[Plan, Statistics]:
    statistics = example_statistics(options)
    return plan((QUERY,), statistics, replace(options, strategy=strategy)), statistics


FEW_R = example_options("fixed", ("r", 1.0), ("s", 100.0), ("t", 100.0))
FEW_T = example_options("fixed", ("r", 100.0), ("s", 100.0), ("t", 1.0))


def test_a_cheaper_plan_is_taken_and_says_by_how_much() -> None:
    running, _ = planned(FEW_R, "greedy")
    wanted, statistics = planned(FEW_T, "greedy")
    change = decide(running, wanted, statistics, FEW_T)
    assert change is not None
    assert (change.cost_before, change.cost_after) == (
        cost_of(running, statistics, FEW_T),
        cost_of(wanted, statistics, FEW_T),
    )
    assert change.gain == pytest.approx(1 - (change.cost_after or 0) / (change.cost_before or 1))
    assert change.gain > MARGIN
    assert change.as_json()["reason"] == "cheaper"


def test_a_dearer_plan_is_not_taken_but_where_a_budget_forces_it() -> None:
    running, statistics = planned(FEW_T, "greedy")
    wanted, _ = planned(FEW_R, "greedy")
    assert decide(running, wanted, statistics, FEW_T) is None
    forced = change_between(running, wanted, statistics, FEW_T, reason="storage budget")
    assert forced.gain is not None
    assert forced.gain < 0


def test_a_plan_that_does_the_same_is_no_change() -> None:
    running, statistics = planned(FEW_R, "greedy")
    assert decide(running, replace(running, strategy="other"), statistics, FEW_R) is None


def test_a_plan_of_equal_cost_changes_nothing() -> None:
    # All streams alike: probing s first or t first costs the same from every start.
    even = example_options("fixed", ("r", 100.0), ("s", 100.0), ("t", 100.0))
    running, statistics = planned(even, "fixed")
    costs = Change(reason="cheaper", changes=(), cost_before=10.0, cost_after=10.0)
    assert costs.gain == 0
    assert decide(running, running, statistics, even) is None


def test_what_is_unknown_of_both_plans_changes_nothing() -> None:
    assert Change(reason="cheaper", changes=(), cost_before=None, cost_after=1.0).gain is None


def test_rows_that_enter_an_intermediate_store_cost_what_the_options_say_where_the_strategy_weighs_them() -> None:
    deep, statistics = planned(FEW_R, "left-deep")
    assert any(store.intermediate is not None for store in deep.stores)
    free, dear = (replace(FEW_R, strategy="ilp", store_weight=weight) for weight in (0.0, 100.0))
    assert (cost_of(deep, statistics, free) or 0) < (cost_of(deep, statistics, dear) or 0)
    heedless = replace(FEW_R, strategy="bushy", store_weight=100.0)
    assert cost_of(deep, statistics, heedless) == cost_of(deep, statistics, free)
