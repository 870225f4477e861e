"""How much of the past queries have with a batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.filling_up import PastPlan, begun, fill_up, rows_left
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Spread
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.query.model import Aggregation, Query
from plait.query.time_windows import TimeWindow
from plait.state.model import Manifest
from plait.state.storage import Storage
from tests.property.governing import Slices
from tests.unit.state.builders import described

WINDOW = TimeWindow(relation="r", column="ts", size_us=60, slide_us=60, start_us=0, lag_us=0)
PLAIN = example_query("plain", "r.a = s.a")
GROUPED = replace(
    example_query("grouped", "r.a = s.a"),
    aggregation=Aggregation(window=WINDOW, sql="SELECT count(*) FROM {rows}", names=("n",), functions=("count",)),
)
BEFORE = Manifest(
    batch=4,
    watermark_us=None,
    plan="p",
    buckets=tuple(described(store=store, path=f"{store}{n}", rows=10, batch_max=n) for store in "rs" for n in range(4)),
)


def past_of(query: Query) -> PastPlan:
    options = example_options("greedy")
    return PastPlan(query=query, plan=plan((query,), example_statistics(options), options), readings={})


def test_a_slice_is_taken_for_a_query_and_all_for_one_that_groups(tmp_path: Path) -> None:
    wanted, taken = (past_of(PLAIN), past_of(GROUPED)), list[int]()
    manifest = begun(wanted, BEFORE, 5)
    context = ProbeContext(plan=wanted[0].plan, batch=5, storage=Storage.open(str(tmp_path)), buckets={}, wanted={})

    def probe(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        probed = {bucket.path for each in context.buckets.values() for bucket in each}
        assert probed == {bucket.path for bucket in BEFORE.buckets}
        taken.append(sum(stop - start for task in tasks for _, _, start, stop in task.starts))
        return ()

    filled = fill_up(context, wanted, manifest, probe, Spread(slots=1), Slices(most=15, piece=15))
    assert [each.query for each in filled.manifest.filling_up] == ["plain", "grouped"]
    assert taken == [15, 40]
    assert rows_left(filled.manifest) == 25


def test_what_arrived_last_is_taken_first_and_a_query_begins_once() -> None:
    manifest = begun((past_of(PLAIN),), BEFORE, 5)
    (each,) = manifest.filling_up
    assert [left.path[-1] for left in each.left] == ["3", "2", "1", "0"]
    again = begun((past_of(PLAIN),), manifest, 6)
    assert (again.filling_up, again.pasts) == (manifest.filling_up, manifest.pasts)
    assert begun((), manifest, 6).filling_up == begun((), manifest, 6).pasts == ()
