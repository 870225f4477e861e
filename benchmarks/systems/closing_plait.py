"""Questions of `benchmarks.workloads.closing_questions` on live streams, answered by Plait."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.systems.closing_noted import counted, decided_of, times_of
from benchmarks.systems.streams import read_options
from benchmarks.systems.task import Delivery, Outcome, Task, plait_settings, spark_settings
from benchmarks.workloads.closing_questions import GROUPS, SECOND_US, Int64s, select
from plait import sinks

_POLL_S = 0.05


def run(task: Task) -> Outcome:
    """Answer the question of a task from what arrives, a batch after the other, until told to stop."""
    from plait.runtime.engine import Engine
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{task.cores}]", spark_settings(task))
    engine = Engine(spark, checkpoint=task.checkpoint)
    for name, value in plait_settings(task).items():
        engine.set_option(name, value)
    question, times = task.questions.queries[0].name, times_of(task)
    for stream in task.questions.streams:
        options = read_options(task, stream.name, is_small=False)
        window = f"{times.window_us // SECOND_US} seconds"
        engine.stream(
            stream.name, format="parquet", schema=stream.ddl, options=options, time=stream.time, window=window
        )
    batches: dict[int, tuple[Delivery, ...]] = {}
    engine.query(question, select(question, times, windowed=False), sink=sinks.foreach_arrow(_noting(task, batches)))
    running = engine.start(trigger="0 seconds")
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    task.ready.touch()
    while not task.stop.exists():
        time.sleep(_POLL_S)
    seconds = time.perf_counter() - started
    summary = running.stop()
    spark.stop()
    return Outcome(
        rows_in=summary.rows_in,
        startup_seconds=startup_seconds,
        seconds=seconds,
        late_rows=summary.late,
        deliveries=tuple(delivery for batch in sorted(batches) for delivery in batches[batch]),
    )


def _noting(task: Task, batches: dict[int, tuple[Delivery, ...]]) -> Callable[[pa.Table, int], None]:
    """Return what notes when results were delivered; a batch that is done twice counts once, with its later time."""
    decided, question = decided_of(task), task.questions.queries[0].name

    def note(results: pa.Table, batch: int) -> None:
        now_us = time.time_ns() // 1000
        batches[batch] = counted(now_us, decided.file_of(_noted(results, question)))

    return note


def _noted(results: pa.Table, question: str) -> Int64s:
    """Return what `Decided.file_of` reads of results."""
    if question == GROUPS:
        begins = results.column("begin").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        found = pc.divide(begins, SECOND_US)
    elif question == "full":
        found = pc.coalesce(results.column("l_id"), pc.subtract(-1, results.column("r_id")))
    else:
        found = results.column("l_id")
    noted: Int64s = found.to_numpy()
    return noted


__all__ = ["run"]
