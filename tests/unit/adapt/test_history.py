"""What a batch adds to the series: an equality is measured where arriving tuples probe a store first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plait.adapt.history import Batch, batch_counts, join_counts, with_sample
from plait.operators.reports import ProbeReport
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.plan.model import KeyColumn, Plan
from plait.query.model import SourceExpression
from plait.state.model import SourceProgress
from plait.stats.combine import with_measured
from plait.stats.cycles import Count, from_totals
from plait.stats.measured import Measurement, measured_statistics
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics, conjunction
from tests.unit.state.builders import described

OPTIONS = example_options("fixed", parallelism=2)
PLAN = plan((example_query("q", "r.a = s.a", "s.b = t.b"),), example_statistics(OPTIONS), OPTIONS)
KEY_A, KEY_B = "#k bigint `a`", "#k bigint `b`"
SECOND = 1_000_000


def bucket(store: str, batch: int, rows: int, start: int, end: int):  # type: ignore[no-untyped-def]
    return described(
        store=store, path=f"{store}{batch}", rows=rows, batch_min=batch, batch_max=batch, tau_min=start, tau_max=end
    )


def batch(plan: Plan = PLAN, **given: Any) -> Batch:
    given = {"stored": (), "arrived": (), "probed": (), "before": {}, "after": {}, **given}
    return Batch(plan=plan, **given)


def test_pairs_are_arriving_tuples_times_the_stored_ones_within_the_window() -> None:
    # r arrives around 10 s with windows of 1 s: half of the rows of s from 8 to 10 s are within reach.
    stored = (bucket("s", 0, 100, 8 * SECOND, 10 * SECOND), bucket("s", 1, 7, 0, SECOND))
    arrived = (bucket("r", 2, 50, 10 * SECOND, 10 * SECOND), bucket("s", 2, 1000, 10 * SECOND, 10 * SECOND))
    report = ProbeReport(probe_tuples=(("r→s", 50),), matches=(("r→s", 20),))
    after = {"s": SourceProgress(source="s", rows=100, kept=(("true", 100),))}
    found = join_counts(batch(stored=stored, arrived=arrived, probed=(report,), after=after))
    # s of the same batch ranks higher, so r does not see it.
    assert found == (Count(kind="join", name=("r", KEY_A, "s", KEY_A), counts=(50 * 50, 20)),)


def test_rows_of_one_moment_are_within_reach_up_to_its_bounds_and_those_without_event_time_always() -> None:
    stored = (
        bucket("s", 0, 100, 9 * SECOND, 9 * SECOND),
        bucket("s", 0, 10, 9 * SECOND - 1, 9 * SECOND - 1),
        replace(bucket("s", 0, 3, 0, 0), tau_min=None, tau_max=None),
    )
    arrived = (bucket("r", 2, 50, 10 * SECOND, 10 * SECOND),)
    report = ProbeReport(probe_tuples=(("r→s", 50),))
    (found,) = join_counts(batch(stored=stored, arrived=arrived, probed=(report,)))
    assert found.counts == (50 * 103, 0)


def test_a_tuple_that_goes_to_all_partitions_is_one_tuple() -> None:
    broadcast = replace(
        PLAN, stores=tuple(replace(each, partition_by=()) if each.id == "s" else each for each in PLAN.stores)
    )
    arrived = (bucket("r", 1, 10, SECOND, SECOND),)
    report = ProbeReport(probe_tuples=(("r→s", 20),), matches=(("r→s", 5),))
    stored = (bucket("s", 0, 30, SECOND, SECOND),)
    (found,) = join_counts(batch(broadcast, stored=stored, arrived=arrived, probed=(report,)))
    assert found.counts == (10 * 30, 5)


def test_a_predicate_that_is_asked_from_both_sides_is_counted_together() -> None:
    arrived = (bucket("r", 1, 10, SECOND, SECOND), bucket("s", 1, 20, SECOND, SECOND))
    reports = tuple(ProbeReport(probe_tuples=((edge, 10),), matches=((edge, 3),)) for edge in ("r→s", "s→r", "s→r"))
    stored = (bucket("r", 0, 5, SECOND, SECOND), bucket("s", 0, 7, SECOND, SECOND))
    (found,) = join_counts(batch(stored=stored, arrived=arrived, probed=reports))
    # s ranks higher: it sees the r of its own batch too.
    assert found.counts == (10 * 7 + 20 * (5 + 10), 9)


def test_steps_that_join_the_same_are_counted_together_whichever_relation_began() -> None:
    report = ProbeReport(
        probe_tuples=(("r→s→t", 10), ("s→r→t", 5), ("t→s", 4)),
        matched=(("r→s→t", 4), ("s→r→t", 1), ("t→s", 0)),
        matches=(("r→s→t", 8), ("s→r→t", 3), ("t→s", 0)),
    )
    undivided = replace(PLAN, stores=tuple(replace(each, parallelism=1) for each in PLAN.stores))
    counted = batch_counts(batch(undivided, probed=(report,)))
    found = {count.name[1].split("~")[0]: count.counts for count in counted if count.kind == "step"}
    assert found == {"r⋈s⋈t": (15, 5, 11), "s⋈t": (4, 0, 0)}


def test_a_tuple_that_is_sent_to_all_partitions_takes_a_step_once_and_matches_at_most_once() -> None:
    broadcast = replace(
        PLAN, stores=tuple(replace(each, partition_by=()) if each.id == "s" else each for each in PLAN.stores)
    )
    report = ProbeReport(probe_tuples=(("r→s", 20),), matched=(("r→s", 13),), matches=(("r→s", 50),))
    (found,) = (count for count in batch_counts(batch(broadcast, probed=(report,))) if count.kind == "step")
    assert found.counts == (10, 10, 50)


def test_of_a_source_rows_in_time_and_the_advance_of_its_event_time_are_counted() -> None:
    before = SourceProgress(source="r", rows=100, late=3, bad=2, tau_max=5 * SECOND)
    after = SourceProgress(source="r", rows=150, late=13, bad=2, tau_max=7 * SECOND)
    found = batch_counts(batch(before={"r": before}, after={"r": after, "s": SourceProgress(source="s", rows=7)}))
    assert found == (
        Count(kind="source", name=("r",), counts=(40, 2 * SECOND)),
        Count(kind="source", name=("s",), counts=(7, 0)),
    )
    assert batch_counts(batch(before={"r": after}, after={"r": after})) == ()


def test_the_first_rows_of_a_stream_span_one_gap_less_than_they_are() -> None:
    first = SourceProgress(source="r", rows=11, tau_min=5 * SECOND, tau_max=15 * SECOND)
    assert batch_counts(batch(after={"r": first})) == (Count(kind="source", name=("r",), counts=(10, 10 * SECOND)),)


def measured(pairs: float, matches: float) -> Statistics:
    """Return what r shows of its join with s."""
    return measured_statistics(
        (Measurement(source="r", rows=10), Measurement(source="s", rows=10)),
        (from_totals("join", ("r", KEY_A, "s", KEY_A), (round(pairs), round(matches))),),
    )


def test_a_join_counts_as_measured_with_enough_pairs() -> None:
    assert measured(1e6, 0.0).selectivity(("s", KEY_A), ("r", KEY_A)) == pytest.approx(0.5 / 1e6)
    assert measured(100.0, 50.0).selectivity(("r", KEY_A), ("s", KEY_A)) == pytest.approx(50.5 / 100)
    assert measured(100.0, 1.0).joins == ()


def test_the_optimizer_believes_a_measured_join_more_than_distinct_counts() -> None:
    key = KeyColumn(expression=SourceExpression(sql="`a`", columns=("a",)), type="bigint")
    sides = [(Extent(source=name, is_table=False, window_us=SECOND), key) for name in "rs"]
    assert Cardinality(statistics=measured(1e6, 1e3)).equality(*sides) == pytest.approx(1e-3, rel=1e-3)


def test_declared_distinct_counts_of_both_sides_win() -> None:
    declared = Statistics(sources=tuple(SourceStatistics(source=name, distinct=(("a", 10.0),)) for name in ("r", "s")))
    assert with_measured(declared, measured(1e6, 1e3)).joins == ()
    half = Statistics(sources=declared.sources[:1])
    assert len(with_measured(half, measured(1e6, 1e3)).joins) == 1


def test_equalities_that_hold_at_once_are_measured_together_or_taken_to_depend_on_each_other() -> None:
    keys = {
        name: KeyColumn(expression=SourceExpression(sql=f"`{name}`", columns=(name,)), type="bigint") for name in "ab"
    }
    r, s = (Extent(source=name, is_table=False, window_us=SECOND) for name in "rs")
    known = tuple(SourceStatistics(source=name, distinct=(("a", 100.0), ("b", 10.0))) for name in ("r", "s"))
    pairs = [((r, keys[name]), (s, keys[name])) for name in "ab"]
    assert Cardinality(statistics=Statistics(sources=known)).join(pairs) == pytest.approx(0.01 * 0.1**0.5)
    both = conjunction((("r", keys[name].name), ("s", keys[name].name)) for name in "ba")
    together = Statistics(sources=known, joins=(JoinSelectivity(sides=both, selectivity=0.2),))
    assert Cardinality(statistics=together).join(pairs) == 0.2
    assert Cardinality(statistics=together).join([]) == 1.0


def test_a_sample_adds_what_the_plan_in_force_has_not_counted_and_nothing_else() -> None:
    arrived, stored = (bucket("r", 1, 10, SECOND, SECOND),), (bucket("s", 0, 30, SECOND, SECOND),)
    own = batch(
        stored=stored, arrived=arrived, probed=(ProbeReport(probe_tuples=(("r→s", 10),), matched=(("r→s", 5),)),)
    )
    counted = batch_counts(own)
    sampled = ProbeReport(probe_tuples=(("r→s", 2), ("r→s→t", 2)), matched=(("r→s", 2),), matches=(("r→s", 2),))
    found = with_sample(counted, replace(own, probed=(sampled,)))
    assert found[: len(counted)] == counted
    assert [count.name[1].split("~")[0] for count in found[len(counted) :]] == ["r⋈s⋈t"]
