"""How many tuples reach a goal follows from the relation that began, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.pick.goals import Goal, Reached
from plait.optimizer.pick.query_costs import QueryCosts

CHAIN = example_query("q", "r.a = s.a", "s.b = t.b")
OPTIONS = example_options("dppick")
R, S, T = 1, 2, 4


def reached(batch_s: float | None, start: int, *units: int) -> float:
    statistics = replace(example_statistics(OPTIONS), batch_s=batch_s)
    costs = QueryCosts(CHAIN, Cardinality(statistics=statistics), OPTIONS)
    return Reached(goal=Goal(costs=costs, start=start, target=costs.everything), units=units).tuples


def test_of_long_windows_as_many_tuples_reach_a_goal_whichever_relation_began() -> None:
    assert {round(reached(None, *order), 6) for order in ((R, S, T), (S, R, T), (S, T, R), (T, S, R))} == {150.0}


@pytest.mark.parametrize(
    ("order", "times"),
    [((R, S, T), 0.75 * 0.75), ((S, R, T), 1.25 * 0.75), ((S, T, R), 0.75 * 1.25), ((T, S, R), 1.25 * 1.25)],
)
def test_of_windows_of_two_batches_it_matters_which_one_began(order: tuple[int, ...], times: float) -> None:
    assert reached(0.5, *order) == pytest.approx(150.0 * times)
