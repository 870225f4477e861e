"""Rows sent by tables on real Spark: the expressions that say where to, and whole runs with them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import plait
from plait.kernels.hashing import key_group_of
from plait.operators.column_names import SENT
from plait.operators.ingest.placed_rows import is_told, told_of
from plait.operators.ingest.projection import ingest_spec
from plait.plan.key_groups import Access, Generation, KeyGroupTable, Split
from plait.plan.model import KeyColumn, Requirement, Selection, Store
from plait.query.model import Column, SourceExpression, Stream
from plait.runtime.batch.streaming_query import sent_frame
from plait.runtime.inputs.loading import select_ingest
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage

pytestmark = pytest.mark.spark

HOT = 3
STREAM = Stream(name="s", time="ts", schema=tuple(Column(name=name, type="bigint") for name in ("a", "b", "v")))


def key(column: str) -> KeyColumn:
    return KeyColumn(expression=SourceExpression(sql=f"`{column}` + 0", columns=(column,)), type="bigint")


A, B = key("a"), key("b")
BIG = Selection(conjuncts=(SourceExpression(sql="`v` > 5", columns=("v",)),))
STORE = Store(
    id="s",
    source="s",
    is_table=False,
    columns=("v",),
    keys=(A, B),
    requirements=(
        Requirement(selection=Selection(), keys=(A.name,)),
        Requirement(selection=BIG, keys=(B.name,)),
    ),
    indexes=((A.name,), (B.name,)),
    partition_by=(),
    parallelism=4,
    window_us=None,
)


@pytest.mark.parametrize("spread", ["s", "other", None])
def test_spark_sends_rows_where_the_tables_say(spread: str | None, spark: SparkSession) -> None:
    splits = () if spread is None else (Split(key=HOT, spread=spread, parts=3),)
    by_a = KeyGroupTable(operators=("s by " + A.name,), groups=2, partitions=(0, 1))
    by_b = KeyGroupTable(
        operators=("s by " + B.name,), groups=3, partitions=(1, 2, 3, 0, 2, 3)[: 3 + 3 * len(splits)], splits=splits
    )
    accesses = (
        Access(store="s", key=A.name, selections=("true",)),
        Access(store="s", key=B.name, selections=(BIG.sql,)),
    )
    generation = Generation(first_batch=0, tables=(by_a, by_b), accesses=accesses, partitions=4)
    spec = ingest_spec(STREAM, (STORE,))
    rows = [(a if a % 7 else None, a % 5, a % 11, a) for a in range(300)]
    frame = spark.createDataFrame(rows, "a bigint, b bigint, v bigint, n bigint").selectExpr(
        "*", "timestamp_seconds(n) AS ts"
    )
    assert is_told(spec, generation)
    frame = sent_frame(select_ingest(frame, spec), spec, generation)
    found = frame.selectExpr("*", "spark_partition_id() AS at").toArrow()
    names = [name for name, _ in spec.projection]
    arrived = pa.table([*found.columns[: len(names)], found["sent"]], names=[*names, SENT])
    told = told_of(arrived)
    assert told.partition.tolist() == found["at"].to_pylist()
    assert int(told.is_home.sum()) == len(rows)
    keys, values = arrived[B.name].to_numpy(), arrived["v"].to_numpy()
    group = key_group_of(keys, 3)
    plain = (values > 5) & ((keys != HOT) if splits else True)
    there = Counter(zip(arrived["#tau"].to_pylist(), told.partition.tolist(), strict=True))
    assert set(there.values()) == {1}  # once to each distinct partition
    wanted, taus = np.array(by_b.partitions)[group].tolist(), arrived["#tau"].to_pylist()
    assert {(taus[row], wanted[row]) for row in np.flatnonzero(plain).tolist()} <= set(there)
    if splits:
        is_there = (told.bits & generation.bit_of(accesses[1])) != 0
        hot = Counter(taus[row] for row in np.flatnonzero((keys == HOT) & (values > 5) & is_there).tolist())
        assert set(hot.values()) == ({1} if spread == "s" else {3})


def run(spark: SparkSession, folder: Path, checkpoint: str, **options: Any) -> tuple[Counter[Any], dict[str, int]]:
    """Join three streams by two keys; return the results and what was sent and copied."""
    engine = plait.Engine(spark, checkpoint=str(folder / checkpoint), parallelism=4, **options)
    for name, schema in (("r", "a BIGINT"), ("s", "a BIGINT, b BIGINT"), ("t", "b BIGINT")):
        engine.stream(
            name,
            format="parquet",
            options={"path": str(folder / name), "maxFilesPerTrigger": "1"},
            schema=f"n BIGINT, {schema}, ts TIMESTAMP",
            time="ts",
            window="1 hour",
        )
    sql = "SELECT r.n AS rn, s.n AS sn, t.n AS tn FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b"
    query = engine.query("q", sql, sink=plait.sinks.memory())
    engine.run_available()
    found = Counter(tuple(row.values()) for row in query.results().to_pylist())
    manifest = ManifestLog(Storage.open(str(folder / checkpoint / "plait"))).latest()
    assert manifest is not None
    return found, {
        "generations": len(manifest.generations),
        "copies": sum(bucket.rows for bucket in manifest.copies),
        "homes": sum(bucket.rows for bucket in manifest.buckets),
    }


def test_a_run_with_tables_outputs_what_one_without_does(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"r": ["(id * 3) % 20 AS a"], "s": ["id % 20 AS a", "id % 13 AS b"], "t": ["(id * 5) % 13 AS b"]}
    for name, keys in columns.items():
        for part in range(2):
            frame = spark.range(part * 30, part * 30 + 30, 1, 1)
            frame.selectExpr("id AS n", *keys, "timestamp_seconds(id) AS ts").write.mode("append").parquet(
                str(tmp_path / name)
            )
    local, _ = run(spark, tmp_path, "local", routing="local")
    found, counts = run(spark, tmp_path, "sent", routing="shuffle")
    assert found == local
    assert found.total() > 100
    assert counts["generations"] == 1
    assert counts["homes"] == 180
    assert 0 < counts["copies"] <= 60  # rows of s, whose two keys want them in two partitions or in one
