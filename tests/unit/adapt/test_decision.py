"""What a change is forecast to bring, and what it brought, by the same statistics for both plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.adapt.decision import Change, Outcome, change_between
from plait.adapt.weighing import cost_of
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.stats.model import Statistics

QUERY = example_query("q", "r.a = s.a", "s.b = t.b")


def planned(options: PlanOptions, strategy: str) -> tuple[Plan, Statistics]:
    statistics = example_statistics(options)
    return plan((QUERY,), statistics, replace(options, strategy=strategy)), statistics


FEW_R = example_options("fixed", ("r", 1.0), ("s", 100.0), ("t", 100.0))
FEW_T = example_options("fixed", ("r", 100.0), ("s", 100.0), ("t", 1.0))


def test_a_change_says_what_it_saves() -> None:
    running, _ = planned(FEW_R, "greedy")
    wanted, statistics = planned(FEW_T, "greedy")
    change = change_between(running, wanted, statistics, FEW_T, reason="cheaper")
    before, after = cost_of(running, statistics, FEW_T), cost_of(wanted, statistics, FEW_T)
    assert (change.cost_before, change.cost_after) == (before, after)
    assert change.gain == pytest.approx(1 - after / before)
    assert change.gain > 0.1
    assert change.as_json()["reason"] == "cheaper"


def test_a_change_that_a_budget_forces_may_cost_more() -> None:
    running, statistics = planned(FEW_T, "greedy")
    wanted, _ = planned(FEW_R, "greedy")
    forced = change_between(running, wanted, statistics, FEW_T, reason="storage budget")
    assert forced.gain is not None
    assert forced.gain < 0


def test_what_is_unknown_of_a_plan_is_no_gain() -> None:
    assert Change(reason="cheaper", changes=(), cost_before=None, cost_after=1.0).gain is None
    assert Change(reason="cheaper", changes=(), cost_before=10.0, cost_after=10.0).gain == 0


def test_an_outcome_compares_what_was_measured_with_the_plan_before() -> None:
    outcome = Outcome(forecast=50.0, measured=60.0, before=100.0, taken_back=False)
    assert outcome.gain == 0.4
    assert outcome.as_json() == {
        "forecast": 50.0,
        "measured": 60.0,
        "before": 100.0,
        "gain": 0.4,
        "taken_back": False,
    }
    assert replace(outcome, before=None).gain is None
