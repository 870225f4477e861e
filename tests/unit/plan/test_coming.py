"""On the way to a plan with other intermediate stores nobody reads one before it is filled, and all that is filled is
kept up.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.errors import InvalidPlanError
from plait.optimizer.assemble.build import build
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.codec import decode, encode
from plait.plan.coming import Way, coming_id, missing, on_the_way, settled_id
from plait.plan.explain import explain
from plait.plan.model import Plan
from plait.plan.traversals import endings, fillings, kept_stores, probes
from plait.plan.validate import validate
from plait.query.model import Query

OPTIONS = example_options("random", ("r", 1000.0), ("s", 100.0), ("t", 100.0), ("u", 100.0))
QUERY = example_query("p", "r.a = s.a", "s.b = t.b", "t.c = u.c")


def order(*units: str, fills: bool = False, query: str = "p") -> ProbeOrder:
    return ProbeOrder(query=query, units=tuple(tuple(unit) for unit in units), fills=fills)


def plan(*orders: ProbeOrder, queries: tuple[Query, ...] = (QUERY,)) -> Plan:
    made = build(queries, orders, example_statistics(OPTIONS), OPTIONS)
    validate(made, queries)
    return made


FLAT = plan(order("r", "s", "t", "u"), order("s", "t", "u", "r"), order("t", "s", "r", "u"), order("u", "t", "s", "r"))
OF_TU = (order("t", "u", fills=True), order("u", "t", fills=True))
BY_TU = plan(order("r", "s", "tu"), order("s", "tu", "r"), order("t", "s", "r", "u"), order("u", "t", "s", "r"), *OF_TU)
BY_STU = plan(
    order("r", "stu"), order("s", "tu", "r"), order("t", "s", "r", "u"), order("u", "t", "s", "r"), *OF_TU,
    order("s", "tu", fills=True), order("t", "u", "s", fills=True), order("u", "t", "s", fills=True),
)  # fmt: skip
TU = next(store.id for store in BY_TU.stores if store.intermediate)
STU = next(store.id for store in BY_STU.stores if store.intermediate and store.id != TU)


def sound(made: Plan) -> Plan:
    """Return the plan, checked, but for indexes that only the plan it leads to looks up."""
    probed = {(step.member.store, step.index) for _, step in probes(made)}
    stores = tuple(
        replace(store, indexes=tuple(index for index in store.indexes if (store.id, index) in probed))
        for store in made.stores
    )
    validate(replace(made, stores=stores), (QUERY,))
    return made


def orders_of(made: Plan) -> set[tuple[str, ...]]:
    return {output.aliases for _, _, output in endings(made)}


def filled_stores(made: Plan) -> dict[str, int]:
    """Return from how many parts each store is filled."""
    stores = [fill.store for _, _, fill in fillings(made)]
    return {store: stores.count(store) for store in stores}


def test_queries_are_answered_as_before_while_a_store_comes_that_all_its_parts_fill() -> None:
    way = sound(on_the_way(FLAT, BY_TU, ()))
    assert orders_of(way) == orders_of(FLAT)
    assert way.coming == (coming_id(TU),)
    assert filled_stores(way) == {coming_id(TU): 2}
    assert coming_id(TU) in kept_stores(way)
    assert not any(step.member.store in way.coming for _, step in probes(way))


def test_once_it_is_filled_the_plan_that_reads_it_governs() -> None:
    assert on_the_way(FLAT, BY_TU, {TU}) is BY_TU
    assert on_the_way(BY_TU, FLAT, ()) is FLAT
    assert Way(base=FLAT, goal=BY_TU).lacking == {TU}
    assert not Way(base=FLAT, goal=BY_TU, filled=frozenset({TU})).lacking


def test_a_store_that_is_filled_from_another_comes_after_that() -> None:
    first = sound(on_the_way(FLAT, BY_STU, ()))
    assert first.coming == (coming_id(TU),)
    second = sound(on_the_way(FLAT, BY_STU, {TU}))
    assert second.coming == tuple(sorted((coming_id(TU), coming_id(STU))))
    assert filled_stores(second) == {coming_id(TU): 2, coming_id(STU): 3}
    read = {step.member.store for _, step in probes(second) if step.parts}
    assert read == {coming_id(TU)}  # by arrivals of s, on their way into the other
    assert orders_of(second) == orders_of(FLAT)
    assert on_the_way(FLAT, BY_STU, {TU, STU}) is BY_STU


def test_a_store_that_another_plan_has_filled_comes_anew_where_what_it_is_filled_from_is_not_there() -> None:
    way = Way(base=FLAT, goal=BY_STU, filled=frozenset({STU}))
    assert way.lacking == {TU, STU}
    assert sound(way.plan).coming == (coming_id(TU),)
    assert set(sound(replace(way, filled=frozenset({TU})).plan).coming) == {coming_id(TU), coming_id(STU)}
    assert replace(way, filled=frozenset({TU, STU})).plan == BY_STU


def test_a_store_that_is_there_already_is_read_on_and_fills_others() -> None:
    way = sound(on_the_way(BY_TU, BY_STU, ()))
    assert way.coming == (coming_id(STU),)
    assert orders_of(way) == orders_of(BY_TU)
    assert filled_stores(way) == {TU: 2, coming_id(STU): 3}
    assert {store.id for store in way.stores if store.intermediate} == {TU, coming_id(STU)}


def test_one_that_is_to_keep_more_comes_beside_the_one_that_is_read() -> None:
    narrow = replace(
        BY_TU,
        stores=tuple(replace(store, columns=store.columns[:1]) if store.id == TU else store for store in BY_TU.stores),
    )
    assert missing(narrow, BY_TU) == {TU}
    assert missing(BY_TU, narrow) == frozenset()
    way = on_the_way(narrow, BY_TU, ())
    assert [way.store(store).columns for store in (TU, coming_id(TU))] == [("0:v",), ("0:v", "1:v")]
    assert filled_stores(way) == {TU: 2, coming_id(TU): 2}


def test_edges_of_steps_that_only_fill_are_told_apart_from_those_of_queries() -> None:
    way = on_the_way(FLAT, BY_TU, ())
    edges = [step.edge for _, step in probes(way)]
    assert len(set(edges)) == len(edges)
    assert {step.edge for _, step in probes(FLAT)} <= set(edges)


def test_a_plan_on_the_way_survives_the_checkpoint_and_one_without_is_written_as_before() -> None:
    way = on_the_way(FLAT, BY_STU, {TU})
    assert decode(encode(way)) == way
    assert '"coming"' not in encode(BY_STU)
    assert decode(encode(BY_STU)) == BY_STU


def test_a_plan_that_reads_what_still_comes_is_refused() -> None:
    with pytest.raises(InvalidPlanError, match=r"breaks invariant 22 .* answers \['p'\] from"):
        validate(replace(BY_TU, coming=(TU,)), (QUERY,))
    with pytest.raises(InvalidPlanError, match=r"the stores \['r'\] come, expected intermediate ones"):
        validate(replace(FLAT, coming=("r",)), (QUERY,))


def test_explain_says_of_a_store_that_it_is_being_filled() -> None:
    text = explain(on_the_way(FLAT, BY_TU, ()))
    assert f"{coming_id(TU)}: intermediate result that is being filled, window 1 s" in text


def test_the_id_of_a_store_is_the_same_again_once_it_is_there() -> None:
    assert settled_id(coming_id(TU)) == TU
    assert settled_id(TU) == TU
