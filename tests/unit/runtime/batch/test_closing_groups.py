"""Which queries a batch writes groups of, and what waits of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.operators.close.closing import Closed
from plait.plan.model import Plan
from plait.query.time_windows import TimeWindow
from plait.runtime.batch.closing_groups import awaits_groups, close_groups
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.outputs.binding import Binding
from plait.runtime.outputs.grouping import Grouping
from plait.sinks.kind import Sink
from plait.state.model import FillingUp, GatheredRows, Left, Manifest, OpenGroups
from plait.state.storage import Storage
from plait.stats.cycles import Cycles
from tests.unit.sql.select.test_outer_joins import bound

WINDOW = TimeWindow(relation="a", column="ts", size_us=10, slide_us=10, start_us=0, lag_us=0)
FILE = GatheredRows(path="f", rows=1, bytes=1, tau_min=3, tau_max=4, checksum="")
WAITING = tuple(OpenGroups(query=name, identity="i", over_until_us=None, files=(FILE,)) for name in ("q", "resting"))
BEFORE = Manifest(batch=6, watermark_us=None, plan="p", groups=WAITING)


def epoch(*, groups: bool = True) -> Epoch:
    query = bound("SELECT count(*) AS n FROM a GROUP BY window(a.ts, '5 seconds')")
    grouping = Grouping(
        joined=(),
        fold=None,
        kept=None,  # type: ignore[arg-type]
        window=WINDOW,
        sql="",
        finishing=None,
        identity="i",
    )
    binding = Binding(
        query=query,
        sink=Sink(spec=query.sink),
        joined=(),
        joined_schema=None,  # type: ignore[arg-type]
        output=None,  # type: ignore[arg-type]
        arrow_output=None,
        made=None,
        grouping=grouping if groups else None,
    )
    plan = Plan(strategy="greedy", queries=("q",), ranks=("a",), stores=(), trees=())
    return Epoch(number=0, plan=plan, plan_id="", bindings={"q": binding}, streams=())


@pytest.mark.parametrize("groups", [True, False])
def test_what_a_query_that_is_left_out_has_gathered_waits_whether_others_group_or_not(
    groups: bool, tmp_path: Path
) -> None:
    work = Batch(number=7, epoch=epoch(groups=groups), before=BEFORE, clock_ms=0)
    closed = Closed(sources=(), watermark_us=9, kept=(), expired=(), windows=(), cycles=Cycles())
    after = close_groups(None, Storage.open(str(tmp_path)), work, closed, dict)  # type: ignore[arg-type]
    assert {each.query: each.files for each in after.groups}["resting"] == (FILE,)
    assert len(after.groups) == 1 + groups


def test_a_batch_without_rows_is_worth_while_once_a_window_would_be_over() -> None:
    assert awaits_groups(BEFORE, epoch(), 10, {})
    assert not awaits_groups(BEFORE, epoch(), 9, {})
    assert not awaits_groups(BEFORE, epoch(), None, {})


def test_queries_that_do_not_run_or_still_get_results_of_the_past_are_not_waited_for() -> None:
    assert not awaits_groups(replace(BEFORE, groups=WAITING[1:]), epoch(), 10, {})
    left = (Left(path="b"),)
    filling = FillingUp(query="q", asks="", start="a", since=1, rows=1, left=left)
    assert not awaits_groups(replace(BEFORE, filling_up=(filling,)), epoch(), 10, {})
    assert awaits_groups(replace(BEFORE, filling_up=(replace(filling, left=()),)), epoch(), 10, {})


def test_a_query_that_does_not_group_waits_for_nothing() -> None:
    assert not awaits_groups(BEFORE, epoch(groups=False), 10, {})
