"""What changes between two plans, and that applying it leads from one to the other."""

from __future__ import annotations

import pytest

from plait.plan.changelog import (
    QueriesChanged,
    StoreAdded,
    StoreChanged,
    StoreRemoved,
    TreeRemoved,
    TreeSet,
    applied,
    changelog,
    needs_filling,
    text_of,
)
from plait.plan.model import Plan
from plait.query.model import Query, Source
from tests.unit.optimizer.queries import planned, query, stream, table

RS = query("rs", {"r": "r", "s": "s"}, ["r.a = s.a"], select=["r.v"])
ST = query("st", {"s": "s", "t": "t"}, ["s.b = t.b"], select=["t.v"])
RST = query("rst", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], select=["r.v"])
SOURCES: tuple[Source, ...] = (stream("r"), stream("s"), stream("t"), table("n"))


def plan(*queries: Query, strategy: str = "shared", sources: tuple[Source, ...] = SOURCES) -> Plan:
    return planned(queries, strategy, sources=sources)


def kinds(old: Plan, new: Plan) -> list[type]:
    return [type(change) for change in changelog(old, new)]


def test_a_plan_does_not_differ_from_itself_nor_from_one_with_other_estimates() -> None:
    old, new = plan(RS, ST), plan(ST, RS, sources=(stream("r", rate=1_001), *SOURCES[1:]))
    assert old != new
    assert changelog(old, new) == ()


def test_an_added_query_adds_what_only_it_needs() -> None:
    assert kinds(plan(RS), plan(RS, ST)) == [QueriesChanged, StoreChanged, StoreAdded, TreeSet, TreeSet]


def test_a_dropped_query_takes_along_what_nobody_else_needs() -> None:
    assert kinds(plan(RS, ST), plan(RS)) == [QueriesChanged, StoreChanged, StoreRemoved, TreeRemoved, TreeSet]


def test_another_order_of_the_streams_changes_who_is_last_alone() -> None:
    old, new = plan(RS), plan(RS, sources=SOURCES[::-1])
    assert changelog(old, new) == (QueriesChanged(queries=("rs",), ranks=("t", "s", "r")),)


PLANS = {
    "a query more": (plan(RS), plan(RS, ST)),
    "a query less": (plan(RS, ST), plan(ST)),
    "other queries altogether": (plan(RS), plan(ST)),
    "another probe order": (
        plan(RST, strategy="greedy", sources=(stream("r", rate=1), *SOURCES[1:])),
        plan(RST, strategy="greedy", sources=(*SOURCES[:2], stream("t", rate=1), SOURCES[3])),
    ),
    "another order of the streams": (plan(RST), plan(RST, sources=SOURCES[::-1])),
    "another window": (
        plan(RS),
        plan(query("rs", {"r": "r", "s": "s"}, ["r.a = s.a"], select=["r.v"], windows={"r": 3})),
    ),
    "an intermediate store comes": (plan(RST, strategy="left-deep"), plan(RST, strategy="flat")),
}


@pytest.mark.parametrize("case", PLANS)
@pytest.mark.parametrize("is_back", [False, True], ids=["", "and back"])
def test_applying_the_difference_leads_to_a_plan_that_does_the_same(case: str, is_back: bool) -> None:
    old, new = PLANS[case][::-1] if is_back else PLANS[case]
    assert changelog(old, new)
    reached = applied(changelog(old, new), old)
    assert changelog(reached, new) == ()
    assert [store.id for store in reached.stores] == [store.id for store in new.stores]
    assert [tree.start for tree in reached.trees] == [tree.start for tree in new.trees]
    assert reached.queries == new.queries


def test_only_an_intermediate_store_that_comes_or_changes_has_to_be_filled() -> None:
    deep, flat = plan(RST, strategy="left-deep"), plan(RST, strategy="flat")
    assert any(store.intermediate is not None for store in deep.stores)
    assert needs_filling(changelog(flat, deep))
    assert not needs_filling(changelog(deep, flat))
    assert not needs_filling(changelog(plan(RS), plan(RS, ST)))


def test_a_change_says_what_it_does_in_a_few_words() -> None:
    texts = [text_of(change) for change in changelog(plan(RS), plan(RS, ST))]
    assert texts[0] == "answer rs, st"
    assert "keep t" in texts
