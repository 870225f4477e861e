"""Estimates per second and per store, checked against arithmetic done by hand and against counting."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.model import Plan
from plait.stats.model import SourceStatistics, Statistics
from tests.unit.optimizer.queries import planned, query, stream, table


def per_s(made: Plan) -> dict[str, tuple[float | None, float | None]]:
    return {
        step.edge: (step.estimate.probe_tuples_per_s, step.estimate.results_per_s)
        for tree in made.trees
        for _, step in tree.walk()
    }


CHAIN = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], windows={"r": 3, "s": 20, "t": 7})
SOURCES = (
    stream("r", rate=4, distinct={"a": 8}),
    stream("s", rate=2, distinct={"a": 8, "b": 5}),
    stream("t", rate=3, distinct={"b": 5}),
)


def test_windows_that_slide_are_full_for_every_arrival() -> None:
    found = per_s(planned((CHAIN,), "fixed", sources=SOURCES))
    assert found["r→s"] == pytest.approx((4, 4 * 2 * 20 / 8))
    assert found["r→s→t"] == pytest.approx((20, 20 * 3 * 7 / 5))
    assert found["t→s"] == pytest.approx((3, 3 * 2 * 20 / 5))
    assert found["t→s→r"] == pytest.approx((24, 24 * 4 * 3 / 8))


def test_an_arrival_finds_on_average_part_of_what_is_kept_for_ever() -> None:
    windows = {"r": None, "s": None, "t": 7}
    asked = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], windows=windows)
    sources = (
        stream("r", rate=4, rows=400, distinct={"a": 8}),
        stream("s", rate=2, rows=200, distinct={"a": 8, "b": 5}),
        stream("t", rate=3, distinct={"b": 5}),
    )
    found = per_s(planned((asked,), "fixed", sources=sources))
    assert found["r→s"] == pytest.approx((4, 4 * 200 / 8 / 2)), "half of s has arrived, on average"
    assert found["r→s→t"] == pytest.approx((50, 50 * 3 * 7 / 5)), "t's window is full"
    assert found["t→s→r"] == pytest.approx((3 * 200 / 5 / 2, 3 * 200 / 5 * 400 / 8 / 3)), "two histories beside t"


def test_tables_are_there_from_the_start_and_windows_per_store_do_not_count() -> None:
    asked = query("q", {"r": "r", "n": "n"}, ["r.a = n.a"], tables={"n"}, windows={"r": 3})
    sources = (stream("r", rate=4, distinct={"a": 8}), table("n", rows=16, distinct={"a": 8}))
    assert per_s(planned((asked,), "fixed", sources=sources)) == {"r→n": pytest.approx((4, 8))}


def test_the_estimate_is_what_counting_in_a_simulated_steady_state_gives() -> None:
    rng = random.Random(7)
    rates, windows, seconds = {"r": 4, "s": 2, "t": 3}, {"r": 3.0, "s": 20.0, "t": 7.0}, 2_000
    arrivals = sorted(
        (rng.uniform(0, seconds), name, {"a": rng.randrange(8), "b": rng.randrange(5)})
        for name, rate in rates.items()
        for _ in range(rate * seconds)
    )
    found = per_s(planned((CHAIN,), "fixed", sources=SOURCES))
    pairs, triples = count_of_arrivals_on_r(arrivals, windows)
    assert pairs / seconds == pytest.approx(found["r→s→t"][0], rel=0.05)
    assert triples / seconds == pytest.approx(found["r→s→t"][1], rel=0.05)


def count_of_arrivals_on_r(
    arrivals: list[tuple[float, str, dict[str, int]]], windows: Mapping[str, float]
) -> tuple[int, int]:
    kept: dict[str, list[tuple[float, dict[str, int]]]] = {"r": [], "s": [], "t": []}
    pairs = triples = 0
    for now, name, row in arrivals:
        for other, rows in kept.items():
            kept[other] = [(tau, values) for tau, values in rows if now - tau <= windows[other]]
        if name == "r":
            near = [values["b"] for _, values in kept["s"] if values["a"] == row["a"]]
            pairs += len(near)
            triples += sum(values["b"] == b for b in near for _, values in kept["t"])
        kept[name].append((now, row))
    return pairs, triples


def test_every_store_that_keeps_something_has_an_estimate_and_they_add_up() -> None:
    asked = query(
        "q",
        {"r": "r", "n": "n"},
        ["r.a = n.a"],
        tables={"n"},
        windows={"r": 3},
        where={"r": ["`v` > 1"]},
        select=["r.v"],
    )
    sources = (stream("r", rate=8, distinct={"a": 8}), table("n", rows=16))
    made = planned((asked,), sources=sources)
    assert [(found.store, found.rows) for found in made.stored] == [("n", 16)], "r is probed by nobody"
    both = planned((asked, query("p", {"r": "r", "s": "r"}, ["r.a = s.a"], windows={"r": 3, "s": 3})), sources=sources)
    assert {found.store: found.rows for found in both.stored} == {"n": 16, "r": 24}
    assert both.stored_rows_estimate == 40
    # r: column v, key a, event time and a word of selections; n: key a.
    assert {found.store: found.bytes for found in both.stored} == {"n": 16 * 8, "r": 24 * 4 * 8}


def test_estimates_can_be_renewed_from_other_statistics_without_changing_the_plan() -> None:
    made = planned((CHAIN,), "fixed", sources=SOURCES)
    faster = Statistics(
        sources=tuple(
            SourceStatistics(source=source.name, rate_rows_per_s=rate, distinct=source.declared.distinct)
            for source, rate in zip(SOURCES, (40.0, 2.0, 3.0), strict=True)
        )
    )
    again = reestimated(made, Cardinality(statistics=faster))
    assert per_s(again)["r→s"] == pytest.approx((40, 40 * 2 * 20 / 8))
    assert [store.id for store in again.stores] == [store.id for store in made.stores]
    assert reestimated(again, Cardinality(statistics=Statistics(sources=_declared()))) == made


def _declared() -> tuple[SourceStatistics, ...]:
    return tuple(
        SourceStatistics(
            source=source.name,
            rate_rows_per_s=source.declared.rate_rows_per_s,
            distinct=source.declared.distinct,
        )
        for source in SOURCES
    )
