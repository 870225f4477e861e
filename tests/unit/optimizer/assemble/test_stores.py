from __future__ import annotations

from dataclasses import replace

import pytest

from plait.plan.model import Requirement, Selection, Store, is_routed
from plait.plan.traversals import kept_stores
from plait.query.model import Column, Query
from plait.stats.model import SourceStatistics, Statistics
from tests.unit.optimizer.queries import SECOND_US, equality, expression, planned, query, stream, table

A, B, C = (f"#k bigint `{name}`" for name in "abc")


def only(queries: tuple[Query, ...], source: str, **given: object) -> Store:
    return planned(queries, **given).store(source)  # type: ignore[arg-type]


def test_columns_are_what_projections_read() -> None:
    p = query("p", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`hidden` > 1"]}, select=["r.v", "s.w"])
    q = query("q", {"x": "r"}, select=["x.u", "x.v"])
    assert only((p, q), "r").columns == ("u", "v")
    assert only((p, q), "s").columns == ("w",)


def test_a_key_stands_for_an_expression_and_a_type() -> None:
    p = query("p", {"r": "r", "s": "s"}, [equality("r.a = s.a", "bigint"), equality("r.a = s.b", "string")])
    q = query("q", {"r": "r", "s": "s"}, [equality("r.a = s.a", "bigint")])
    store = only((p, q), "r")
    assert [(key.expression.sql, key.type) for key in store.keys] == [("`a`", "bigint"), ("`a`", "string")]
    assert [key.value_name for key in store.keys] == [None, "#v string `a`"]


def test_requirements_name_the_selection_and_the_keys_of_each_relation() -> None:
    p = query("p", {"r": "r", "s": "s"}, ["r.a = s.a", "r.b = s.b"], where={"r": ["`z` > 1", "`y` > 1"]})
    q = query("q", {"x": "r", "y": "r"}, ["x.a = y.b"])
    selection = Selection(conjuncts=(expression("`y` > 1"), expression("`z` > 1")))
    assert only((p, q), "r").requirements == (
        Requirement(selection=selection, keys=(A, B)),
        Requirement(selection=Selection(), keys=(A,)),
        Requirement(selection=Selection(), keys=(B,)),
    )
    assert only((p, q), "r").selections == (selection, Selection())


def test_an_index_per_probed_key_set_and_the_busiest_first() -> None:
    sources = (stream("busy", rate=1_000), stream("r", rate=1), stream("idle", rate=1))
    p = query("p", {"r": "r", "busy": "busy"}, ["r.b = busy.a"])
    q = query("q", {"r": "r", "idle": "idle"}, ["r.a = idle.a", "r.b = idle.b"])
    s = query("s", {"r": "r", "idle": "idle"}, ["r.a = idle.a"])
    assert only((p, q, s), "r", sources=sources).indexes == ((B,), (A,), (A, B))


def test_one_store_key_matched_twice_is_probed_by_one_index() -> None:
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "r.a = t.c", "s.b = t.c"])
    made = planned((asked,), "fixed")
    assert made.store("t").indexes == ((C,),)


def test_the_partitioning_routes_as_many_probes_as_possible() -> None:
    sources = (stream("s", rate=900), stream("t", rate=600), stream("u", rate=600), stream("r", rate=1))
    queries = (
        query("p", {"r": "r", "s": "s"}, ["r.a = s.a"]),
        query("q", {"r": "r", "t": "t"}, ["r.b = t.b", "r.c = t.c"]),
        query("w", {"r": "r", "u": "u"}, ["r.b = u.b"]),
    )
    store = only(queries, "r", sources=sources, parallelism=4)
    assert store.indexes[0] == (A,), "the busiest index is not the best partitioning"
    assert store.partition_by == (B,), "b alone routes the probes of t and of u"


def test_a_composite_partitioning_is_taken_only_to_fill_the_partitions() -> None:
    asked = query("q", {"r": "r", "s": "s"}, ["r.a = s.a", "r.b = s.b"])
    many = (stream("r", distinct={"a": 100, "b": 100}), stream("s"))
    few = (stream("r", distinct={"a": 2, "b": 3}), stream("s"))
    one = (stream("r", distinct={"a": 2, "b": 100}), stream("s"))
    assert only((asked,), "r", sources=many, parallelism=4).partition_by == (A,)
    assert only((asked,), "r", sources=one, parallelism=4).partition_by == (B,)
    assert only((asked,), "r", sources=few, parallelism=4).partition_by == (A, B)


def test_a_routed_probe_goes_to_one_partition_and_another_to_all() -> None:
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"])
    sources = (stream("r", rate=10), stream("s", rate=1), stream("t", rate=1))
    made = planned((asked,), sources=sources, parallelism=4)
    store = made.store("s")
    assert store.partition_by == (A,)
    for tree in made.trees:
        for path, step in tree.walk():
            if not path and step.member.store == "s":
                assert is_routed(store, step) == (tree.start.store == "r")
                assert step.estimate.probe_tuples == (100 if tree.start.store == "r" else 40)


def test_a_store_probed_without_keys_is_placed_at_random_and_broadcast_to() -> None:
    made = planned(
        (query("q", {"r": "r", "s": "s"}),), sources=(stream("r", rate=1), stream("s", rate=1)), parallelism=3
    )
    assert [(store.indexes, store.partition_by) for store in made.stores] == [((), ()), ((), ())]
    assert made.trees[0].children[0].estimate.probe_tuples == 30


def test_a_store_keeps_as_long_as_the_longest_window() -> None:
    p = query("p", {"r": "r"}, windows={"r": 10})
    q = query("q", {"r": "r"}, windows={"r": 60})
    unbounded = query("u", {"r": "r"}, windows={"r": None})
    assert only((p, q), "r").window_us == 60 * SECOND_US
    assert only((p, q, unbounded), "r").window_us is None
    assert planned((query("t", {"r": "r", "n": "n"}, tables={"n"}),)).store("n").window_us is None


def test_a_stream_that_keeps_all_keeps_every_column_and_row_as_long_as_its_own_window() -> None:
    sources = (stream("r", keep="all", columns=("ts", "a", "v"), window=100), stream("s"))
    asked = query("q", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`v` > 1"]}, select=["r.v"])
    store = only((asked,), "r", sources=sources)
    assert store.columns == ("a", "ts", "v")
    assert Requirement(selection=Selection(), keys=()) in store.requirements
    assert store.window_us == 100 * SECOND_US


def test_a_stream_that_keeps_all_keeps_intervals_of_months_as_values_since_no_task_can_hold_them() -> None:
    schema = (Column(name="a", type="bigint"), Column(name="m", type="interval year to month"))
    everything = replace(stream("r", keep="all"), schema=schema)
    store = planned((), sources=(everything,)).store("r")
    assert store.columns == ("a",)
    assert [(value.expression.columns, value.type) for value in store.values] == [(("m",), "interval year to month")]


def test_a_stream_that_keeps_all_has_a_store_before_anybody_asks() -> None:
    made = planned((), sources=(stream("r", keep="all", columns=("a",)), stream("s"), table("n")))
    assert [(store.id, store.columns) for store in made.stores] == [("r", ("a",))]
    assert made.stored_rows_estimate == 10_000


def test_stored_rows_count_every_store_once_and_selections_by_their_share() -> None:
    sources = (stream("r", rate=100), stream("s", rate=10, rows=77))
    p = query("p", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`v` > 1"]})
    unbounded = query("p", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`v` > 1"]}, windows={"s": None})
    assert planned((p,), sources=sources).stored_rows_estimate == 250 + 100
    assert planned((unbounded,), sources=sources).stored_rows_estimate == 250 + 77


def test_traffic_is_compared_per_second_whatever_the_windows() -> None:
    # In its window of 100 s s brings 1,000 rows, t 500 in its 10 s: but t probes five times as often.
    sources = (stream("r", rate=1), stream("s", rate=10), stream("t", rate=50))
    queries = (
        query("p", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"s": 100}),
        query("q", {"r": "r", "t": "t"}, ["r.b = t.b"]),
    )
    store = only(queries, "r", sources=sources, parallelism=2)
    assert store.partition_by == (B,)
    assert store.indexes == ((B,), (A,))


def test_selections_that_add_up_to_more_than_all_rows_store_all_rows() -> None:
    shares = (("(`v` < 8)", 0.8), ("(`v` > 3)", 0.7))
    statistics = Statistics(sources=(SourceStatistics(source="r", rate_rows_per_s=10.0, selectivity=shares),))
    below, above = (
        query(name, {"x": "r", "n": "n"}, ["x.a = n.a"], where={"x": [sql]}, windows={"x": 10}, tables={"n"})
        for name, sql in (("p", "`v` < 8"), ("q", "`v` > 3"))
    )
    joined = query("j", {"t": "t", "r": "r"}, ["t.a = r.a"], where={"r": ["`v` < 8"]}, windows={"t": 1})
    stored = 10_000 + 1_000  # the table, or the window of t
    assert planned((joined,), statistics=statistics).stored_rows_estimate == 80 + 1_000
    assert planned((joined, below, above), statistics=statistics).stored_rows_estimate == 100 + stored


def test_a_store_nobody_probes_is_only_passed_through_unless_it_keeps_all() -> None:
    asked = query("q", {"r": "r"})
    needed, everything = (planned((asked,), sources=(stream("r", keep=keep),)) for keep in ("needed", "all"))
    assert kept_stores(needed) == frozenset()
    assert needed.stored_rows_estimate == 0
    assert needed.stores[0].requirements == everything.stores[0].requirements, "so requirements cannot tell"
    assert kept_stores(everything) == {"r"}
    assert everything.stored_rows_estimate == 10_000


def test_a_stream_placed_at_random_is_partitioned_by_nothing_and_every_probe_goes_everywhere() -> None:
    asked = query("q", {"r": "r", "s": "s"}, ["r.a = s.a"])
    made = planned((asked,), sources=(stream("r", placement="random"), stream("s")), parallelism=4)
    assert {store.id: store.partition_by for store in made.stores} == {"r": (), "s": ("#k bigint `a`",)}
    assert {store.id: store.parallelism for store in made.stores} == {"r": 4, "s": 4}
    sent = {step.member.store: step.estimate.probe_tuples for tree in made.trees for _, step in tree.walk()}
    assert sent["r"] == 4 * (sent["s"] or 0.0)


RATES = (("r", 10.0), ("s", 10.0), ("t", 100.0), ("u", 100.0))


@pytest.mark.parametrize("strategy", ["left-deep", "bushy", "ilp"])
def test_an_intermediate_store_is_not_partitioned_by_keys_of_what_is_placed_at_random(strategy: str) -> None:
    asked = query(
        "q",
        {"r": "r", "s": "s", "t": "t", "u": "u"},
        ["r.a = s.a", "r.b = t.b", "s.c = u.c"],
        windows=dict.fromkeys("rstu", 1),
    )
    streams = [stream(name, rate=rate, placement="random" if name == "r" else "keys") for name, rate in RATES]
    made = planned((asked,), strategy, sources=streams, parallelism=4)
    kept = [store for store in made.stores if store.intermediate is not None]
    assert kept
    for store in kept:
        assert store.intermediate is not None
        parts = [store.intermediate.parts[store.key(name).part or 0].store for name in store.partition_by]
        assert "r" not in parts
    if strategy == "ilp":
        sent = sum(step.estimate.probe_tuples or 0.0 for tree in made.trees for _, step in tree.walk())
        assert made.solution is not None
        assert made.solution.objective == pytest.approx(sent)
