"""TIMESTAMP_NTZ in Spark: wall-clock times are what they say, in whatever time zone the session is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import plait
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import ingest_spec
from plait.plan.columns import TAU
from plait.plan.model import Requirement, Selection, Store
from plait.plan.relations import key_of
from plait.query.model import Column, Operand, SourceExpression, Stream
from plait.runtime.inputs.loading import select_ingest
from plait.state.buckets import OpenBucket
from plait.state.storage import Storage

pytestmark = pytest.mark.spark

SPRING = (datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 10, 3, 30), datetime(2024, 11, 3, 1, 30))
"""In New York the first of these does not exist, and the last is there twice."""


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_wall_clock_times_of_a_clock_change_are_told_apart(new_york: SparkSession, tmp_path: Path) -> None:
    stream = Stream(name="r", time="ts", schema=(Column(name="ts", type="timestamp_ntz"),))
    expression = SourceExpression(sql="`ts` + INTERVAL 0 SECONDS", columns=("ts",))
    key = key_of(Operand(relation="r", expression=expression, type="timestamp_ntz"), "integer")
    store = Store(
        id="r",
        source="r",
        is_table=False,
        columns=(),
        keys=(key,),
        requirements=(Requirement(selection=Selection(), keys=(key.name,)),),
        indexes=((key.name,),),
        partition_by=(),
        parallelism=1,
        window_us=None,
    )
    spec = ingest_spec(stream, (store,))
    frame = select_ingest(new_york.createDataFrame([(each,) for each in SPRING], "ts TIMESTAMP_NTZ"), spec)
    names = [name for name, _ in spec.projection]
    context = IngestContext(storage=Storage.open(str(tmp_path)), batch=0, late_before_us=None, attempt="a")
    report = ingest(frame.toArrow().rename_columns(names).to_batches(), spec, context)
    microseconds = [int((each - datetime(1970, 1, 1)).total_seconds()) * 1_000_000 for each in SPRING]
    (bucket,) = report.buckets
    opened = OpenBucket(context.storage, bucket)
    assert sorted(opened.int64(key.name).tolist()) == sorted(opened.int64(TAU).tolist()) == microseconds


def test_event_times_without_a_zone_join_by_their_order(spark: SparkSession, tmp_path: Path) -> None:
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    for name, seconds in (("a", (0, 1, 5, 7, 8)), ("b", (0, 3, 5, 6, 9))):
        (tmp_path / name).mkdir()
        times = pa.array([each * 1_000_000 for each in seconds], pa.timestamp("us"))
        pq.write_table(pa.table({"k": pa.array([1] * 5, pa.int32()), "ts": times}), tmp_path / name / "0.parquet")
        frame = spark.readStream.name(name).schema("k INT, ts TIMESTAMP_NTZ").parquet(str(tmp_path / name))
        engine.stream(name, frame, time="ts", window="1 hour")
    conditions = {
        "after": "a.k = b.k AND a.ts <= b.ts",
        "soon": "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS",
        "cast": "CAST(a.ts AS TIMESTAMP) <= b.ts",
    }
    for name, condition in conditions.items():
        engine.query(name, f"SELECT a.ts, b.ts AS t FROM a JOIN b ON {condition}", sink=plait.sinks.memory())
    assert dict(engine.run_available().queries) == dict.fromkeys(conditions, 14)
