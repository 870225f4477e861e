"""Advice, checked against planning anew and against arithmetic done by hand."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from plait.optimizer import plan
from plait.optimizer.advise import advice
from plait.optimizer.advise.advice import LADDER, advise
from plait.optimizer.advise.comparing import compare, unknown_text
from plait.optimizer.advise.marginal_benefit import MarginalBenefit
from plait.optimizer.advise.unknowns import Unknown, assumptions, supposing
from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.explain import expected_cost
from plait.plan.model import Plan
from plait.query.model import Query, Source
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics
from tests.golden.cases import CASES
from tests.golden.test_explain import plan_of
from tests.random_joins import RandomJoins, draw
from tests.unit.optimizer.queries import options, planned, query, stream, table

CASE = CASES["stored_join"]
STATISTICS = declared_statistics(CASE.sources)
OPTIONS = options("ilp", CASE.sources, 1)


def per_s(made: Plan) -> float:
    return expected_cost(made).probe_tuples_per_s or 0.0


def test_baselines_are_the_plans_that_these_strategies_make() -> None:
    made = planned(CASE.queries, sources=CASE.sources)
    compared = compare(made, CASE.queries, STATISTICS, OPTIONS)
    assert [cost.strategy for cost in compared.others] == ["independent", "shared"]
    alone = [per_s(planned((each,), sources=CASE.sources)) for each in CASE.queries]
    assert compared.others[0].probe_tuples_per_s == pytest.approx(sum(alone))
    assert compared.others[0].stored_rows == pytest.approx(600)
    assert compared.others[1] == replace(expected_cost(made), strategy="shared")
    assert compared.assumed == ()


def test_of_plans_that_differ_in_the_last_digit_of_a_sum_the_best_keeps_the_fewest_rows() -> None:
    sources = tuple(stream(name, rate=rate, distinct={"a": 10}) for name, rate in (("r", 1.1), ("s", 7.7), ("t", 0.1)))
    conditions = {"st": "s.a = t.a", "rs": "r.a = s.a", "rt": "r.a = t.a", "st2": "s.a = t.b"}
    queries = tuple(
        query(name, {condition[0]: condition[0], condition[6]: condition[6]}, [condition])
        for name, condition in conditions.items()
    )
    made = advise(queries, declared_statistics(sources), options("dppick", sources))
    alone, *shared = made.costs
    assert alone.probe_tuples_per_s == pytest.approx(shared[0].probe_tuples_per_s)
    assert (alone.stored_rows, made.best.strategy) == (pytest.approx(256), "ilp")
    assert expected_cost(made.best).stored_rows == pytest.approx(89)


def test_what_a_store_saves_is_what_the_plan_without_it_costs_more() -> None:
    made = plan_of(replace(CASE, parallelism=1))
    store = next(store.id for store in made.stores if store.intermediate is not None)
    saved = MarginalBenefit(made, CASE.queries, STATISTICS, OPTIONS).saved_per_s(store)
    # Without it 10 pairs r, s a second go on to probe t, and 10 pairs u, t to probe s.
    assert saved == pytest.approx(20)
    flat = [replace(order, units=(("r",), ("s",), ("t",))) if "st" in map("".join, order.units) else order
            for order in CASE.orders if order.query == "q1" and not order.fills]  # fmt: skip
    flat += [replace(order, units=(("u",), ("t",), ("s",))) if "st" in map("".join, order.units) else order
             for order in CASE.orders if order.query == "q2"]  # fmt: skip
    without = build(CASE.queries, flat, STATISTICS, OPTIONS)
    assert saved == pytest.approx(per_s(without) - per_s(made))


def test_what_stores_save_is_found_right_where_they_fill_each_other() -> None:
    drawn = draw(RandomJoins(relations=6, queries=12, size=5, seed=3))
    made = plan(drawn.queries, drawn.statistics, drawn.options("ilp", 1))
    benefit = MarginalBenefit(made, drawn.queries, drawn.statistics, drawn.options("ilp", 1))
    stores = {store.id: len(store.intermediate.parts) for store in made.stores if store.intermediate is not None}
    inside = [name for name in stores if any(fills_with(made, name, other) for other in stores)]
    assert inside, "some store is read on the way to a larger one"
    for name in stores:
        assert benefit.saved_per_s(name) == pytest.approx(recounted(drawn.queries, made, name, benefit))


def fills_with(made: Plan, read: str, filled: str) -> bool:
    return any(
        step.member.store == read
        and any(fill.store == filled for each in (step, *step.children) for fill in each.fills)
        for tree in made.trees
        for _, step in tree.walk()
    )


def recounted(queries: tuple[Query, ...], made: Plan, store: str, benefit: MarginalBenefit) -> float:
    """Build the whole plan again without the store, with the stores' partitioning as it is (one partition each)."""
    drawn = draw(RandomJoins(relations=6, queries=12, size=5, seed=3))
    orders = []
    for each in benefit._orders:
        if each.fills == store:
            continue
        units = benefit._without(each, store) if store in each.reads.values() else each.order.units
        orders.append(replace(each.order, units=tuple(units)))
    again = build(queries, orders, drawn.statistics, drawn.options("ilp", 1))
    return per_s(again) - per_s(made)


def test_a_query_adds_what_nobody_else_needs_and_the_most_expensive_comes_first() -> None:
    sources = (stream("r", rate=100), stream("s", rate=10), stream("t", rate=1), table("n", rows=5, distinct={"x": 5}))
    asked = (
        query("pair", {"r": "r", "s": "s"}, ["r.a = s.a"]),
        query("named", {"r": "r", "s": "s", "n": "n"}, ["r.a = s.a", "r.x = n.x"], tables={"n"}),
        query("cheap", {"t": "t", "u": "t"}, ["t.a = u.a"]),
    )
    statistics = declared_statistics(sources)
    found = advise(asked, statistics, options("ilp", sources, 1))
    assert [each.query for each in found.queries] == ["named", "cheap", "pair"]
    costs = {each.query: each for each in found.queries}
    assert costs["pair"].added_per_s == 0
    assert costs["cheap"].added_per_s == costs["cheap"].alone_per_s == pytest.approx(2)
    assert costs["named"].added_per_s > 0


def test_the_best_plan_is_the_cheapest_and_of_equals_the_one_that_shares_most() -> None:
    found = advise(CASE.queries, STATISTICS, OPTIONS)
    assert [cost.strategy for cost in found.costs] == list(LADDER)
    assert found.best.strategy == "ilp"
    assert per_s(found.best) == min(cost.probe_tuples_per_s or 0.0 for cost in found.costs)
    assert [(store.queries, store.rows) for store in found.stores] == [(("q1", "q2"), 150)]
    single = advise((query("q", {"r": "r"}),), Statistics(), options("ilp", (stream("r"),), 1))
    assert (single.best.strategy, single.stores) == ("ilp", ())


def test_without_a_solver_the_ladder_ends_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "STRATEGIES", dict.fromkeys(("shared", "independent")))
    found = advise(CASE.queries, STATISTICS, OPTIONS)
    assert [cost.strategy for cost in found.costs] == ["independent", "shared"]
    assert found.best.strategy == "shared"


SHOP: tuple[Source, ...] = (stream("r", rate=100, distinct={"a": 50}), stream("s"), table("n"))
ASKED = (
    query(
        "q",
        {"r": "r", "s": "s", "n": "n"},
        ["r.a = s.a", "s.b = n.b"],
        tables={"n"},
        where={"s": ["`v` > 5", "`w` = 1"]},
        windows={"r": 10, "s": 10},
    ),
)


def test_assumptions_are_named_with_what_rests_on_them() -> None:
    made = planned(ASKED, "fixed", sources=SHOP)
    found = {each.unknown: each for each in assumptions(made, Cardinality(statistics=declared_statistics(SHOP)))}
    shares = {unknown_text(unknown): each.share for unknown, each in found.items()}
    assert set(shares) == {
        "the rate of s",
        "how often s.v > 5 holds",
        "how often s.w = 1 holds",
        "the distinct values of s.a",
        "the rows of n",
    }
    assert shares["the rows of n"] == 0, "nothing is probed after n, but its rows are stored"
    assert 0 < shares["the rate of s"] < 1, "r→s carries what r brings, which is declared"
    assert {each.unknown.option for each in found.values()} == {"rate", None, "distinct.a", "rows"}


def test_numbers_that_are_known_are_not_assumed() -> None:
    statistics = declared_statistics(SHOP)
    made = planned(ASKED, sources=SHOP)
    for each in assumptions(made, Cardinality(statistics=statistics)):
        statistics = supposing(statistics, each.unknown, each.value)
    assert assumptions(made, Cardinality(statistics=statistics)) == ()
    assert per_s(reestimated(made, Cardinality(statistics=statistics))) == pytest.approx(per_s(made))


def test_supposing_another_number_moves_the_estimates_that_rest_on_it() -> None:
    statistics = declared_statistics(SHOP)
    made = planned(ASKED, sources=SHOP)
    faster = supposing(statistics, Unknown(source="s", what="rate"), 10_000.0)
    assert per_s(reestimated(made, Cardinality(statistics=faster))) > 4 * per_s(made)
    found = advise(ASKED, statistics, options("ilp", SHOP, 1)).assumptions
    assert found[0].assumption.share >= found[-1].assumption.share
    by_name = {unknown_text(each.assumption.unknown): each for each in found}
    rate = by_name["the rate of s"]
    assert rate.low_per_s is not None
    assert rate.high_per_s is not None
    assert rate.low_per_s < rate.high_per_s


def test_a_hundred_queries_take_seconds() -> None:
    drawn = draw(RandomJoins(relations=100, queries=100, size=3, seed=1))
    began = process_time()
    advise(drawn.queries, drawn.statistics, drawn.options("ilp", 2))
    assert process_time() - began < 20, "seconds of processor time; about two"


def test_of_two_joined_keys_only_the_one_with_more_values_settles_the_selectivity() -> None:
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"])
    sources = (
        stream("r", rate=100, distinct={"a": 5_000}),
        stream("s", rate=100, distinct={"b": 10}),
        stream("t", rate=100),
    )
    made = planned((asked,), "fixed", sources=sources)
    found = assumptions(made, Cardinality(statistics=declared_statistics(sources)))
    # 100 values are assumed for s.a and t.b: fewer than r.a is known to have, more than s.b.
    assert [unknown_text(each.unknown) for each in found] == ["the distinct values of t.b"]
