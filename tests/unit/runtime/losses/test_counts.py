"""Counts of batches add up to those of a run, and warnings are told once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.operators.reports import IngestReport, ProbeReport
from plait.optimizer.examples import example_query
from plait.query.model import Query, SourceExpression
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.totals import Totals
from plait.runtime.losses.counts import (
    BadCount,
    EdgeFlow,
    RelationCounts,
    SourceCounts,
    counts_of,
    edge_flows,
    relation_counts,
)
from plait.runtime.losses.times import implausible_times
from plait.sql import load_script
from plait.state.model import BadRows, NullKey

DAY_US = 86_400_000_000
NOW_US = 1_767_225_600_000_000
REPORT = IngestReport(
    source="r",
    rows=20,
    late=2,
    bad=3,
    bad_rows=(BadRows(reason="malformed", rows=3, sample="x"),),
    outside=4,
    null_keys=5,
    null_keys_by=(NullKey(key="`a`", rows=5),),
    kept=(("(`v` > 5)", 11), ("true", 15)),
    tau_min=NOW_US,
    tau_max=NOW_US + DAY_US,
)
EVENT = BatchEvent(
    batch=0,
    rows_in=20,
    late=2,
    bad=3,
    results=(("q", 0),),
    epoch=0,
    probe_tuples=0,
    stored_tuples=0,
    stored_bytes=0,
    seconds=1.0,
    sources=counts_of([REPORT]),
    flows=(EdgeFlow(edge="r>s", sent=6, matched=1),),
)


def test_rows_are_late_bad_outside_or_without_a_key() -> None:
    (counts,) = counts_of([REPORT, REPORT])
    assert (counts.rows, counts.late, counts.bad_rows, counts.outside, counts.null_keys) == (40, 4, 6, 8, 10)
    assert counts.as_json()["null_keys_by"] == {"a": 10}


def selecting() -> Query:
    """Return r ⋈ s where only rows of r with v > 5 count."""
    query = example_query("q", "r.a = s.a")
    chosen = replace(query.relations[0], selections=(SourceExpression(sql="`v` > 5", columns=("v",)),))
    return replace(query, relations=(chosen, query.relations[1]))


def test_what_a_selection_leaves_out_is_told_of_rows_in_time_by_query_and_alias() -> None:
    other = IngestReport(source="s", rows=7, kept=(("true", 7),))
    assert relation_counts([selecting()], [REPORT, other]) == (
        RelationCounts(query="q", alias="r", source="r", rows=15, outside=4),
        RelationCounts(query="q", alias="s", source="s", rows=7, outside=0),
    )


def test_of_a_selection_that_was_not_evaluated_on_arrival_nothing_is_said() -> None:
    assert relation_counts([selecting()], [replace(REPORT, kept=(("(`v` > 5) OR (`v` > 9)", 11),))]) == ()


def test_flows_of_tasks_add_up_by_edge() -> None:
    reports = [
        ProbeReport(probe_tuples=(("e", 2), ("f", 1)), matches=(("e", 1),)),
        ProbeReport(probe_tuples=(("e", 3),)),
    ]
    assert edge_flows(reports) == (EdgeFlow(edge="e", sent=5, matched=1), EdgeFlow(edge="f", sent=1, matched=0))


def test_batches_add_up_to_the_summary_with_the_explanation_whichever_batch_has_it() -> None:
    totals = Totals()
    explained = replace(EVENT.sources[0], bad=(BadCount(reason="malformed", rows=3, column="v", hint="do this"),))
    totals.add(EVENT)
    totals.add(replace(EVENT, sources=(explained,)))
    summary = totals.summary(["q", "other"], wall_seconds=1.0)
    assert (summary.rows_in, summary.queries) == (40, (("other", 0), ("q", 0)))
    assert summary.sources[0].bad == (BadCount(reason="malformed", rows=6, column="v", hint="do this"),)
    assert totals.flows == {"r>s": EdgeFlow(edge="r>s", sent=12, matched=2)}


def seen(tau_min: int, tau_max: int) -> SourceCounts:
    return SourceCounts(source="r", rows=1, tau_min=tau_min, tau_max=tau_max)


@pytest.mark.parametrize(
    ("tau_us", "advice"),
    [
        (NOW_US // 1_000_000 * 1_000 * 1_000_000, "BIGINT and write TIMESTAMP BY timestamp_millis(...)"),
        (NOW_US // 1_000, "timestamp_seconds(...)"),
        (NOW_US // 1_000_000, "timestamp_seconds(...)"),
        (-40 * 365 * DAY_US, "check how"),
        (200 * 365 * DAY_US, "check how"),
    ],
)
def test_an_implausible_event_time_is_told_once_with_its_conversion(tau_us: int, advice: str) -> None:
    totals = Totals()
    for _ in range(2):
        found = [*implausible_times([seen(tau_us, tau_us)], totals.warned_of("event times"))]
        totals.warn(found)
    (notice,) = totals.untold()
    assert advice in notice.text
    assert ("late" in notice.text) == (tau_us > NOW_US)
    assert totals.untold() == ()
    assert totals.summary([], wall_seconds=0.0).as_json()["warnings"] == [notice.as_json()]


def test_event_times_of_our_time_are_no_reason_to_warn() -> None:
    assert [*implausible_times([seen(NOW_US - 50 * 365 * DAY_US, NOW_US + 70 * 365 * DAY_US)], frozenset())] == []


def test_rows_with_a_null_key_are_not_lost_where_a_query_has_them_without_a_partner() -> None:
    streams = "".join(
        f"CREATE STREAM {name} (a BIGINT, b BIGINT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 1 SECOND;"
        for name in "rs"
    )
    for join, is_lost in (("LEFT JOIN", False), ("LEFT ANTI JOIN", False), ("JOIN", True), ("RIGHT JOIN", True)):
        sql = f"{streams} CREATE QUERY q INTO noop AS SELECT 1 AS one FROM r {join} s ON r.a = s.a;"
        (counts,) = counts_of([REPORT], load_script(sql).queries)
        assert bool(counts.null_keys_by) is is_lost, join
