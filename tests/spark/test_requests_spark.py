"""Queries are asked for and dropped by many threads while the engine runs: Spark's query goes on, results are right."""

from __future__ import annotations

import datetime
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from tests.spark.test_engine import wait_until

pytestmark = pytest.mark.spark

COLUMNS = {
    "id": pa.int32(),
    "small": pa.int16(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "share": pa.float64(),
    "word": pa.string(),
}
MIDNIGHT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CONDITIONS = (
    "a.id = b.id AND a.id > 3",
    "a.small = b.id AND b.small < 6",
    "a.day = b.day AND b.word LIKE 'w%'",
    "a.at = b.at AND a.word <> 'w2'",
    "a.share < b.share AND a.share > 2.5",
    "a.id = b.small AND a.day >= DATE '2026-01-03' AND a.word IN ('w4', 'w7')",
    "a.at BETWEEN b.at - INTERVAL 1 MINUTE AND b.at AND b.id BETWEEN 2 AND 4",
    "a.id = b.id AND a.word IS NULL",
)


def put(folder: Path, number: int, ids: range) -> None:
    folder.mkdir(exist_ok=True)
    times = [MIDNIGHT + datetime.timedelta(seconds=each) for each in ids]
    columns: dict[str, list[Any]] = {
        "ts": times,
        "id": list(ids),
        "small": list(ids),
        "day": [(MIDNIGHT + datetime.timedelta(days=each)).date() for each in ids],
        "at": times,
        "share": [each / 2 for each in ids],
        "word": [None if each % 3 == 0 else f"w{each}" for each in ids],
    }
    types = {"ts": pa.timestamp("us", "UTC"), **COLUMNS}
    arrays = [pa.array(columns[name], type_) for name, type_ in types.items()]
    pq.write_table(pa.table(arrays, names=list(types)), folder / f".{number}")
    (folder / f".{number}").rename(folder / f"{number}.parquet")


def test_queries_of_many_threads_begin_and_end_without_another_start_of_sparks_query(
    spark: Any, tmp_path: Path
) -> None:
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    for name in "ab":
        put(tmp_path / name, 0, range(2))
        frame = spark.readStream.name(name).schema(spark.read.parquet(str(tmp_path / name)).schema)
        engine.stream(name, frame.parquet(str(tmp_path / name)), time="ts", window="1 day", keep="all")
    first = engine.query("first", "SELECT a.id FROM a JOIN b ON a.id = b.id", sink=plait.sinks.memory())
    handle = engine.start(trigger="0 seconds")
    wait_until(lambda: len(first.results()) == 2)
    (before,) = (query.runId for query in spark.streams.active if query.name == "plait")

    def ask(number: int) -> Any:
        select = f"SELECT a.id AS left, b.id AS right FROM a JOIN b ON {CONDITIONS[number % len(CONDITIONS)]}"
        asked = engine.query(f"q{number}", select, sink=plait.sinks.memory())
        if number >= len(CONDITIONS):
            engine.drop(f"q{number}")
        return asked

    with ThreadPoolExecutor(4) as threads:
        asked = list(threads.map(ask, range(len(CONDITIONS) + 4)))
    added = asked[: len(CONDITIONS)]
    assert all(query.wait_active(60) for query in added)
    put(tmp_path / "a", 1, range(2, 10))
    put(tmp_path / "b", 1, range(2, 10))
    wait_until(lambda: len(first.results()) == 10)
    (after,) = (query.runId for query in spark.streams.active if query.name == "plait")
    handle.stop()
    assert after == before
    assert engine.status()["queries"] == ["first", *(f"q{number}" for number in range(len(CONDITIONS)))]
    for name in "ab":
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    for query, condition in zip(added, CONDITIONS, strict=True):
        # What had all arrived before is not repeated.
        text = f"SELECT a.id, b.id FROM a JOIN b ON {condition} WHERE greatest(a.id, b.id) > 1"
        expected = Counter(map(tuple, spark.sql(text).collect()))
        assert expected
        assert Counter(map(tuple, (row.values() for row in query.results().to_pylist()))) == expected, condition
