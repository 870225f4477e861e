"""Queries come and go at random, under every strategy: what is planned beside the plan before must do what a plan from
scratch does, and keep nothing of what is gone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer import STRATEGIES, plan
from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.covering import cover
from plait.optimizer.assemble.orders_of_plan import choices_of
from plait.optimizer.incremental import former as changes
from plait.optimizer.incremental.former import Former
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.plan_cost import plan_cost
from plait.optimizer.probe_orders import ProbeOrder, cheapest_extension, choose_orders
from plait.plan.explain.costs import expected_cost
from plait.plan.model import Plan, Step, Store
from plait.plan.validate import validate
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import edges, options, orders, planned, query, stream
from tests.unit.optimizer.random_orders import random_plan
from tests.unit.optimizer.random_queries import SOURCES, one_query, query_sets, random_statistics
from tests.unit.optimizer.test_plans_compute_their_queries import draw_rows, emitted, results


@pytest.fixture(autouse=True)
def never_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_CHANGED", 1e9)


def life(before: tuple[Query, ...], spare: tuple[Query, ...], rng: random.Random) -> Iterator[tuple[Query, ...]]:
    """Yield the queries after each of some random changes: added, dropped and replaced, one or several at once."""
    running, waiting = list(before), list(spare)
    for number in range(4):
        for _ in range(rng.choice((1, 1, 2))):
            kind = rng.random()
            if waiting and (kind < 0.5 or len(running) < 2):
                running.append(replace(waiting.pop(), name=f"n{number}{len(waiting)}"))
            elif len(running) > 1 and kind < 0.8:
                waiting.append(running.pop(rng.randrange(len(running))))
            elif waiting:
                place = rng.randrange(len(running))
                running[place] = replace(waiting.pop(), name=running[place].name)
        rng.shuffle(running)
        yield tuple(running)


def following(former: Former, queries: tuple[Query, ...], statistics: Statistics, asked: PlanOptions) -> Former:
    return former.after(plan(queries, statistics, asked, former), queries)


def bare(store: Store) -> Store:
    """Return what a store keeps, without how it is reached."""
    return replace(store, indexes=tuple(sorted(store.indexes)), partition_by=(), parallelism=1)


def shape(steps: tuple[Step, ...]) -> list[object]:
    """Return the steps of a tree without names and estimates."""
    return [
        (step.member, step.predicates, step.parts, step.outputs, step.fills, shape(step.children)) for step in steps
    ]


def rebuilt(made: Plan, queries: tuple[Query, ...], asked: PlanOptions) -> Plan:
    """Return the plan that is built at once of the same decisions."""
    choices = choices_of(made, queries)
    return build(queries, choices.orders, Statistics(), asked, choices.store_name, choices.joined)


def check(made: Plan, queries: tuple[Query, ...], asked: PlanOptions) -> None:
    validate(made, queries)
    whole = rebuilt(made, queries, asked)
    assert [bare(store) for store in made.stores] == [bare(store) for store in whole.stores]
    assert [(tree.start, tree.outputs, shape(tree.children)) for tree in made.trees] == [
        (tree.start, tree.outputs, shape(tree.children)) for tree in whole.trees
    ]


def spares() -> st.SearchStrategy[tuple[Query, ...]]:
    return st.tuples(*(one_query(f"n{number}") for number in range(3)))


@given(
    queries=query_sets(largest=4),
    spare=spares(),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    statistics=st.just(Statistics()) | random_statistics(),
    parallelism=st.sampled_from((1, 3)),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_a_plan_beside_the_one_before_is_what_its_decisions_make_at_once(
    queries: tuple[Query, ...],
    spare: tuple[Query, ...],
    strategy: str,
    statistics: Statistics,
    parallelism: int,
    seed: int,
) -> None:
    asked = options(strategy, SOURCES, parallelism)
    former = Former(plan=plan(queries, statistics, asked), queries=queries)
    for now in life(queries, spare, random.Random(seed)):
        former = following(former, now, statistics, asked)
        check(former.plan, now, asked)


@given(queries=query_sets(largest=4), spare=spares(), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_queries_come_to_and_go_from_a_plan_with_any_stores_and_widths(
    queries: tuple[Query, ...], spare: tuple[Query, ...], seed: int
) -> None:
    rng = random.Random(seed)
    asked = options(rng.choice(("ilp", "dppick", "bushy", "adhoc")), SOURCES)
    made = replace(random_plan(queries, Statistics(), asked, rng), strategy=asked.strategy)
    former = Former(plan=made, queries=queries)
    for now in life(queries, spare, rng):
        former = following(former, now, Statistics(), asked)
        check(former.plan, now, asked)


@given(
    queries=query_sets(largest=3),
    spare=spares(),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_each_result_is_emitted_exactly_once_by_a_plan_beside_the_one_before(
    queries: tuple[Query, ...], spare: tuple[Query, ...], strategy: str, seed: int
) -> None:
    rng = random.Random(seed)
    rows, asked = draw_rows(rng), options(strategy, SOURCES)
    former = Former(plan=plan(queries, Statistics(), asked), queries=queries)
    for now in life(queries, spare, rng):
        former = following(former, now, Statistics(), asked)
        expected = Counter(result for each in now for result in results(each, rows))
        assert Counter(emitted(former.plan, rows)) == expected


RST = query("p", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], select=["r.v", "t.v"])
RSU = query("q", {"r": "r", "s": "s", "u": "u"}, ["r.a = s.a", "s.c = u.c"], select=["u.w"])
TU = query("z", {"t": "t", "u": "u"}, ["t.d = u.d"], where={"t": ["`x` > 1"]}, select=["t.k"])
SMALL = tuple(stream(name, rate=10, distinct=dict.fromkeys("abcd", 100.0)) for name in "rstu")


def beside(before: tuple[Query, ...], now: tuple[Query, ...], strategy: str = "greedy") -> tuple[Plan, Plan]:
    asked, known = options(strategy, SMALL), declared_statistics(SMALL)
    first = plan(before, known, asked)
    return first, plan(now, known, asked, Former(plan=first, queries=before))


@pytest.mark.parametrize("strategy", ["greedy", "dppick", "ilp", "adhoc"])
def test_an_added_query_shares_the_steps_it_has_in_common_with_others(strategy: str) -> None:
    _, made = beside((RST,), (RST, RSU), strategy)
    assert [edge for edge in edges(made) if edge in ("r→s", "s→r")] == ["r→s", "s→r"]
    assert orders(made)["q/r"] == "r s u"


def test_nothing_of_a_dropped_query_is_left() -> None:
    first, made = beside((RST, RSU, TU), (RST,))
    assert made == replace(
        planned((RST,), sources=SMALL), stored=made.stored, stored_rows_estimate=made.stored_rows_estimate
    )
    assert {store.id for store in first.stores} - {store.id for store in made.stores} == {"u"}


@pytest.mark.parametrize("strategy", ["independent", "dppick"])
def test_a_stream_that_is_stored_whole_has_the_stores_it_would_have_had_without_the_dropped_query(
    strategy: str,
) -> None:
    asked = options(strategy, tuple(replace(each, keep="all") for each in SMALL))
    sets = ((RST, RSU), (RST,), (RSU,), (RST, TU))
    for before, now in permutations(sets, 2):
        former = Former(plan=plan(before, Statistics(), asked), queries=before)
        made = plan(now, Statistics(), asked, former)
        assert [bare(store) for store in made.stores] == [
            bare(store) for store in plan(now, Statistics(), asked).stores
        ]


def test_what_a_change_does_not_touch_is_the_very_same() -> None:
    first, made = beside((RST, TU), (TU, RSU))
    kept = {tree.start: tree for tree in first.trees}
    (mine,) = (tree for tree in made.trees if tree.start.selection.sql == "(`x` > 1)")
    assert mine is kept[mine.start]


def test_a_plan_for_the_same_queries_is_the_same() -> None:
    first, made = beside((RST, TU), (TU, RST))
    assert made is first


def test_edges_keep_their_names_when_others_over_the_same_stores_come() -> None:
    narrow = query("n", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`y` > 2"]})
    first, made = beside((RST,), (RST, narrow))
    assert set(edges(first)) < set(edges(made))
    assert [edge.split("~")[0] for edge in edges(made) if edge not in edges(first)] == ["r→s", "s→r"]


def test_the_others_are_narrower_once_the_widest_of_a_group_is_gone() -> None:
    wide = query("all", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"s": 60})
    some = query("some", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 5"]})
    less = query("less", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 7"]})
    asked, queries = options("ilp", SMALL), (wide, some, less)
    joined = cover(queries, lambda _, relation: relation.source)
    orders = choose_orders(joined, Statistics(), asked, cheapest_extension)
    first = build(queries, orders, Statistics(), asked, covering=joined)
    left = plan((some, less), Statistics(), asked, Former(plan=first, queries=queries))
    assert {(tree.start.selection.sql, tree.start.window_us) for tree in first.trees} == {
        ("true", 10_000_000),
        ("true", 60_000_000),
    }
    assert {(tree.start.selection.sql, tree.start.window_us) for tree in left.trees} == {
        ("true", 10_000_000),
        ("((`v` > 5)) OR ((`v` > 7))", 10_000_000),
    }
    check(left, (some, less), asked)


def test_an_added_query_is_joined_as_wide_as_others_where_that_costs_nothing_more() -> None:
    wide = query("all", {"r": "r", "s": "s"}, ["r.a = s.a"])
    some = query("some", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 5"]})
    _, made = beside((wide,), (wide, some), "adhoc")
    assert edges(made) == ["r→s", "s→r"]
    _, apart = beside((wide,), (wide, some), "greedy")
    assert len(edges(apart)) == 4


def test_an_added_query_probes_an_intermediate_store_that_is_there_and_it_is_filled_as_before() -> None:
    rst = query("p", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], select=["r.v", "t.v"])
    ust = query("q", {"u": "u", "s": "s", "t": "t"}, ["u.c = s.c", "s.b = t.b"], select=["s.w"])
    fills = tuple(ProbeOrder(query="p", units=((start,), (other,)), fills=True) for start, other in ("st", "ts"))
    units = (("r", "st"), ("s", "t", "r"), ("t", "s", "r"))
    answers = tuple(ProbeOrder(query="p", units=tuple(map(tuple, each))) for each in units)
    sources = tuple(stream(name, rate=10, distinct=dict.fromkeys("abc", 1000.0)) for name in "rstu")
    asked, known = options("ilp", sources), declared_statistics(sources)
    first = build((rst,), (*answers, *fills), known, asked)
    made = plan((rst, ust), known, asked, Former(plan=first, queries=(rst,)))
    (stored,) = (store for store in made.stores if store.intermediate is not None)
    assert [edge for edge in edges(made) if edge.startswith("u")] == [f"u→{stored.id}"]
    assert {column.split(":")[1] for column in stored.columns} == {"v", "w"}
    check(made, (rst, ust), asked)
    left = plan((ust,), known, asked, Former(plan=made, queries=(rst, ust)))
    check(left, (ust,), asked)
    assert {column.split(":")[1] for store in left.stores for column in store.columns if store.intermediate} == {"w"}


def test_all_are_planned_anew_once_half_of_the_queries_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_CHANGED", 0.5)
    running = tuple(replace(RST, name=f"q{number}") for number in range(6))
    former = Former(plan=planned(running, sources=SMALL), queries=running)
    changed = []
    for number in range(5):
        running = (*running[1:], replace(RSU, name=f"n{number}"))
        former = following(former, running, Statistics(), options("greedy", SMALL))
        changed.append(former.changed)
    assert changed == [2, 0, 2, 0, 2]


def test_another_strategy_plans_all_anew() -> None:
    first = planned((RST,), sources=SMALL)
    asked = options("dppick", SMALL)
    made = plan((RST, RSU), Statistics(), asked, Former(plan=first, queries=(RST,)))
    assert made == plan((RST, RSU), Statistics(), asked)


def test_a_query_costs_as_much_beside_others_as_from_scratch_where_each_is_planned_by_itself() -> None:
    _, made = beside((RST,), (RST, RSU))
    whole = planned((RST, RSU), sources=SMALL)
    assert expected_cost(made).probe_tuples_per_s == expected_cost(whole).probe_tuples_per_s


def random_chain(name: str, rng: random.Random) -> Query:
    """Return a query over neighbours among r, s, t and u, some with a selection."""
    size = rng.choice((2, 3, 3, 4))
    first = rng.randrange(5 - size)
    chain = "rstu"[first : first + size]
    keys = dict(zip(("rs", "st", "tu"), "abc", strict=True))
    return query(
        name,
        {each: each for each in chain},
        [f"{left}.{keys[left + right]} = {right}.{keys[left + right]}" for left, right in pairwise(chain)],
        where={rng.choice(chain): [f"`v` > {rng.randrange(3)}"]} if rng.random() < 0.5 else {},
    )


@pytest.mark.parametrize("strategy", ["greedy", "dppick", "adhoc"])
def test_plans_beside_others_cost_little_more_than_plans_from_scratch(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_CHANGED", 0.5)
    asked, known = options(strategy, SMALL, 2), declared_statistics(SMALL)
    ratios = []
    for seed in range(12):
        rng = random.Random(f"costs {seed}")
        running = tuple(random_chain(f"q{number}", rng) for number in range(10))
        former = Former(plan=plan(running, known, asked), queries=running)
        for number in range(12):
            gone = rng.randrange(len(running)) if rng.random() < 0.5 else None
            running = tuple(each for place, each in enumerate(running) if place != gone)
            running = (*running, random_chain(f"n{number}", rng))
            former = following(former, running, known, asked)
        whole = plan(running, known, asked)
        if strategy == "dppick":
            ratios.append(plan_cost(former.plan, known, asked.costs) / plan_cost(whole, known, asked.costs))
        else:
            mine, anew = (expected_cost(each).probe_tuples_per_s or 0.0 for each in (former.plan, whole))
            ratios.append(mine / anew)
    assert median(ratios) <= 1.03
    assert max(ratios) <= 1.2, ratios
