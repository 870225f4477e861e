"""What a decision is, beyond being the cheapest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import OptionError
from plait.optimizer import plan
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import storage_budget
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.multi_query import Decision, decide, quick_cost
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, cheapest_extension, choose_orders
from plait.plan.traversals import probe_tuples_estimate
from plait.query.model import Query
from plait.stats.model import Statistics
from tests.random_joins import RandomJoins, draw
from tests.unit.optimizer.multi_query.evaluate import check, intermediate_rows, probe_tuples
from tests.unit.optimizer.multi_query.instances import instance
from tests.unit.optimizer.queries import options, query, stream
from tests.unit.optimizer.random_queries import SOURCES, query_sets, random_statistics

FIRST = example_query("q1", "r.a = s.a", "s.b = t.b")
SECOND = example_query("q2", "s.b = t.b", "t.c = u.c")


def decided(*queries: Query, **changes: object) -> Decision:
    chosen = replace(example_options("ilp"), gap=0.0, **changes)
    return decide(queries, example_statistics(chosen), chosen)


def written(decision: Decision, name: str) -> list[str]:
    """Return the orders of a query as ``r st``; those that fill a store end in ``!``."""
    return [
        " ".join("".join(unit) for unit in order.units) + ("!" if order.fills else "")
        for order in decision.orders
        if order.query == name
    ]


def test_section_v_2_without_intermediate_stores_costs_475_each_and_800_shared() -> None:
    """A budget that the inputs use up leaves nothing for intermediate stores, which the section ignores."""
    assert decided(FIRST, storage_rows=1).solution.objective == pytest.approx(475)
    assert decided(SECOND, storage_rows=1).solution.objective == pytest.approx(475)
    shared = decided(FIRST, SECOND, storage_rows=1)
    assert shared.solution.objective == pytest.approx(800)
    assert written(shared, "q1") == ["r s t", "s t r", "t s r"]
    assert written(shared, "q2") == ["s t u", "t s u", "u t s"]


def test_an_intermediate_store_is_shared_and_filled_once() -> None:
    shared = decided(FIRST, SECOND)
    assert written(shared, "q1") == ["r st", "s t r", "t s r", "s t!", "t s!"]
    assert written(shared, "q2") == ["s t u", "t s u", "u st"]
    assert shared.solution.objective == pytest.approx(700)
    assert shared.solution.gap == pytest.approx(0.0, abs=1e-6)


def test_ways_to_one_node_are_one_way() -> None:
    """⟨r, s, t⟩ and ⟨r, t, s⟩ lead to the same pairs; orders that start with either pay twice, a network pays once.

    Of r's orders, two have to begin with s and t. Each query alone could go through either to r, s and t.
    """
    star = ("r.a = s.a", "r.b = t.b")
    queries = (
        example_query("p", "r.a = s.a"),
        example_query("q", "r.b = t.b"),
        example_query("with_u", *star, "r.c = u.c"),
        example_query("alone", *star),
    )
    found = decided(*queries, storage_rows=1)
    starting = {order.query: order.units for order in found.orders if order.units[0] == ("r",)}
    assert starting["with_u"][:3] == starting["alone"]
    options = replace(example_options("ilp"), storage_rows=1)
    prefixes = (
        *(order for order in found.orders if order.units[0] != ("r",) or order.query in {"p", "q"}),
        ProbeOrder(query="with_u", units=(("r",), ("s",), ("t",), ("u",))),
        ProbeOrder(query="alone", units=(("r",), ("t",), ("s",))),
    )
    paid_twice = probe_tuples(prefixes, queries, example_statistics(options), options)
    assert found.solution.objective < paid_twice


def test_a_query_contained_in_another_costs_nothing_more_than_its_own_last_steps() -> None:
    whole = example_query("whole", "r.a = s.a", "s.b = t.b", "t.c = u.c")
    assert decided(whole, FIRST).solution.objective == decided(whole, replace(FIRST, name="other")).solution.objective
    alone = decided(whole).solution.objective
    assert decided(whole, replace(whole, name="again")).solution.objective == alone


def test_a_storage_budget_is_kept() -> None:
    case = instance(3, queries=3, size=4, sources=5)
    free = decide(case.queries, case.statistics, replace(case.options, gap=0.0))
    wanted = intermediate_rows(free.orders, case.queries, case.statistics, case.options)
    inputs = (
        1e12 - storage_budget(case.queries, Cardinality(statistics=case.statistics), _with(case.options, 1e12)).left
    )
    costs = [free.solution.objective]
    for share in (1.0, 0.7, 0.3, 0.0):
        limited = _with(case.options, inputs + share * wanted)
        found = decide(case.queries, case.statistics, limited)
        check(found.orders, case.queries)
        rows = intermediate_rows(found.orders, case.queries, case.statistics, case.options)
        assert rows <= share * wanted * (1 + 1e-9)
        costs.append(found.solution.objective)
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(costs[1])
    assert costs[0] < costs[-1]
    assert not any(order.fills for order in found.orders)


@pytest.mark.parametrize("seed", [6, 10])
def test_stores_that_fill_each_other_do_not_exceed_a_budget_that_is_less_than_they_would_like(seed: int) -> None:
    """A choice may overstep it on the way; none that does is kept."""
    case = instance(seed, queries=4, size=5, sources=6)
    quick = replace(case.options, time_limit_s=0.5)
    free = decide(case.queries, case.statistics, quick)
    wanted = intermediate_rows(free.orders, case.queries, case.statistics, quick)
    assert wanted > 0
    unlimited = storage_budget(case.queries, Cardinality(statistics=case.statistics), _with(quick, 1e12))
    for share in (0.95, 0.2):
        limited = _with(quick, 1e12 - unlimited.left + share * wanted)
        found = decide(case.queries, case.statistics, limited)
        rows = intermediate_rows(found.orders, case.queries, case.statistics, limited)
        assert rows <= share * wanted * (1 + 1e-9)


def _with(options: PlanOptions, rows: float) -> PlanOptions:
    return replace(options, storage_rows=rows, gap=0.0)


def test_a_budget_in_bytes_counts_the_columns_of_all_members() -> None:
    first = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], select=["r.v", "s.v", "t.v"])
    made = [stream(name, rate=10.0, distinct={"a": 100.0, "b": 100.0}) for name in "rst"]
    chosen = options("ilp", made)
    known = Statistics(sources=())
    cardinality = Cardinality(statistics=known)
    left = storage_budget((first,), cardinality, replace(chosen, storage_bytes=10_000_000.0))
    assert dict(left.width_bytes) == {"r": 24.0, "s": 32.0, "t": 24.0}
    assert left.left == 10_000_000 - 10_000 * (24 + 32 + 24)


def test_both_budgets_are_refused() -> None:
    with pytest.raises(OptionError, match="in one of them"):
        example_options_with(storage_rows=1.0, storage_bytes=1.0)


@pytest.mark.parametrize("name", ["storage_rows", "store_weight", "gap", "time_limit_s", "probe_weight"])
def test_negative_limits_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is -1"):
        example_options_with(**{name: -1.0})


def example_options_with(**changes: float) -> PlanOptions:
    return replace(example_options("ilp"), **changes)


def test_rows_of_intermediate_stores_are_weighed_against_probe_tuples() -> None:
    """s⋈t saves r 75 of 175 and u 50 of ... probe tuples, and keeps 150 rows."""
    cheap, dear = decided(FIRST, SECOND, store_weight=0.1), decided(FIRST, SECOND, store_weight=10.0)
    assert any(order.fills for order in cheap.orders)
    assert cheap.solution.objective == pytest.approx(700 + 0.1 * 150)
    assert not any(order.fills for order in dear.orders)
    assert dear.solution.objective == pytest.approx(800)


@given(queries=query_sets(), statistics=random_statistics(), parallelism=st.sampled_from((1, 3)))
@settings(max_examples=100, deadline=None)
def test_decisions_are_complete_cost_what_they_say_and_are_never_worse_than_greedy(
    queries: tuple[Query, ...], statistics: Statistics, parallelism: int
) -> None:
    """Over self-joins, tables, cross joins, selections and windows."""
    chosen = replace(options("ilp", SOURCES, parallelism), time_limit_s=0.5, gap=0.1)
    found = decide(queries, statistics, chosen)
    check(found.orders, queries)
    cost = probe_tuples(found.orders, queries, statistics, chosen)
    assert cost == pytest.approx(found.solution.objective, rel=1e-9, abs=1e-12)
    greedy = choose_orders(queries, statistics, chosen, cheapest_extension)
    assert cost <= probe_tuples(greedy, queries, statistics, chosen) * (1 + 1e-9)
    assert found.solution.bound <= found.solution.objective
    assert found.solution.objective <= quick_cost(queries, statistics, chosen) * (1 + 1e-9)


@given(queries=query_sets(largest=3), statistics=random_statistics(), data=st.data())
@settings(max_examples=25, deadline=None)
def test_equal_input_gives_an_equal_decision_whatever_the_order_of_the_queries(
    queries: tuple[Query, ...], statistics: Statistics, data: st.DataObject
) -> None:
    chosen = replace(options("ilp", SOURCES, 1), time_limit_s=30.0)
    shuffled = tuple(data.draw(st.permutations(queries)))
    assert decide(shuffled, statistics, chosen) == decide(queries, statistics, chosen)


def test_a_large_decision_does_not_depend_on_the_order_of_the_queries() -> None:
    """Large enough for the relaxation to be fractional and for branch and bound."""
    made = draw(RandomJoins(relations=10, queries=12, size=4, seed=3))
    for parallelism in (1, 4):
        chosen = replace(made.options("ilp", parallelism), gap=0.01 if parallelism == 1 else 0.2)
        first = decide(made.queries, made.statistics, chosen)
        assert decide(made.queries[::-1], made.statistics, chosen) == first


def test_without_time_the_decision_is_that_of_local_search() -> None:
    made = draw(RandomJoins(relations=10, queries=12, size=4, seed=3))
    chosen = replace(made.options("ilp", 1), time_limit_s=0.0)
    found = decide(made.queries, made.statistics, chosen)
    check(found.orders, made.queries)
    assert found.solution.solver == "local-search"
    assert found.solution.objective == quick_cost(made.queries, made.statistics, chosen)


def test_the_plan_has_the_solution_and_its_cost() -> None:
    chosen = example_options("ilp")
    made = plan((FIRST, SECOND), example_statistics(chosen), chosen)
    assert made.solution is not None
    assert made.solution.objective == pytest.approx(700)
    assert probe_tuples_estimate(made) == pytest.approx(700)


def test_single_relations_and_no_queries_need_no_decision() -> None:
    alone = query("q", {"r": "r"})
    found = decide((alone,), Statistics(), options("ilp", [stream("r")]))
    assert found.orders == (ProbeOrder(query="q", units=(("r",),)),)
    assert (found.solution.objective, found.solution.gap) == (0.0, 0.0)
    assert decide((), Statistics(), options("ilp", [])).orders == ()
