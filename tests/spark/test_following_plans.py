"""Plans follow the data while a run lasts, at a batch boundary or by a restart of Spark's query, and results are the
same.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.adapt import weighing
from plait.runtime.batch.events import BatchEvent
from plait.runtime.checkpoint.plan_history import history_of

pytestmark = pytest.mark.spark

BATCHES = 8
STREAMS = {"r": (("a",), 5), "s": (("a", "b"), 100), "t": (("b",), 400)}
JOIN = "SELECT r.id AS r, s.id AS s, t.id AS t FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b"


def write(tmp_path: Path) -> None:
    """Write streams of which t sends most: s is best placed by what it has in common with t."""
    for name, (keys, rows) in STREAMS.items():
        (tmp_path / name).mkdir()
        for batch in range(BATCHES):
            ids = range(batch * rows, (batch + 1) * rows)
            columns: dict[str, pa.Array] = {
                "ts": pa.array([batch * 1_000_000 + place * 1_000 for place in range(rows)], pa.timestamp("us", "UTC")),
                "id": pa.array(list(ids), pa.int64()),
            }
            for key in keys:
                columns[key] = pa.array([number * 7 % 300 for number in ids], pa.int64())
            path = tmp_path / name / f"{batch:03d}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def expected(tmp_path: Path) -> Counter[tuple[Any, ...]]:
    database = duckdb.connect()
    for name in STREAMS:
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{tmp_path / name}/*.parquet'")
    return Counter(database.sql(JOIN).fetchall())


def placed_by(engine: plait.Engine) -> tuple[str, ...]:
    """Return what s is partitioned by in the plan in force."""
    assert engine._course is not None
    return engine._course.epoch.plan.store("s").partition_by


def test_a_plan_that_places_rows_otherwise_is_taken_by_a_restart_within_the_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.setattr(weighing, "RESTART_NS", 0.0)
    events: list[BatchEvent] = []
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"), parallelism=2, listener=events.append)
    for name, (keys, _) in STREAMS.items():
        ddl = ", ".join(("ts TIMESTAMP", "id BIGINT", *(f"{key} BIGINT" for key in keys)))
        reader = spark.readStream.name(name).schema(ddl).option("maxFilesPerTrigger", 1)
        engine.stream(name, reader.parquet(str(tmp_path / name)), time="ts")
    handle = engine.query("join", JOIN, sink=plait.sinks.memory(), windows=dict.fromkeys(STREAMS, "unbounded"))
    engine.run_available()
    assert [event.batch for event in events] == list(range(BATCHES))
    assert len({event.epoch for event in events}) > 1
    assert placed_by(engine) == ("#k bigint `b`",)
    (change,) = [event.change for event in events if event.change is not None]
    assert change.restarts is not None
    entry = history_of(str(tmp_path / "checkpoint"))[-1]
    assert entry.change is not None
    assert (entry.epoch, entry.change["restart"]) == (events[-1].epoch, True)
    found = handle.results()
    assert Counter(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected(tmp_path)
