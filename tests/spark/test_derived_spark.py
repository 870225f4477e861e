"""Queries over the groups of other queries through Spark, against Spark's own answer with the groups as subqueries."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import plait

pytestmark = pytest.mark.spark

SECOND = 1_000_000
SCHEMA = "name STRING, price DECIMAL(8,2), n INT, ts TIMESTAMP"
TENS = (
    "SELECT window.start, window.end AS until, s.name, sum(s.price) AS paid, avg(s.n) AS mean, median(s.n) AS middle, "
    "max(struct(s.n, s.name)) AS most FROM sold s GROUP BY window(s.ts, '10 seconds'), s.name HAVING count(*) > 1"
)
MINUTES = (
    "SELECT window.end AS until, lower(t.name) AS name, max(t.paid) AS best, count(*) AS n FROM tens t "
    "WHERE t.name RLIKE '^[A-C]' GROUP BY window(t.until, '1 minute', '30 seconds'), lower(t.name)"
)
OVER = {
    "picked": "SELECT until, name, paid * 2 AS twice, most.n AS top FROM tens WHERE most.n > 3 AND upper(name) <> 'B'",
    "matched": "SELECT t.name, t.paid, t.middle, r.price FROM tens t JOIN refunds r ON t.name = r.name "
    "AND t.paid > r.price",
    "lonely": "SELECT t.until, t.name, r.price FROM tens t LEFT JOIN refunds r ON t.name = r.name",
    "above": "SELECT m.until, m.best, t.paid FROM minutes m JOIN tens t ON m.name = lower(t.name) AND m.best = t.paid",
}
WINDOW_S = 40


def rows_of(stream: str, batch: int) -> pa.Table:
    names = ["A", "B", "C", "D", None]
    seconds = [batch * 25 + (each * 7) % 25 for each in range(30)]
    return pa.table(
        {
            "name": pa.array([names[(each * (3 if stream == "sold" else 1) + batch) % 5] for each in range(30)]),
            "price": pa.array([each * 3 + batch for each in range(30)], pa.int64()).cast(pa.decimal128(22, 2)),
            "n": pa.array([(each * each) % 11 for each in range(30)], pa.int32()),
            "ts": pa.array([each * SECOND for each in seconds], pa.timestamp("us", tz="UTC")),
        }
    )


def write(directory: Path, batch: int) -> None:
    for stream in ("sold", "refunds"):
        (directory / stream).mkdir(parents=True, exist_ok=True)
        rows = rows_of(stream, batch)
        price = rows.column("price").cast(pa.decimal128(8, 2))
        pq.write_table(rows.set_column(1, "price", price), directory / stream / f"{batch}.parquet")


def engine(spark: SparkSession, directory: Path) -> plait.Engine:
    made = plait.Engine(spark, checkpoint=str(directory / "checkpoint"))
    for stream in ("sold", "refunds"):
        frame = spark.readStream.name(stream).schema(SCHEMA).parquet(str(directory / stream))
        made.stream(stream, frame, time="ts", window=f"{WINDOW_S} seconds")
    made.query("tens", TENS, sink=plait.sinks.noop())
    made.query("minutes", MINUTES, sink=plait.sinks.parquet(str(directory / "out" / "minutes")))
    for name, sql in OVER.items():
        windows = dict.fromkeys("tm" if name == "above" else "t", f"{WINDOW_S} seconds")
        sink = plait.sinks.parquet(str(directory / "out" / name))
        made.query(name, sql, sink=sink, windows=windows if " JOIN " in sql else None)
    return made


def counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in frame.toArrow().to_pylist())


def test_queries_over_groups_find_what_spark_does_with_subqueries(spark: SparkSession, tmp_path: Path) -> None:
    for batch in range(3):
        write(tmp_path, batch)
    engine(spark, tmp_path).run_available()
    write(tmp_path, 3)
    engine(spark, tmp_path).run_available(close=True)
    frames = {stream: spark.read.parquet(str(tmp_path / stream)) for stream in ("sold", "refunds")}
    for stream, frame in frames.items():
        frame.createOrReplaceTempView(stream)
    for name, sql in (("tens", TENS), ("minutes", MINUTES)):
        spark.sql(sql).createOrReplaceTempView(name)
    within = f"abs(timestampdiff(SECOND, {{}}, {{}})) <= {WINDOW_S}"
    wanted = {
        "minutes": MINUTES,
        "picked": OVER["picked"],
        "matched": f"{OVER['matched']} AND {within.format('t.until', 'r.ts')}",
        "lonely": f"{OVER['lonely']} AND {within.format('t.until', 'r.ts')}",
        "above": f"{OVER['above']} AND {within.format('t.until', 'm.until')}",
    }
    for name, sql in wanted.items():
        found = counted(spark.read.parquet(str(tmp_path / "out" / name)))
        assert found == counted(spark.sql(sql)), name
        assert found


def test_groups_arrive_by_themselves_while_nothing_else_does(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 0)
    made = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    frame = spark.readStream.name("sold").schema(SCHEMA).parquet(str(tmp_path / "sold"))
    made.stream("sold", frame, time="ts", window=f"{WINDOW_S} seconds")
    tens = made.query("tens", TENS, sink=plait.sinks.memory())
    paid = made.query("paid", "SELECT t.until, t.paid FROM tens t", sink=plait.sinks.memory())
    handle = made.start(trigger="100 milliseconds")
    deadline = time.monotonic() + 120
    while not paid.results().num_rows and time.monotonic() < deadline:
        time.sleep(0.1)
    handle.stop()
    assert tens.results().num_rows
    assert paid.results().to_pylist() == tens.results().select(["until", "paid"]).to_pylist()
