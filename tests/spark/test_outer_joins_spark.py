"""Outer, semi and anti joins through Spark: what comes when, and after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import plait

pytestmark = pytest.mark.spark

SECOND = 1_000_000
QUERIES = {
    "outer": "SELECT a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k",
    "chain": "SELECT a.id AS a, b.id AS b, upper(c.name) AS c FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k",
    "once": "SELECT a.id AS a FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.id > a.id)",
    "never": "SELECT a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "tally": "SELECT unix_micros(window.start) AS at, count(*) AS n, count(b.id) AS matched FROM a LEFT JOIN b "
    "ON a.k = b.k GROUP BY window(a.ts, '20 seconds')",
    "known": "SELECT a.id AS a, t.name AS name FROM a LEFT JOIN t ON a.k = t.k",
    "viewed": "SELECT a.id AS a, v.label AS label, v.next + 1 AS next FROM a LEFT JOIN v ON a.k = v.k",
}
VIEW = "SELECT k, 'seen' AS label, id + 1 AS next, ts FROM b WHERE id <> 13 AND name <> 'n14'"
SCHEMA = "id BIGINT, k BIGINT, name STRING, ts TIMESTAMP"
ROWS = {
    "a": [[(1, 1, 0), (2, 2, 1), (3, None, 2)], [(4, 1, 30)], [(5, 9, 60)]],
    "b": [[(11, 1, 3)], [(12, 1, 31), (13, 7, 32)], [(14, 9, 90)]],
    "c": [[(21, 2, 2)], [(22, 1, 33)], [(23, 9, 61)]],
}
WINDOW_S = 10


def write(directory: Path, batches: range) -> None:
    for stream, files in ROWS.items():
        (directory / stream).mkdir(parents=True, exist_ok=True)
        for batch in batches:
            pq.write_table(table(files[batch]), directory / stream / f"{batch}.parquet")


def table(rows: list[tuple[int, int | None, int]]) -> pa.Table:
    ids, keys, seconds = zip(*rows, strict=True)
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "k": pa.array(keys, pa.int64()),
        "name": pa.array([f"n{each}" for each in ids]),
        "ts": pa.array([each * SECOND for each in seconds], pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns)


def engine(spark: SparkSession, directory: Path) -> plait.Engine:
    made = plait.Engine(spark, checkpoint=str(directory / "checkpoint"))
    for stream in ROWS:
        frame = spark.readStream.name(stream).schema(SCHEMA).parquet(str(directory / stream))
        made.stream(stream, frame, time="ts", window=f"{WINDOW_S} seconds")
    made.table("t", spark.createDataFrame([(1, "one")], "k BIGINT, name STRING"))
    made.view("v", VIEW)
    for name, sql in QUERIES.items():
        made.query(name, sql, sink=plait.sinks.parquet(str(directory / "out" / name)))
    return made


def found(directory: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    results = {}
    with duckdb.connect() as connection:
        for name in QUERIES:
            files = list((directory / "out" / name).glob("*.parquet"))
            read = f"SELECT * FROM read_parquet('{directory}/out/{name}/*.parquet')"
            results[name] = Counter(connection.sql(read).fetchall() if files else [])
    return results


def expected() -> dict[str, Counter[tuple[Any, ...]]]:
    """Return what DuckDB computes over all rows with the window condition written into every ON."""
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        for stream, files in ROWS.items():
            connection.register(stream, table([row for rows in files for row in rows]))
        connection.sql("CREATE TABLE t AS SELECT 1 AS k, 'one' AS name")
        connection.sql(f"CREATE VIEW v AS {VIEW}")

        def within(*names: str) -> str:
            taus = ", ".join(f"{name}.ts" for name in names)
            return f"greatest({taus}) - least({taus}) <= INTERVAL {WINDOW_S} SECONDS"

        wanted = {
            "outer": f"{QUERIES['outer']} AND {within('a', 'b')}",
            "chain": QUERIES["chain"].replace("a.k = b.k", f"a.k = b.k AND {within('a', 'b')}")
            + f" AND {within('a', 'b', 'c')}",
            "once": QUERIES["once"].replace("b.k = a.k", f"b.k = a.k AND {within('a', 'b')}"),
            "never": f"{QUERIES['never'].replace('LEFT ANTI', 'ANTI')} AND {within('a', 'b')}",
            "known": QUERIES["known"],
            "viewed": f"{QUERIES['viewed']} AND {within('a', 'v')}",
            "tally": "SELECT epoch_us(a.ts) // 20_000_000 * 20_000_000 AS at, count(*) AS n, count(b.id) AS matched "
            f"FROM a LEFT JOIN b ON a.k = b.k AND {within('a', 'b')} GROUP BY 1",
        }
        return {name: Counter(connection.sql(sql).fetchall()) for name, sql in wanted.items()}


def test_rows_without_a_partner_come_as_the_watermark_passes_and_all_at_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, range(1))
    engine(spark, tmp_path).run_available()
    first = found(tmp_path)
    assert first["outer"] == Counter({(1, 11): 1})
    assert first["once"] == Counter({(1,): 1})
    assert first["never"] == Counter()
    assert first["known"] == Counter({(1, "one"): 1, (2, None): 1, (3, None): 1})

    write(tmp_path, range(2))
    engine(spark, tmp_path).run_available()
    second = found(tmp_path)
    assert second["outer"] == Counter({(1, 11): 1, (2, None): 1, (3, None): 1, (4, 12): 1})
    assert second["chain"] == Counter({(1, 11, None): 1, (2, None, "N21"): 1, (3, None, None): 1, (4, 12, "N22"): 1})
    assert second["tally"] == Counter({(0, 3, 1): 1})
    assert second["never"] == Counter({(2,): 1, (3,): 1})

    write(tmp_path, range(3))
    engine(spark, tmp_path).run_available(close=True)
    assert found(tmp_path) == expected()
