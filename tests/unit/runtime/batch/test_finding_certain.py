"""Whether a batch without rows is worth while, because stored rows would be decided about."""

from __future__ import annotations

from dataclasses import replace

from plait.operators.close.levels import NOTHING_TAKEN
from plait.plan.model import Plan
from plait.runtime.batch.finding_certain import awaits_certain
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.outputs.binding import Binding
from plait.sinks.kind import Sink
from plait.state.model import Bucket, Layout, Manifest, SourceProgress
from tests.unit.sql.select.test_outer_joins import SECOND, bound

LAYOUT = Layout(columns=(), keys=(), values=(), selections=("true",), has_tau=True)
BUCKET = Bucket(
    store="a",
    partition=0,
    path="stores/a/1",
    rows=2,
    bytes=1,
    batch_min=0,
    batch_max=0,
    tau_min=3 * SECOND,
    tau_max=5 * SECOND,
    sort_key=(),
    layout=LAYOUT,
    checksum="",
)


def epoch(select: str) -> Epoch:
    query = bound(select)
    binding = Binding(
        query=query,
        sink=Sink(spec=query.sink),
        joined=(),
        joined_schema=None,  # type: ignore[arg-type]
        output=None,  # type: ignore[arg-type]
        arrow_output=None,
        made=None,
    )
    plan = Plan(strategy="greedy", queries=("q",), ranks=("a", "b"), stores=(), trees=())
    return Epoch(number=0, plan=plan, plan_id="", bindings={"q": binding}, streams=())


def manifest(*buckets: Bucket, bar_us: int = 0) -> Manifest:
    sources = tuple(SourceProgress(source=name, late_before_us=bar_us) for name in ("a", "b"))
    return Manifest(batch=0, watermark_us=bar_us, plan="", sources=sources, buckets=buckets)


LEFT = "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k"


def test_rows_whose_window_the_watermark_would_pass_are_waited_for() -> None:
    assert awaits_certain(manifest(BUCKET), epoch(LEFT), 14 * SECOND, NOTHING_TAKEN)


def test_nothing_is_waited_for_before_the_first_window_is_over() -> None:
    assert not awaits_certain(manifest(BUCKET), epoch(LEFT), 13 * SECOND, NOTHING_TAKEN)
    assert not awaits_certain(manifest(BUCKET), epoch(LEFT), None, NOTHING_TAKEN)


def test_nothing_is_waited_for_before_the_groups_that_a_query_reads_have_come_there() -> None:
    assert awaits_certain(manifest(BUCKET), epoch(LEFT), 90 * SECOND, {"b": 14 * SECOND})
    assert not awaits_certain(manifest(BUCKET), epoch(LEFT), 90 * SECOND, {"b": 13 * SECOND})
    assert not awaits_certain(manifest(BUCKET), epoch(LEFT), 90 * SECOND, {"b": None})
    assert awaits_certain(manifest(BUCKET), epoch(LEFT), 90 * SECOND, {"c": None})


def test_rows_that_have_been_decided_about_are_not_waited_for_again() -> None:
    assert not awaits_certain(manifest(BUCKET, bar_us=16 * SECOND), epoch(LEFT), 90 * SECOND, NOTHING_TAKEN)


def test_neither_inner_joins_nor_other_stores_wait() -> None:
    inner = epoch("SELECT a.k FROM a JOIN b ON a.k = b.k")
    assert not awaits_certain(manifest(BUCKET), inner, 90 * SECOND, NOTHING_TAKEN)
    assert not awaits_certain(manifest(replace(BUCKET, store="other")), epoch(LEFT), 90 * SECOND, NOTHING_TAKEN)
