"""What tasks compute of values by themselves, hashes of keys and which of hundreds of selections hold, is what Spark
computes.
"""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import plait
from plait.operators.ingest.hashes import HASHED, spark_hash
from plait.query.model import Column
from tests.property.drawn_selections import COLUMNS, KINDS, drawn_rows, drawn_selection
from tests.property.values import BY_NAME
from tests.unit.operators.ingest.test_indexing import holding, selection

pytestmark = pytest.mark.spark


def ddl(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)


def decimals(rng: random.Random, count: int) -> tuple[tuple[Column, ...], dict[str, pa.Array]]:
    """Return a column of decimals of every precision."""
    columns, arrays = [], {}
    for precision in range(1, 39):
        scale, largest = precision // 3, 10**precision - 1
        unscaled = [0, 1, -1, largest, -largest, 2**62, -(2**63), 255, 256, -128, -129, 2**64, -(2**64)]
        unscaled += [rng.randint(-largest, largest) for _ in range(count)]
        values = [Decimal(f"{each}E-{scale}") for each in unscaled if abs(each) <= largest][: count - 1]
        values += [Decimal(0)] * (count - 1 - len(values))
        columns.append(Column(name=f"p{precision}", type=f"decimal({precision},{scale})"))
        arrays[f"p{precision}"] = pa.array([*values, None], pa.decimal128(precision, scale))
    return tuple(columns), arrays


def test_hashes_of_keys_of_every_type_are_sparks(spark: SparkSession) -> None:
    rng = random.Random(3)
    rows = drawn_rows(rng, 210)
    texts = ["".join(rng.choice("aé🎈\x00 ") for _ in range(length)) for length in range(101)]
    columns, arrays = decimals(rng, 210)
    columns += (Column(name="texts", type="string"), Column(name="bytes", type="binary"))
    arrays["texts"] = pa.array([*texts, *[None] * 109])
    arrays["bytes"] = pa.array([*[rng.randbytes(length) for length in range(101)], *[None] * 109])
    table = pa.table({**{name: rows[name] for name in rows.column_names}, **arrays})
    columns = (*COLUMNS, *columns)
    handed = spark.createDataFrame(table, ddl(columns)).coalesce(1)
    hashed = [column for column in columns if HASHED.fullmatch(column.type)]
    assert len(hashed) == 38 + 2 + 12
    sql = "CASE WHEN `{0}` IS NULL THEN NULL ELSE xxhash64(CAST((`{0}`) AS {1})) END AS `h {0}`"
    found = handed.selectExpr("*", *(sql.format(column.name, column.type.upper()) for column in hashed)).toArrow()
    for column in hashed:
        ours = spark_hash(found[column.name].combine_chunks())
        assert ours.equals(found[f"h {column.name}"].combine_chunks()), column


def test_hundreds_of_selections_of_every_type_hold_where_spark_says_so(spark: SparkSession) -> None:
    rng = random.Random(11)
    rows = drawn_rows(rng, 150)
    selections = [selection(*drawn_selection(rng)) for _ in range(250)]
    # Constants that no float is equal to are compared with floats as doubles.
    selections += [selection(f"`c_r` {kind} 0.1") for kind in ("<", ">=", "=")]
    types = ", ".join(f"`c_{kind}` {BY_NAME[kind].spark}" for kind in KINDS)
    handed = spark.createDataFrame(rows, types).coalesce(1)
    asked = (f"({each.sql}) IS TRUE AS w{place}" for place, each in enumerate(selections))
    found = handed.selectExpr("*", *asked).toArrow()
    ours = holding(selections, found)
    assert len(ours) > 140
    for place, holds in ours.items():
        assert holds == found[f"w{place}"].to_pylist(), selections[place].sql


def test_queries_with_many_selections_have_the_rows_that_spark_selects(spark: SparkSession, tmp_path: Path) -> None:
    columns = "k BIGINT, s STRING, d DECIMAL(10,2), ts TIMESTAMP"
    rows = "id AS k, concat('t', id % 7) AS s, CAST(id % 9 - 0.5 AS DECIMAL(10,2)) AS d, TIMESTAMP'2024-01-01' AS ts"
    spark.sql(f"SELECT {rows} FROM range(40)").coalesce(1).write.parquet(str(tmp_path / "in"))
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    engine.stream(
        "a", format="parquet", options={"path": str(tmp_path / "in")}, schema=columns, time="ts", window="1 hour"
    )
    conditions = [f"s > 't{number}' AND d <= {number}.50" for number in range(6)]
    conditions += [
        "k BETWEEN 3 AND 30",
        "k IN (1, 5, NULL)",
        "s = 't3'",
        "NOT (s <> 't2')",
        "d IS NULL OR d < 0",
        "k % 3 = 1",
    ]
    for number, condition in enumerate(conditions):
        join = f"SELECT a.k AS l, b.k AS r FROM a a JOIN a b ON a.s = b.s AND a.d = b.d WHERE {_of('a', condition)}"
        engine.query(f"q{number}", f"{join} AND b.k > 9", sink=plait.sinks.memory())
    engine.run_available()
    assert engine._course is not None
    assert [(spec.source, spec.selections) for spec in engine._course.running] == [("a", ("(`k` % 3 = 1)",))]
    spark.read.parquet(str(tmp_path / "in")).createOrReplaceTempView("rows_of_a")
    for number, condition in enumerate(conditions):
        join = (
            f"SELECT a.k, b.k FROM rows_of_a a JOIN rows_of_a b ON a.s = b.s AND a.d = b.d WHERE {_of('a', condition)}"
        )
        wanted = sorted(tuple(row) for row in spark.sql(f"{join} AND b.k > 9").collect())
        found = engine.results(f"q{number}")
        assert sorted(zip(found["l"].to_pylist(), found["r"].to_pylist(), strict=True)) == wanted, condition


def _of(alias: str, condition: str) -> str:
    return "(" + re.sub(r"\b([ksd])\b(?!')", rf"{alias}.\1", condition) + ")"
