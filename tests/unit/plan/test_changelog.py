from __future__ import annotations

from dataclasses import replace

import pytest

from plait.plan.changelog import (
    IndexesChanged,
    KeepingChanged,
    LayoutChanged,
    PartitioningChanged,
    QueryAdded,
    QueryRemoved,
    RanksChanged,
    RequirementsChanged,
    StoreAdded,
    StoreRemoved,
    TreeAdded,
    TreeChanged,
    TreeRemoved,
    WindowChanged,
    changelog,
    changes_ingest,
)
from plait.plan.model import Requirement, Selection
from plait.query.model import Query, Source
from tests.unit.optimizer.queries import SECOND_US, planned, query, stream, table

A, B = "#k bigint `a`", "#k bigint `b`"
RS = query("rs", {"r": "r", "s": "s"}, ["r.a = s.a"], select=["r.v"])
ST = query("st", {"s": "s", "t": "t"}, ["s.b = t.b"], select=["t.v"])
SOURCES: tuple[Source, ...] = (stream("r"), stream("s"), stream("t"), table("n"))


def kinds(old: tuple[Query, ...], new: tuple[Query, ...]) -> list[type]:
    return [type(change) for change in changelog(planned(old, sources=SOURCES), planned(new, sources=SOURCES))]


def test_a_plan_does_not_differ_from_itself_nor_from_one_with_other_estimates() -> None:
    old = planned((RS, ST), sources=SOURCES)
    new = planned((ST, RS), "shared", sources=(stream("r", rate=1_001), *SOURCES[1:]))
    assert old != new
    assert changelog(old, new) == ()
    assert not changes_ingest(old, new)


def test_an_added_query_adds_what_only_it_needs() -> None:
    old, new = planned((RS,), sources=SOURCES), planned((RS, ST), sources=SOURCES)
    log = changelog(old, new)
    assert [type(change) for change in log] == [
        QueryAdded,
        LayoutChanged,
        RequirementsChanged,
        IndexesChanged,
        StoreAdded,
        TreeChanged,
        TreeAdded,
    ]
    assert log[0] == QueryAdded(query="st")
    assert log[1] == LayoutChanged(store="s", columns_added=(), columns_removed=(), keys_added=(B,), keys_removed=())
    assert log[3] == IndexesChanged(store="s", added=((B,),), removed=(), first_before=(A,), first_after=(A,))
    assert log[4] == StoreAdded(store="t", source="t")
    assert isinstance(log[5], TreeChanged)
    assert (log[5].edges_added, log[5].edges_removed) == (("s→t",), ())
    assert changes_ingest(old, new)


def test_a_dropped_query_takes_along_what_nobody_else_needs() -> None:
    assert kinds((RS, ST), (RS,)) == [
        QueryRemoved,
        LayoutChanged,
        RequirementsChanged,
        IndexesChanged,
        StoreRemoved,
        TreeRemoved,
        TreeChanged,
    ]


def test_a_query_that_needs_nothing_new_does_not_touch_ingest() -> None:
    old, new = planned((RS,), sources=SOURCES), planned((RS, replace(RS, name="twin")), sources=SOURCES)
    log = changelog(old, new)
    assert [type(change) for change in log] == [QueryAdded, TreeChanged, TreeChanged]
    assert isinstance(log[1], TreeChanged)
    assert (log[1].edges_added, log[1].edges_removed) == ((), ())
    assert not changes_ingest(old, new)


def test_a_changed_probe_order_does_not_touch_ingest() -> None:
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.a = t.a"])
    slow, fast = (
        (stream("r", rate=rate, distinct={"a": 100}), *(stream(name, distinct={"a": 100}) for name in "st"))
        for rate in (1, 1e6)
    )
    old, new = planned((asked,), sources=slow), planned((asked,), sources=fast)
    (change,) = changelog(old, new)
    assert isinstance(change, TreeChanged)
    assert change.start.store == "s"
    assert (change.edges_added, change.edges_removed) == (("s→t", "s→t→r"), ("s→r", "s→r→t"))
    assert not changes_ingest(old, new)


@pytest.mark.parametrize(
    ("changes", "expected", "ingest"),
    [
        (
            {"partition_by": (B,)},
            PartitioningChanged(
                store="s", keys_before=(A,), keys_after=(B,), parallelism_before=1, parallelism_after=1
            ),
            True,
        ),
        (
            {"parallelism": 4},
            PartitioningChanged(
                store="s", keys_before=(A,), keys_after=(A,), parallelism_before=1, parallelism_after=4
            ),
            True,
        ),
        (
            {"requirements": (Requirement(selection=Selection(), keys=(B,)),)},
            RequirementsChanged(store="s", added=(), removed=(Requirement(selection=Selection(), keys=(A,)),)),
            True,
        ),
        (
            {"columns": ("v",)},
            LayoutChanged(store="s", columns_added=("v",), columns_removed=(), keys_added=(), keys_removed=()),
            True,
        ),
        ({"keeps_all": True}, KeepingChanged(store="s", keeps_all=True), False),
        ({"window_us": None}, WindowChanged(store="s", before_us=10 * SECOND_US, after_us=None), False),
        (
            {"indexes": ((B,), (A,))},
            IndexesChanged(store="s", added=(), removed=(), first_before=(A,), first_after=(B,)),
            False,
        ),
    ],
)
def test_a_store_that_is_reached_or_kept_differently(
    changes: dict[str, object], expected: object, ingest: bool
) -> None:
    old = planned((RS, ST), sources=SOURCES)
    stores = tuple(replace(store, **changes) if store.id == "s" else store for store in old.stores)  # type: ignore[arg-type]
    new = replace(old, stores=stores)
    assert changelog(old, new) == (expected,)
    assert changes_ingest(old, new) is ingest


def test_a_store_over_another_source_is_another_store() -> None:
    old = planned((RS,), sources=SOURCES)
    stores = tuple(replace(store, source="elsewhere") if store.id == "s" else store for store in old.stores)
    new = replace(old, stores=stores)
    assert changelog(old, new) == (StoreRemoved(store="s", source="s"), StoreAdded(store="s", source="elsewhere"))


def test_another_catalog_order_changes_the_ranks_alone() -> None:
    old, new = planned((RS,), sources=SOURCES), planned((RS,), sources=(SOURCES[1], SOURCES[0], *SOURCES[2:]))
    assert changelog(old, new) == (RanksChanged(before=("r", "s", "t"), after=("s", "r", "t")),)
    assert not changes_ingest(old, new)


def test_a_table_that_is_read_for_the_first_time_touches_ingest() -> None:
    old = planned((RS,), sources=SOURCES)
    new = planned((RS, query("q", {"s": "s", "n": "n"}, ["s.a = n.a"], tables={"n"})), sources=SOURCES)
    assert StoreAdded(store="n", source="n") in changelog(old, new)
    assert changes_ingest(old, new)
