"""Plait, with default settings; results are discarded, or handed to Spark to be added up."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

from plait import sinks
from plait.bench.question import QUERY, SELECT, WINDOW_S
from plait.bench.systems.streams import open_streams
from plait.bench.systems.sums import Sums
from plait.bench.systems.task import Outcome, Task, spark_settings

if TYPE_CHECKING:
    from plait.runtime.events import BatchEvent


def run(task: Task) -> Outcome:
    """Drain the streams through one query."""
    from plait.runtime.engine import Engine
    from plait.runtime.session import open_session

    spark = open_session(f"local[{task.cores}]", spark_settings(task))
    sums = Sums()
    ends: list[float] = []

    def heard(event: BatchEvent) -> None:
        ends.append(time.perf_counter())

    engine = Engine(spark, checkpoint=task.checkpoint, listener=heard)
    for name, frame in open_streams(spark, task).items():
        engine.stream(name, frame, time="ts", window=f"{WINDOW_S} seconds")
    engine.query(QUERY, SELECT, sink=sinks.foreach(sums.add) if task.check else sinks.noop())
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    summary = engine.run_available()
    seconds = time.perf_counter() - started
    spark.stop()
    return Outcome(
        rows_in=summary.rows_in,
        startup_seconds=startup_seconds,
        seconds=seconds,
        batch_seconds=tuple(later - earlier for earlier, later in pairwise((started, *ends))),
        results=dict(summary.queries)[QUERY],
        checksum=sums.total() if task.check else None,
        late_rows=summary.late,
        probe_tuples=summary.probe_tuples,
        stored_tuples=summary.stored_tuples,
        stored_bytes=summary.stored_bytes,
    )
