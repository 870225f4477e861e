"""Spark's own chained stream-stream joins, with the default state store.

Spark computes a later watermark for the second join than for the first, so with files in order of time no row is late
even without a delay, and the state is as small as Spark can have it. One shuffle partition a core: the default of 200
would only slow it down on a small machine. Batches without data, which Spark would run to clean up, are switched off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from plait.bench.question import WINDOW_S
from plait.bench.systems.streams import open_streams
from plait.bench.systems.sums import Sums
from plait.bench.systems.task import Outcome, Task, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

DELAY = "0 seconds"


def run(task: Task) -> Outcome:
    """Drain the streams through two stream-stream joins, with settings in Spark's favour."""
    favourable = {
        "spark.sql.shuffle.partitions": str(task.cores),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    return drain(task, favourable)


def drain(task: Task, settings: Mapping[str, str]) -> Outcome:
    """Drain the streams through two stream-stream joins on a session with these settings."""
    spark = _open_session(task, settings)
    sums = Sums()
    joined = join_streams(open_streams(spark, task, named=False))
    writer = joined.writeStream.option("checkpointLocation", task.checkpoint).trigger(availableNow=True)
    writer = writer.foreachBatch(sums.add) if task.check else writer.format("noop")
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    query = writer.start()
    query.awaitTermination()
    seconds = time.perf_counter() - started
    outcome = _outcome(query, startup_seconds, seconds, sums if task.check else None)
    spark.stop()
    return outcome


def join_streams(streams: dict[str, DataFrame]) -> DataFrame:
    """Return the chained join. Spark refuses a second join whose input has two event-time columns, so the first join
    hands on the time of r as a plain number.
    """
    r, s, t = (
        streams[name].withColumnRenamed("ts", f"{name}_ts").withWatermark(f"{name}_ts", DELAY)
        for name in ("r", "s", "t")
    )
    pairs = _join(r, s, f"ra = sa AND {_near('r_ts', 's_ts')}")
    pairs = pairs.selectExpr("unix_micros(r_ts) AS r_us", "rv", "s_ts", "sa", "sb", "sv")
    window_us = WINDOW_S * 1_000_000
    triples = _join(pairs, t, f"sb = tb AND {_near('s_ts', 't_ts')} AND abs(r_us - unix_micros(t_ts)) <= {window_us}")
    return triples.selectExpr("timestamp_micros(r_us) AS r_ts", "rv", "s_ts", "sa", "sb", "sv", "t_ts", "tv")


def _join(left: DataFrame, right: DataFrame, condition: str) -> DataFrame:
    from pyspark.sql.functions import expr

    return left.join(right, expr(condition))


def _near(left: str, right: str) -> str:
    window = f"INTERVAL {WINDOW_S} SECONDS"
    return f"{left} >= {right} - {window} AND {left} <= {right} + {window}"


def _open_session(task: Task, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    needed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": str(2 * task.files + 2),
    }
    builder = SparkSession.builder.appName("bench-spark").master(f"local[{task.cores}]")
    for name, value in spark_settings(task, {**needed, **settings}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _outcome(query: StreamingQuery, startup_seconds: float, seconds: float, sums: Sums | None) -> Outcome:
    progress = [batch for batch in query.recentProgress if batch.numInputRows]
    operators = [operator for batch in progress for operator in batch.stateOperators]
    total = None if sums is None else sums.total()
    return Outcome(
        rows_in=sum(batch.numInputRows for batch in progress),
        startup_seconds=startup_seconds,
        seconds=seconds,
        batch_seconds=tuple(batch.durationMs["triggerExecution"] / 1000 for batch in progress),
        results=None if total is None else total.rows,
        checksum=total,
        late_rows=sum(operator.numRowsDroppedByWatermark for operator in operators),
        stored_tuples=sum(operator.numRowsTotal for operator in progress[-1].stateOperators) if progress else 0,
        stored_bytes=sum(operator.memoryUsedBytes for operator in progress[-1].stateOperators) if progress else 0,
    )
