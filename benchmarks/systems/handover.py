"""Spark merely handing the rows of all three streams to Python, in the same micro-batches: what any engine whose work
is in Python workers cannot beat.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.systems.session_settings import OF_PLAIT
from benchmarks.systems.streams import open_streams
from benchmarks.systems.system import System
from benchmarks.systems.task import Outcome, Task, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SYSTEM = System(
    name="handover",
    summary="Spark merely handing the rows to Python: a limit for whatever works there",
    settings=OF_PLAIT,
    joins=False,
)


def run(task: Task) -> Outcome:
    """Drain the streams into Python workers that only count the rows."""
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{task.cores}]", spark_settings(task))
    rows: list[int] = []
    ends: list[float] = []

    def collect(counts: DataFrame, batch: int) -> None:
        rows.append(sum(row["rows"] for row in counts.collect()))
        ends.append(time.perf_counter())

    counted = [
        frame.coalesce(task.cores).mapInArrow(_count, "rows bigint") for frame in open_streams(spark, task).values()
    ]
    frame = reduce(lambda left, right: left.union(right), counted)
    writer = frame.writeStream.option("checkpointLocation", task.checkpoint).trigger(availableNow=True)
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    writer.foreachBatch(collect).start().awaitTermination()
    seconds = time.perf_counter() - started
    spark.stop()
    starts = [started, *ends]
    return Outcome(
        rows_in=sum(rows),
        startup_seconds=startup_seconds,
        seconds=seconds,
        batch_seconds=tuple(end - start for start, end in zip(starts, ends, strict=False)),
    )


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})
