"""`dppick` minimizes what its plans cost, and its plans cost what it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer import plan
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import storage_budget
from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
from plait.optimizer.incremental.former import Former
from plait.optimizer.incremental.replan import replan as plan_beside
from plait.optimizer.options import PROBE_COSTS, PlanOptions, ProbeCosts
from plait.optimizer.pick.goals import Goal, arranged, shared_cost
from plait.optimizer.pick.plan_cost import edge_costs, plan_cost
from plait.optimizer.pick.query_costs import QueryCosts, costs_together
from plait.optimizer.pick.step_costs import kept_values
from plait.optimizer.pick.stores import choose_stores
from plait.plan.explain.costs import expected_cost
from plait.plan.step_names import named_steps
from plait.query.masks import positions
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics, StepStatistics
from tests.random_joins import RandomJoins, draw
from tests.unit.optimizer.queries import options, query, stream
from tests.unit.optimizer.random_queries import SOURCES, query_sets, random_statistics

CHAIN = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")


def costs_of(queries: tuple[Query, ...], statistics: Statistics, given: PlanOptions) -> list[QueryCosts]:
    return costs_together(queries, Cardinality(statistics=statistics), given)


def no_dearer(one: float, other: float) -> bool:
    return one <= other * (1 + 1e-9) + 1e-9


@given(queries=query_sets(largest=3), statistics=random_statistics(), batch_s=st.sampled_from((None, 1.0, 20.0, 100.0)))
@settings(max_examples=60, deadline=None)
def test_a_plan_costs_what_its_orders_were_chosen_by(
    queries: tuple[Query, ...], statistics: Statistics, batch_s: float | None
) -> None:
    statistics, given = replace(statistics, batch_s=batch_s), options("dppick", SOURCES, 1)
    chosen = choose_stores(
        costs_of(queries, statistics, given),
        storage_budget(queries, Cardinality(statistics=statistics), given),
        given.costs,
        batch_s,
    )
    assert plan_cost(plan(queries, statistics, given), statistics, PROBE_COSTS) == pytest.approx(chosen.cost, rel=1e-6)


@given(queries=query_sets(largest=3), statistics=random_statistics())
@settings(max_examples=60, deadline=None)
def test_no_strategy_without_stores_has_a_cheaper_plan_for_a_single_query(
    queries: tuple[Query, ...], statistics: Statistics
) -> None:
    one = queries[:1]
    ours = plan_cost(plan(one, statistics, options("dppick", SOURCES, 1)), statistics, PROBE_COSTS)
    for strategy in ("fixed", "selectivity", "greedy", "flat"):
        theirs = plan_cost(plan(one, statistics, options(strategy, SOURCES, 1)), statistics, PROBE_COSTS)
        assert no_dearer(ours, theirs), strategy


@given(queries=query_sets(largest=5), statistics=random_statistics(), parallelism=st.sampled_from((1, 1, 4)))
@settings(max_examples=80, deadline=None)
def test_no_plan_of_greedy_is_cheaper_however_many_queries_and_partitions_there_are(
    queries: tuple[Query, ...], statistics: Statistics, parallelism: int
) -> None:
    ours, theirs = (
        plan_cost(plan(queries, statistics, options(strategy, SOURCES, parallelism)), statistics, PROBE_COSTS)
        for strategy in ("dppick", "greedy")
    )
    assert no_dearer(ours, theirs)


def test_queries_of_two_relations_are_planned_once_and_greedy_finds_no_other_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[int]()
    module = sys.modules["plait.optimizer.strategies.dppick"]
    build = module.build
    monkeypatch.setattr(module, "build", lambda *told: made.append(len(told[0])) or build(*told))
    queries = tuple(
        query(f"q{number}", {"x": left, "y": right}, [f"x.{key} = y.{key}"], windows={"x": number, "y": number})
        for number, (left, right, key) in enumerate(product("rs", "st", "ab"), 1)
    )
    statistics = declared_statistics(tuple(stream(name, rate=10.0 * place) for place, name in enumerate("rst", 1)))
    ours, theirs = (plan(queries, statistics, options(name, SOURCES, 4)) for name in ("dppick", "greedy"))
    assert made == [len(queries)]
    assert replace(ours, strategy="greedy") == theirs


def test_orders_of_greedy_are_a_beginning_where_each_query_alone_leads_to_more_work() -> None:
    drawn = draw(RandomJoins(relations=5, queries=8, size=4, seed=41, attributes=4))
    rates = (10.0, 100.0, 1_000.0)
    streams = tuple(
        replace(each, declared=replace(each.declared, rate_rows_per_s=rates[(41 + place * 7) % 3]))
        for place, each in enumerate(drawn.streams)
    )
    asked = replace(drawn, streams=streams)
    ours, theirs = (
        plan_cost(plan(asked.queries, asked.statistics, asked.options(name, 1)), asked.statistics, PROBE_COSTS)
        for name in ("dppick", "greedy")
    )
    assert no_dearer(ours, theirs)


@given(queries=query_sets(largest=4))
@settings(max_examples=60, deadline=None)
def test_at_a_first_start_that_knows_nothing_no_store_is_kept_and_hardly_more_is_sent_than_by_greedy(
    queries: tuple[Query, ...],
) -> None:
    ours, theirs = (plan(queries, Statistics(), options(strategy, SOURCES)) for strategy in ("dppick", "greedy"))
    assert all(store.intermediate is None for store in ours.stores)
    sent = [expected_cost(each).probe_tuples_per_s or 0.0 for each in (ours, theirs)]
    # What all look-ups cost alike: with logarithms of sizes that differ, a look-up more may be the cheaper way.
    assert sent[0] <= sent[1] * 1.3 + 1e-9


@given(queries=query_sets(largest=3), statistics=random_statistics())
@settings(max_examples=40, deadline=None)
def test_sharing_never_costs_more_than_every_query_by_itself(
    queries: tuple[Query, ...], statistics: Statistics
) -> None:
    costs = costs_of(queries, statistics, options("dppick", SOURCES, 1))
    goals = [
        Goal(costs=each, start=1 << start, target=each.everything)
        for each in costs
        for start in positions(each.streams)
    ]
    together = shared_cost(arranged((goal, None) for goal in goals).orders)
    alone = [found for each in costs for found in arranged((goal, None) for goal in goals if goal.costs is each).orders]
    assert no_dearer(together, shared_cost(alone))


def test_queries_that_may_share_a_step_take_the_way_that_is_cheapest_for_both() -> None:
    # Alone p would begin with t, which is a little cheaper; q has to go by s.
    statistics = Statistics(
        sources=tuple(SourceStatistics(source=name, rate_rows_per_s=100.0) for name in "rstu"),
        joins=tuple(
            JoinSelectivity(sides=((left, f"#k bigint `{key}`"), (right, f"#k bigint `{key}`")), selectivity=share)
            for left, right, key, share in (("r", "s", "a", 0.0101), ("r", "t", "b", 0.01), ("s", "u", "c", 0.01))
        ),
    )
    p, q = example_query("p", "r.a = s.a", "r.b = t.b"), example_query("q", "r.a = s.a", "s.c = u.c")
    given = replace(example_options("dppick"), storage_rows=0)
    assert "p: r t s" in probe_orders(plan((p,), statistics, given))
    assert "p: r s t" in probe_orders(plan((p, q), statistics, given))


def test_a_store_is_kept_where_it_pays_and_only_within_the_budget() -> None:
    many_r = example_options("dppick", ("r", 100_000.0), ("s", 100.0), ("t", 100.0), ("u", 100.0))

    def stores(given: PlanOptions) -> list[str]:
        made = plan((CHAIN,), example_statistics(given), given)
        return [store.id.split("~")[0] for store in made.stores if store.intermediate is not None]

    assert stores(many_r) == ["s⋈t⋈u"]
    assert stores(replace(many_r, storage_rows=100_300)) == []
    assert stores(replace(many_r, costs=replace(PROBE_COSTS, keep=1e9))) == []
    few_r = example_options("dppick", ("r", 1_000.0), ("s", 100.0), ("t", 100.0), ("u", 100.0))
    assert stores(few_r) == []  # what its files take in every batch is more than it saves
    assert stores(replace(few_r, costs=replace(PROBE_COSTS, store=0.0))) == ["s⋈t⋈u"]


def test_what_is_measured_of_a_step_counts_more_than_what_sizes_say() -> None:
    given = replace(example_options("dppick"), storage_rows=0)
    declared = example_statistics(given)
    made = plan((CHAIN,), declared, given)
    assert "q: s r t u" in probe_orders(made)
    names = dict(named_steps(made))
    seen = StepStatistics(before=names["s→r"].before, after=names["s→r"].after, matching=1.0, matches=50.0)
    told = replace(declared, steps=(seen,))
    assert "q: s r t u" not in probe_orders(plan((CHAIN,), told, given))
    (edge,) = (edge for edge in edge_costs(made, told, PROBE_COSTS) if edge.edge == "s→r")
    assert edge.step.growth == pytest.approx(50.0)


def test_each_ablation_minimizes_its_own_part_and_the_whole_is_never_dearer() -> None:
    whole = ProbeCosts()
    for rates in product((10.0, 1_000.0), repeat=4):
        given = replace(example_options("dppick", *zip("rstu", rates, strict=True)), storage_rows=0)
        statistics = example_statistics(given)

        def cost(chosen_by: ProbeCosts, judged_by: ProbeCosts) -> float:
            made = plan((CHAIN,), statistics, replace(given, costs=chosen_by))  # noqa: B023
            return plan_cost(made, statistics, judged_by)  # noqa: B023

        for part in (replace(whole, match=0.0), replace(whole, query=0.0)):  # paper 003, section 5.3
            assert no_dearer(cost(whole, whole), cost(part, whole))
            assert no_dearer(cost(part, part), cost(whole, part))


def test_a_larger_store_is_asked_at_a_higher_price_and_a_band_or_no_key_at_another() -> None:
    sources = (stream("r", rate=10), stream("s", rate=1_000_000), stream("t", rate=10))
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "r.a = t.a"], windows=dict.fromkeys("rst", 10))
    statistics = Statistics(
        sources=tuple(
            SourceStatistics(source=each.name, rate_rows_per_s=rate, distinct=(("a", 1e9),))
            for each, rate in zip(sources, (10.0, 1e6, 10.0), strict=True)
        )
    )
    (costs,) = costs_of((asked,), statistics, options("dppick", sources, 1))
    r, s, t = (costs.mask(alias) for alias in "rst")
    assert costs.step(r, s).price > 2 * costs.step(r, t).price
    # Without a key every stored row is compared.
    assert costs.step(s, t).price == pytest.approx(PROBE_COSTS.query + 100 * PROBE_COSTS.match)


def test_distinct_values_in_a_store_are_no_more_than_its_rows_or_all_values() -> None:
    for values, rows in product((1.0, 10.0, 1e6), (0.0, 1.0, 50.0, 1e9)):
        assert 0.0 <= kept_values(values, rows) <= min(values, rows) * (1 + 1e-9)


@pytest.mark.parametrize("strategy", ["dppick", "adhoc", "ilp"])
def test_a_query_that_can_be_joined_in_too_many_ways_has_the_orders_of_greedy(strategy: str) -> None:
    """Of a star of 24 there are eight million sets to come to, from scratch and beside other queries."""
    names = tuple(f"s{number:02}" for number in range(24))
    sources = tuple(stream(name, rate=50.0 + len(name), distinct={"a": 9.0}) for name in names)
    star = query("star", {name: name for name in names}, [f"s00.a = {name}.a" for name in names[1:]])
    pair = query("pair", {"s00": "s00", "s01": "s01"}, ["s00.a = s01.a"])
    statistics, asked = declared_statistics(sources), options(strategy, sources)
    greedy = plan((star, pair), statistics, options("greedy", sources))
    beside = plan((pair,), statistics, asked)
    former = Former(plan=beside, queries=(pair,))
    made = [plan_beside(former, former.change_to((pair, star)), (pair, star), statistics, asked)]
    made += [plan((star, pair), statistics, asked)] if strategy == "dppick" else []
    for each in made:
        assert [order for order in probe_orders(each) if order.startswith("star")] == [
            order for order in probe_orders(greedy) if order.startswith("star")
        ]
