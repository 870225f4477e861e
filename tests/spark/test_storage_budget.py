"""A storage budget holds for every batch, even where joins grow beyond what was estimated."""

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
from plait.runtime.batch.events import BatchEvent

pytestmark = pytest.mark.spark

BATCHES, ROWS = 8, 40
STREAMS = {"r": ("a",), "s": ("a", "b"), "t": ("b",)}
JOIN = "SELECT r.id AS r, s.id AS s, t.id AS t FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b"


def write(tmp_path: Path) -> None:
    """Write streams whose first rows hardly join, while each later row of s has a partner in r."""
    for name, keys in STREAMS.items():
        (tmp_path / name).mkdir()
        for batch in range(BATCHES):
            ids = range(batch * ROWS, (batch + 1) * ROWS)
            columns: dict[str, pa.Array] = {
                "ts": pa.array([number * 10_000 for number in ids], pa.timestamp("us", "UTC")),
                "id": pa.array(list(ids), pa.int64()),
            }
            for key in keys:
                apart = 1_000_000 if name == "s" and batch == 0 and key == "a" else 0
                columns[key] = pa.array([number % 300 + apart for number in ids], pa.int64())
            path = tmp_path / name / f"{batch:03d}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def drain(spark: Any, tmp_path: Path, budget: int | None) -> tuple[list[BatchEvent], pa.Table]:
    events: list[BatchEvent] = []
    engine = plait.Engine(spark, checkpoint=str(tmp_path / f"checkpoint-{budget}"), listener=events.append)
    engine.set_option("plait.strategy", "bushy")
    if budget is not None:
        engine.set_option("plait.storage_rows", str(budget))
    for name, keys in STREAMS.items():
        ddl = ", ".join(("ts TIMESTAMP", "id BIGINT", *(f"{key} BIGINT" for key in keys)))
        reader = spark.readStream.name(name).schema(ddl).option("maxFilesPerTrigger", 1)
        engine.stream(name, reader.parquet(str(tmp_path / name)), time="ts")
    handle = engine.query("join", JOIN, sink=plait.sinks.memory(), windows=dict.fromkeys(STREAMS, "unbounded"))
    engine.run_available()
    return events, handle.results()


def expected(tmp_path: Path) -> Counter[tuple[Any, ...]]:
    database = duckdb.connect()
    for name in STREAMS:
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{tmp_path / name}/*.parquet')")
    return Counter(database.execute(JOIN).fetchall())


def test_a_store_that_outgrows_the_budget_is_given_up_and_no_result_is_lost(spark: Any, tmp_path: Path):
    write(tmp_path)
    inputs = len(STREAMS) * BATCHES * ROWS
    freely, found = drain(spark, tmp_path, None)
    assert max(event.stored_tuples for event in freely) > inputs + 50
    assert Counter(map(tuple, found.to_pandas().itertuples(index=False))) == expected(tmp_path)

    budget = inputs + 50
    events, found = drain(spark, tmp_path, budget)
    assert max(event.stored_tuples for event in events) <= budget
    assert [event.dropped for event in events if event.dropped]
    assert Counter(map(tuple, found.to_pandas().itertuples(index=False))) == expected(tmp_path)
