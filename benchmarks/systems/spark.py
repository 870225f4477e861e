"""Spark's own chained stream-stream joins: one streaming query for each question, all running at the same time.

Spark computes a later watermark for the second join than for the first, so with files in order of time no row is late
even without a delay, and the state is as small as Spark can have it.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.systems.deliveries import Deliveries, wait_for_the_end
from benchmarks.systems.duckdb import rows_in
from benchmarks.systems.session_settings import ON_SPARK
from benchmarks.systems.streams import open_streams
from benchmarks.systems.sums import Sums
from benchmarks.systems.system import Mode, Setting, System
from benchmarks.systems.task import Answer, Outcome, Task, spark_settings
from benchmarks.workloads.joins import QUALIFIED, JoinQuery, OutputOf, qualified

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery, StreamingQueryProgress

DELAY = "0 seconds"
_HEAP = "8g"
_PARTITIONS = "spark.sql.shuffle.partitions"
_ROCKSDB = "rocksdb"
_DEFAULTS = "defaults"
_SHIPPED = "as Spark ships"

SYSTEM = System(
    name="spark",
    summary="Spark's chained stream-stream joins, a streaming query each",
    settings=(
        *ON_SPARK,
        Setting(
            name=_PARTITIONS,
            value="one a core",
            reason="the default of 200 costs a task and a state store for each partition in every batch; Spark's "
            "guide advises few for small clusters",
        ),
        Setting(
            name="spark.sql.streaming.noDataMicroBatches.enabled",
            value="false",
            reason="batches without data would only clean up state",
        ),
        Setting(name="watermark delay", value=DELAY, reason="no row comes late, so state is as small as it can be"),
        Setting(name="spark.driver.memory", value=_HEAP, reason="the default state store keeps everything in the heap"),
    ),
    modes=(
        Mode(
            name=_ROCKSDB,
            summary="the same with the RocksDB state store",
            settings=(
                Setting(
                    name="spark.sql.streaming.stateStore.providerClass",
                    value="RocksDBStateStoreProvider",
                    reason="recommended by Spark's guide for state that is large for the heap",
                ),
                Setting(
                    name="spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
                    value="true",
                    reason="recommended by the guide: a batch uploads what changed, not a snapshot",
                ),
            ),
        ),
        Mode(
            name=_DEFAULTS,
            summary="the same with the settings Spark ships with",
            settings=(
                *(Setting(name=setting.name, value="Spark's own", reason=_SHIPPED) for setting in ON_SPARK),
                Setting(name=_PARTITIONS, value="200", reason=_SHIPPED),
                Setting(name="spark.sql.streaming.noDataMicroBatches.enabled", value="true", reason=_SHIPPED),
            ),
        ),
    ),
    is_live=True,
)

_STATE = "spark.sql.streaming.stateStore"
_CHANGED_BY_US = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
_IN_ROCKSDB = {
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}


def run(task: Task) -> Outcome:
    """Drain the streams through stream-stream joins on a session of their own."""
    spark = _open_session(task, _settings(task))
    outcome = follow_on(spark, task) if task.live else drain_on(spark, task)
    spark.stop()
    return outcome


def _settings(task: Task) -> dict[str, str]:
    if task.mode == _DEFAULTS:
        return {}
    from plait.runtime.spark.session import JVM, LOCAL_DISKS

    mine = {_PARTITIONS: str(task.cores), **_CHANGED_BY_US, **JVM, **LOCAL_DISKS}
    return {**mine, **_IN_ROCKSDB} if task.mode == _ROCKSDB else mine


def drain_on(spark: SparkSession, task: Task) -> Outcome:
    """Drain the streams through stream-stream joins on this session."""
    sums = {query.name: Sums(query) for query in task.questions.queries}
    writers = []
    for query in task.questions.queries:
        writer = _writer(spark, task, query).trigger(availableNow=True)
        writers.append(writer.foreachBatch(sums[query.name].add) if task.check else writer.format("noop"))
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    running = [writer.start() for writer in writers]
    for query in running:
        query.awaitTermination()
    seconds = time.perf_counter() - started
    return _outcome(task, running, (startup_seconds, seconds), sums if task.check else {})


def follow_on(spark: SparkSession, task: Task) -> Outcome:
    """Keep joining what arrives, a batch after the other, until told to stop."""
    found = {query.name: Deliveries(query, task) for query in task.questions.queries}
    running = [
        _writer(spark, task, query).foreachBatch(found[query.name].add).start() for query in task.questions.queries
    ]
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    wait_for_the_end(task, list(found.values()))
    seconds = time.perf_counter() - started
    for each in running:
        each.stop()
    deliveries = tuple(delivery for each in found.values() for delivery in each.total())
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds, deliveries=deliveries)


def _writer(spark: SparkSession, task: Task, query: JoinQuery) -> DataStreamWriter:
    """Return a query's results as a stream to be written, with a checkpoint of its own."""
    joined = join_streams(open_streams(spark, task, named=False), query, task.questions.times())
    return joined.writeStream.option("checkpointLocation", str(Path(task.checkpoint) / query.name))


def join_streams(streams: Mapping[str, DataFrame], query: JoinQuery, times: Mapping[str, str]) -> DataFrame:
    """Return the chained join of a query. On the way columns are called ``relation_column``; a condition is asked as
    soon as both its relations are there.

    Spark refuses a second join whose input has two event-time columns, so each join but the last hands on the time of
    the relation it adds, and the others as plain numbers.
    """
    time_of = {relation: f"{relation}_{times[query.stream_of(relation)]}" for relation in query.relations}
    joined = _relation(streams, query, times, query.relations[0])
    for position, relation in enumerate(query.relations[1:], start=1):
        earlier = query.relations[:position]
        conditions = [
            f"{join.left}_{left} = {join.right}_{right}"
            for join in query.joins_of(relation, earlier)
            for left, right in join.columns
        ]
        if query.window_s is not None:
            *older, newest = (time_of[before] for before in earlier)
            conditions += [_near(newest, time_of[relation], query.window_s)]
            conditions += [_near_number(before, time_of[relation], query.window_s) for before in older]
            if older:
                joined = _with_number(joined, older[-1])
        conditions += _between(query, relation, earlier, joined)
        joined = _join(joined, _relation(streams, query, times, relation), " AND ".join(conditions))
    return joined.selectExpr(*(f"{_as_time(output, joined)} AS {output.name}" for output in query.outputs))


def _relation(streams: Mapping[str, DataFrame], query: JoinQuery, times: Mapping[str, str], relation: str) -> DataFrame:
    """Return the columns of a relation that the query needs, after its selections."""
    time = times[query.stream_of(relation)]
    columns = {output.column for output in query.outputs if output.relation == relation} | {time}
    columns |= {column for text in query.conditions for owner, column in qualified(text) if owner == relation}
    columns |= {
        column
        for join in query.joins
        for pair in join.columns
        for side, column in zip((join.left, join.right), pair, strict=True)
        if side == relation
    }
    frame = streams[query.stream_of(relation)].alias(relation)
    for selected, condition in query.selections:
        if selected == relation:
            frame = frame.where(condition)
    frame = frame.selectExpr(*(f"{column} AS {relation}_{column}" for column in sorted(columns)))
    return frame if query.window_s is None else frame.withWatermark(f"{relation}_{time}", DELAY)


def _between(query: JoinQuery, relation: str, earlier: Sequence[str], joined: DataFrame) -> list[str]:
    """Return the conditions between a relation and those before it, in the names that columns have on the way."""
    found = []
    for text in query.conditions:
        owners = {owner for owner, _ in qualified(text)}
        if relation in owners and owners <= {relation, *earlier}:
            found.append(QUALIFIED.sub(lambda match: _on_the_way(match, joined), text))
    return found


def _on_the_way(match: re.Match[str], joined: DataFrame) -> str:
    name = f"{match.group(1)}_{match.group(2)}"
    return f"timestamp_micros({_number(name)})" if _number(name) in joined.columns else name


def _number(time: str) -> str:
    return f"{time}_us"


def _with_number(joined: DataFrame, time: str) -> DataFrame:
    """Return the columns with a time as microseconds in its place."""
    kept = (name for name in joined.columns if name != time)
    return joined.selectExpr(*kept, f"unix_micros({time}) AS {_number(time)}")


def _as_time(output: OutputOf, joined: DataFrame) -> str:
    number = _number(output.name)
    return f"timestamp_micros({number})" if number in joined.columns else output.name


def _join(left: DataFrame, right: DataFrame, condition: str) -> DataFrame:
    from pyspark.sql.functions import expr

    return left.join(right, expr(condition))


def _near(left: str, right: str, window_s: int) -> str:
    window = f"INTERVAL {window_s} SECONDS"
    return f"{left} >= {right} - {window} AND {left} <= {right} + {window}"


def _near_number(number: str, time: str, window_s: int) -> str:
    return f"abs({_number(number)} - unix_micros({time})) <= {window_s * 1_000_000}"


def _open_session(task: Task, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    needed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": str(2 * task.files + 2),
        "spark.driver.memory": _HEAP,
    }
    builder = SparkSession.builder.appName("bench-spark").master(f"local[{task.cores}]")
    for name, value in spark_settings(task, {**needed, **settings}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _outcome(
    task: Task, running: list[StreamingQuery], timing: tuple[float, float], sums: Mapping[str, Sums]
) -> Outcome:
    """Return what the queries came to. `timing`: seconds of start-up and of the run."""
    progress = [[batch for batch in query.recentProgress if batch.numInputRows] for query in running]
    stored = [tuple(_stored(batches, at) for batches in progress) for at in range(max(map(len, progress)))]
    rows, sizes = ([sum(found[kind] for found in batch) for batch in stored] or [0] for kind in (0, 1))
    startup_seconds, seconds = timing
    return Outcome(
        rows_in=rows_in(task),
        startup_seconds=startup_seconds,
        seconds=seconds,
        batch_seconds=_batch_seconds(progress[0]) if len(progress) == 1 else (),
        answers=tuple(
            Answer(query=query, rows=found.total().rows, checksum=found.total()) for query, found in sums.items()
        ),
        late_rows=sum(
            operator.numRowsDroppedByWatermark
            for batches in progress
            for batch in batches
            for operator in batch.stateOperators
        ),
        stored_tuples=rows[-1],
        stored_bytes=sizes[-1],
        peak_stored_tuples=max(rows),
        peak_stored_bytes=max(sizes),
    )


def _stored(batches: list[StreamingQueryProgress], at: int) -> tuple[int, int]:
    """Return rows and bytes in a query's state after its batch number `at`, or after its last if it had fewer."""
    if not batches:
        return 0, 0
    operators = batches[min(at, len(batches) - 1)].stateOperators
    return sum(found.numRowsTotal for found in operators), sum(found.memoryUsedBytes for found in operators)


def _batch_seconds(batches: list[StreamingQueryProgress]) -> tuple[float, ...]:
    return tuple(batch.durationMs["triggerExecution"] / 1000 for batch in batches)
