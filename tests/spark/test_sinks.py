"""Every sink and every type of Spark: what can be written is read back as it was, the rest refused before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import plait
from plait.errors import OptionError, SinkError, SqlError
from plait.runtime.outputs.binding import spark_type
from plait.runtime.outputs.rejections import nullable
from plait.sinks.kinds import KINDS
from plait.sinks.storable import SparkType, arrow_problem

pytestmark = pytest.mark.spark

TYPES = {
    "nothing": "NULL",
    "truth": "true",
    "tiny": "1Y",
    "small": "2S",
    "whole": "3",
    "big": "4L",
    "single": "1.5F",
    "twofold": "2.5D",
    "money": "1.23BD",
    "wide": "CAST(1.5 AS DECIMAL(38,18))",
    "text": "'a, \"b\" ü'",
    "short": "CAST('a' AS CHAR(3))",
    "limited": "CAST('a' AS VARCHAR(3))",
    "collated": "'a' COLLATE UNICODE_CI",
    "bytes": "X'00ff'",
    "day": "DATE'2020-02-29'",
    "moment": "TIMESTAMP'2020-01-01 00:00:00.123456'",
    "local": "TIMESTAMP_NTZ'2020-01-01 00:00:00.123456'",
    "months": "INTERVAL '1-2' YEAR TO MONTH",
    "years": "INTERVAL '1' YEAR",
    "span": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "days": "INTERVAL '1' DAY",
    "calendar": "make_interval(1, 2, 3, 4, 5, 6, 7)",
    "anything": "parse_json('{\"a\": [1]}')",
    "list": "array(1, 2)",
    "empty_list": "array()",
    "named": "map('a', 1)",
    "empty_map": "map()",
    "numbered": "map(1, 'a')",
    "by_struct": "map(struct(1 AS x), 2)",
    "struct": "struct(1 AS a, 'b' AS b)",
    "odd": "named_struct('a b', 1, 'c:d', 2)",
    "twins": "struct(a.id, b.id)",
    "twins_by_case": "struct(a.id, b.id AS ID)",
    "hollow": "struct()",
    "nested": "array(struct(map('k', array(1)) AS m))",
    "bytes_inside": "array(X'00')",
    "geometry": "st_geomfromwkb(X'0101000000000000000000F03F000000000000F03F')",
}
CLOCK = "TIME'10:00:00'"
FILES = ("parquet", "csv", "json")
KEEPING = (*FILES, "memory")
BY_ALL = {"months", "years", "calendar", "empty_map", "twins"}
"""Results cannot hold these, whatever the sink."""

REFUSED = {
    "csv": {"nothing", "bytes", "anything", "list", "empty_list", "named", "numbered"}
    | {"by_struct", "struct", "odd", "twins_by_case", "hollow", "nested", "bytes_inside", "geometry"},
    "json": {"by_struct", "twins_by_case", "hollow", "geometry"},
    "parquet": {"twins_by_case", "hollow", "geometry"},
    "memory": {"anything", "geometry"},
    "foreach_arrow": {"anything", "geometry"},
}


def sink(name: str, folder: Path, **options: Any) -> Any:
    if name.startswith("foreach"):
        return getattr(plait.sinks, name)(count)
    return getattr(plait.sinks, name)(folder, **options) if name in FILES else getattr(plait.sinks, name)()


def count(rows: Any, batch: int) -> None:
    rows.count()


class Handed:
    """Tables that a function of the user's was called with, by batch."""

    def __init__(self) -> None:
        self.tables: dict[int, pa.Table] = {}

    def take(self, table: pa.Table, batch: int) -> None:
        self.tables[batch] = table


def computed(name: str) -> str:
    """A column that is NULL in every second row, and not foldable."""
    return f"CASE WHEN a.id % 2 = 0 THEN {TYPES[name]} END AS {name}"


def as_read(kind: str, type_: str) -> str:
    """Return the type to declare: keys of maps are texts in JSON, and Spark reads them as nothing else."""
    quoted = type_.replace("struct<a b:int,c:d:int>", "struct<`a b`:int,`c:d`:int>")
    return quoted.replace("map<int,", "map<string,") if kind == "json" else quoted


def texts(frame: Any) -> list[tuple[Any, ...]]:
    """Return all rows as texts, in the order of their ids."""
    shown = [
        f"hex({name})" if type_ == "binary" else "TRUE" if type_.startswith("geometry") else f"CAST({name} AS STRING)"
        for name, type_ in frame.dtypes
        if name != "id"
    ]
    return [tuple(row) for row in frame.selectExpr("id", *shown).orderBy("id").collect()]


@pytest.fixture(scope="module")
def batch(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two rows of all types that can be read and kept, in files that Spark has written."""
    folder = tmp_path_factory.mktemp("types") / "in"
    frame = (
        spark.range(4)
        .alias("a")
        .selectExpr(
            "a.id",
            "TIMESTAMP'2024-01-01' + make_dt_interval(0, 0, 0, a.id) AS ts",
            *(computed(name) for name in stored()),
        )
    )
    frame.coalesce(1).write.parquet(str(folder))
    return spark.read.parquet(str(folder)), folder


def stored() -> list[str]:
    refused = BY_ALL | REFUSED["parquet"] | {"nothing", "empty_list"}
    return [name for name in TYPES if name not in refused]


def engine(spark: Any, checkpoint: Path, batch: tuple[Any, Path]) -> plait.Engine:
    frame, folder = batch
    made = plait.Engine(spark, checkpoint=str(checkpoint))
    for alias in ("a", "b"):
        made.stream(alias, spark.readStream.name(alias).schema(frame.schema).parquet(str(folder)), time="ts")
    return made


def test_what_a_sink_cannot_give_back_is_refused_with_the_column_and_advice(
    spark: Any, tmp_path: Path, batch: Any
) -> None:
    made = engine(spark, tmp_path / "checkpoint", batch)
    for kind, names in REFUSED.items():
        for name in sorted(names):
            text = f"SELECT a.id, {computed(name)} FROM a JOIN b ON a.id = b.id"
            says = rf"column '{name}' has type .*, which {kind} cannot store; \w+"
            with pytest.raises(SqlError, match=says) as raised:
                made.query("q", text, sink=sink(kind, tmp_path / "out"))
            assert raised.value.line == 1
    for name in sorted(BY_ALL):
        with pytest.raises(SqlError, match=r"column|fields|results cannot carry"):
            made.query("q", f"SELECT a.id, {computed(name)} FROM a JOIN b ON a.id = b.id", sink=plait.sinks.noop())
    with pytest.raises(SqlError, match="time"):
        made.query("q", f"SELECT a.id, {CLOCK} AS clock FROM a", sink=plait.sinks.memory())


def test_what_a_sink_can_write_is_read_back_as_spark_computes_it(spark: Any, tmp_path: Path, batch: Any) -> None:
    """Computed by Spark over joined rows, and picked from stored ones (which tasks write to Parquet themselves)."""
    frame, _ = batch
    made = engine(spark, tmp_path / "checkpoint", batch)
    chosen: dict[str, tuple[str, list[str]]] = {}
    handles: dict[str, Any] = {}
    handed = Handed()
    for kind in (*KEEPING, "console", "noop", "foreach", "foreach_arrow"):
        refused = BY_ALL | REFUSED.get(kind, set()) | (set() if kind in KEEPING else {"geometry"})
        fit = [name for name in TYPES if name not in refused]
        ways = {"computed": [computed(name) for name in fit]}
        if kind in KEEPING:
            ways["picked"] = [f"a.{name}" for name in stored() if name in fit]
        for way, columns in ways.items():
            query = f"{kind}_{way}"
            is_handed = kind == "foreach_arrow"
            target = plait.sinks.foreach_arrow(handed.take) if is_handed else sink(kind, tmp_path / query)
            text = f"SELECT a.id, {', '.join(columns)} FROM a JOIN b ON a.id = b.id"
            handles[query] = made.query(query, text, sink=target)
            chosen[query] = (kind, columns)
    summary = made.run_available()
    assert not summary.failing
    assert dict(summary.queries) == dict.fromkeys(chosen, 4)
    frame.createOrReplaceTempView("rows_of_all_types")
    for query, (kind, columns) in chosen.items():
        if kind not in (*KEEPING, "foreach_arrow"):
            continue
        expected = spark.sql(
            f"SELECT a.id, {', '.join(columns)} FROM rows_of_all_types a JOIN rows_of_all_types b ON a.id = b.id"
        )
        if kind in ("memory", "foreach_arrow"):
            kept = handles[query].results() if kind == "memory" else pa.concat_tables(handed.tables.values())
            loose = [expected[field.name].cast(nullable(field.dataType)) for field in expected.schema.fields]
            wanted = expected.select(*loose).orderBy("id").toArrow().to_pylist()
            assert [tuple(row.values()) for row in kept.sort_by("id").to_pylist()] == [
                tuple(row.values()) for row in wanted
            ]
            continue
        schema = ", ".join(f"{name} {as_read(kind, type_)}" for name, type_ in expected.dtypes)
        found = spark.read.format(kind).schema(schema).load(str(tmp_path / query))
        assert texts(found) == texts(expected), query


def test_every_type_of_a_source_is_kept_or_refused_by_name(spark: Any) -> None:
    refused = {}
    for name, expression in TYPES.items():
        if name.startswith("twins"):
            continue
        type_: SparkType = spark_type(spark.range(0).selectExpr(f"{expression} AS c").schema[0].dataType)
        refused[name] = arrow_problem(type_) is not None
    assert {name for name, is_refused in refused.items() if is_refused} == BY_ALL - {"twins"}


@pytest.mark.parametrize("kind", FILES)
def test_partitions_are_written_as_spark_writes_them(spark: Any, tmp_path: Path, kind: str) -> None:
    rows = "VALUES (1, 'a/b'), (2, ''), (3, NULL), (4, 'x=y%z'), (5, 'ü {q}:*?'), (6, ' sp '), (7, 'a/b') AS t(id, c)"
    table = spark.sql(f"SELECT id, c, id % 2 AS odd, TIMESTAMP'2024-01-01' AS ts FROM {rows}")
    table.coalesce(1).write.parquet(str(tmp_path / "in"))
    made = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    made.stream("a", spark.readStream.name("a").schema(table.schema).parquet(str(tmp_path / "in")), time="ts")
    made.query("q", "SELECT id, c AS C, odd FROM a", sink=sink(kind, tmp_path / "out", partitionBy=["c", "ODD"]))
    assert not made.run_available().failing
    expected = table.selectExpr("id", "c AS C", "odd")
    expected.write.format(kind).partitionBy("C", "odd").save(str(tmp_path / "expected"))

    def folders(root: Path) -> set[str]:
        return {str(path.relative_to(root)) for path in root.rglob("*=*") if path.is_dir()}

    assert folders(tmp_path / "out") == folders(tmp_path / "expected")
    read = spark.read.format(kind).schema("id INT, C STRING, odd INT").load(str(tmp_path / "out"))
    reference = spark.read.format(kind).schema("id INT, C STRING, odd INT").load(str(tmp_path / "expected"))
    assert texts(read) == texts(reference)
    assert {path.name for path in (tmp_path / "out").iterdir() if path.name[0] in "_."} <= {"_plait", "_staging"}
    assert not list((tmp_path / "out" / "_staging").iterdir())


def test_what_a_sink_is_told_wrongly_is_refused_from_python_too(spark: Any, tmp_path: Path, batch: Any) -> None:
    made = engine(spark, tmp_path / "checkpoint", batch)
    with pytest.raises(OptionError, match=r"no option 'haeder', which would have no effect; did you mean 'header'"):
        plait.sinks.csv(tmp_path / "out", haeder=True)
    with pytest.raises(SqlError, match=r"partitionBy names 'regio', which is no column.*did you mean 'region'"):
        made.query("q", "SELECT a.id, 'x' AS region FROM a", sink=sink("json", tmp_path / "out", partitionBy="regio"))
    with pytest.raises(SinkError, match=r"query 'q': '.*in/x' lies inside '.*in', which stream 'a' reads"):
        made.query("q", "SELECT a.id FROM a", sink=sink("json", batch[1] / "x"))
    made.query("q", "SELECT a.id FROM a", sink=sink("json", tmp_path / "out"))
    with pytest.raises(SinkError, match="is what query 'q' writes to"):
        made.query("p", "SELECT a.id FROM a", sink=sink("csv", tmp_path / "out" / ".." / "out"))
    with pytest.raises(SinkError, match="where the checkpoint is"):
        made.query("p", "SELECT a.id FROM a", sink=sink("csv", tmp_path / "checkpoint" / "out"))
    assert set(KINDS) >= {*KEEPING}
