"""Every format of sources and every type of Spark, in SELECT, WHERE and as join key: what works gives what Spark's
batch engine gives, what does not is refused with a place and a way out. All of it shares one session and few runs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType, TimestampNTZType

import plait
from plait.errors import OptionError, PlaitError, SourceError, SqlError
from plait.query.types import is_key_type
from plait.runtime.outputs.arrow_schemas import arrow_schema
from plait.sql import check_script, load_script

pytestmark = pytest.mark.spark


def bag(frame: DataFrame) -> Counter[str]:
    return Counter(str(row.asDict(recursive=True)) for row in frame.collect())


# -- formats -----------------------------------------------------------------------------------------------------------

FORMATS = ("csv", "json", "parquet", "orc", "xml")
COLUMNS = "Id BIGINT, Name STRING, Score DOUBLE, At TIMESTAMP"
ROWS = """VALUES (1L, 'ann', 1.5D, TIMESTAMP'2024-01-01 00:00:01'), (2L, NULL, NULL, TIMESTAMP'2024-01-01 00:00:02'),
    (2L, 'Bob, "x"', -2.0D, TIMESTAMP'2024-01-01 00:00:03') AS t(Id, Name, Score, At)"""


def source(format_: str, *, is_stream: bool, declared: bool = True) -> str:
    options = {"csv": ", header 'true'", "xml": ", rowTag 'row'"}.get(format_, "")
    kind = "STREAM" if is_stream else "TABLE"
    name = f"{'s' if is_stream else 't'}_{format_}" + ("" if declared else "_found")
    columns = f" ({COLUMNS})" if declared else ""
    infer = ", inferSchema 'true'" if not declared and format_ in ("csv", "xml") else ""
    time = " TIMESTAMP BY AT WINDOW INTERVAL 1 HOUR" if is_stream else ""
    return f"CREATE {kind} {name}{columns} USING {format_} OPTIONS (path 'in/{format_}'{options}{infer}){time};"


@pytest.fixture(scope="module")
def formats(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script over every format, run once: its results in `out/<query>`."""
    base = tmp_path_factory.mktemp("formats")
    rows = spark.sql(f"SELECT * FROM {ROWS}").coalesce(1)
    for format_ in FORMATS:
        options = {"csv": {"header": "true"}, "xml": {"rowTag": "row"}}.get(format_, {})
        rows.write.format(format_).options(**options).save(f"{base}/in/{format_}")
    lines = [source(format_, is_stream=True) for format_ in FORMATS]
    lines += [source(format_, is_stream=False) for format_ in FORMATS]
    lines += [source(format_, is_stream=False, declared=False) for format_ in FORMATS]
    lines += [source(format_, is_stream=True, declared=False) for format_ in ("parquet", "orc")]
    for query, select in FORMAT_QUERIES.items():
        lines.append(f"CREATE QUERY {query} INTO parquet OPTIONS (path 'out/{query}') AS {select};")
    script = "\n".join(lines)
    assert check_script(script, base=str(base)) == ()
    engine = plait.Engine(spark, checkpoint=f"{base}/checkpoint")
    engine.load(load_script(script, base=str(base)))
    engine.run_available()
    return base


FORMAT_QUERIES = {
    **{f"star_{format_}": f"SELECT * FROM s_{format_}" for format_ in FORMATS},
    **{
        f"case_{format_}": f"SELECT S.ID, upper(S.NAME) AS shout FROM S_{format_} s WHERE s.SCORE > -5 OR s.ID > 0"
        for format_ in FORMATS
    },
    **{
        f"join_{format_}": f"SELECT a.*, b.NAME AS other FROM s_{format_} a JOIN t_{format_} b ON a.ID = b.id"
        for format_ in FORMATS
    },
    **{
        f"found_{format_}": f"SELECT t.NAME, t.score, a.iD FROM s_{format_} a JOIN t_{format_}_found t USING (id)"
        for format_ in FORMATS
    },
    **{
        f"found_stream_{format_}": f"SELECT ID, name FROM s_{format_}_found WHERE ID > 1"
        for format_ in ("parquet", "orc")
    },
}


@pytest.mark.parametrize("query", FORMAT_QUERIES)
def test_every_format_gives_what_batch_gives_whatever_the_case_of_names(
    spark: SparkSession, formats: Path, query: str
) -> None:
    rows = spark.sql(f"SELECT * FROM {ROWS}")
    select = FORMAT_QUERIES[query]
    for format_ in FORMATS:
        for name in (f"S_{format_}", f"s_{format_}_found", f"t_{format_}_found", f"s_{format_}", f"t_{format_}"):
            select = select.replace(f" {name} ", " {rows} ").replace(f" {name}", " {rows}")
    expected = spark.sql(select, rows=rows)
    found = spark.read.schema(expected.schema).parquet(f"{formats}/out/{query}")
    assert bag(found) == bag(expected)


# -- types -------------------------------------------------------------------------------------------------------------

TYPES = {
    "boolean": ("true", "false"),
    "tinyint": ("1Y", "-2Y"),
    "smallint": ("1S", "-2S"),
    "int": ("1", "-2"),
    "bigint": ("1L", "-9223372036854775807L"),
    "float": ("1.5F", "CAST('NaN' AS FLOAT)"),
    "double": ("1.5D", "-0.0D"),
    "decimal(10,2)": ("1.50BD", "-2.00BD"),
    "decimal(38,18)": ("1.5BD", "-2BD"),
    "string": ("'x'", "'é'"),
    "binary": ("X'00FF'", "X''"),
    "date": ("DATE'2024-01-01'", "DATE'1969-12-31'"),
    "timestamp": ("TIMESTAMP'2024-01-01 00:00:00.000001'", "TIMESTAMP'1969-12-31 23:59:59'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'", "TIMESTAMP_NTZ'1969-12-31 23:59:59'"),
    "interval day to second": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1' DAY"),
    "interval year to month": ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1' MONTH"),
    "array<int>": ("array(1, NULL)", "array()"),
    "map<string,int>": ("map('a', 1)", "map()"),
    "struct<`A b`:int,c:array<string>>": ("named_struct('A b', 1, 'c', array('x'))", "NULL"),
    "array<struct<x:double>>": ("array(named_struct('x', 1D))", "NULL"),
}
"""Types that Parquet keeps, with two values of each. Others can only be computed, and are looked at below."""

MONTHS = "interval year to month"
"""No result can have it."""

NAMES = {type_: f"c{position}" for position, type_ in enumerate(TYPES)}
KEYS = [type_ for type_ in TYPES if is_key_type(type_)]
NO_KEYS = [type_ for type_ in TYPES if not is_key_type(type_)]


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[plait.Engine, DataFrame]:
    """Two streams over rows with a column of every type, and a query for each use of each."""
    base = tmp_path_factory.mktemp("types")
    rows = [
        f"SELECT {number}L AS id, TIMESTAMP'2024-01-01 00:00:0{number}' AS ts, "
        + ", ".join(f"CAST({value(type_, number)} AS {type_}) AS {name}" for type_, name in NAMES.items())
        for number in range(4)
    ]
    spark.sql(" UNION ALL ".join(rows)).coalesce(1).write.parquet(f"{base}/in")
    table = spark.read.parquet(f"{base}/in")
    engine = plait.Engine(spark, checkpoint=f"{base}/checkpoint")
    for name in ("a", "b"):
        stream = spark.readStream.name(name).schema(table.schema).parquet(f"{base}/in")
        engine.stream(name, stream, time="ts", window="1 hour")
    for query, select in TYPE_QUERIES.items():
        engine.query(query, select, sink=plait.sinks.memory())
    assert engine.run_available().failing == ()
    return engine, table


def value(type_: str, number: int) -> str:
    """Return the first value twice, the second one, NULL."""
    return (*TYPES[type_], TYPES[type_][0], "NULL")[number]


TYPE_QUERIES = {
    "every": f"SELECT {', '.join(name for type_, name in NAMES.items() if type_ != MONTHS)} FROM a",
    **{f"where_{NAMES[type_]}": f"SELECT a.id FROM a WHERE a.{NAMES[type_]} IS NOT NULL" for type_ in TYPES},
    **{
        f"is_{NAMES[type_]}": f"SELECT a.id FROM a WHERE a.{NAMES[type_]} = {TYPES[type_][0]} AND a.id < 9"
        for type_ in KEYS
    },
    **{
        f"key_{NAMES[type_]}": f"SELECT a.id, b.id AS other FROM a JOIN b ON a.{NAMES[type_]} = b.{NAMES[type_]}"
        for type_ in KEYS
    },
    "row": "SELECT a.id, b.id AS other FROM a JOIN b ON (a.c3, a.c9) = (b.c3, b.c9)",
    "nothing": "SELECT a.id, NULL AS n, array() AS e, array(NULL) AS f, map('a', NULL) AS g FROM a",
    "odd": "SELECT a.id, named_struct('a b', 1, 'c`d', 2) AS s, INTERVAL 1 DAY AS i FROM a",
}


@pytest.mark.parametrize("query", [query for query in TYPE_QUERIES if query != "nothing"])
def test_every_type_gives_what_batch_gives(
    spark: SparkSession, typed: tuple[plait.Engine, DataFrame], query: str
) -> None:
    engine, table = typed
    expected = spark.sql(TYPE_QUERIES[query].replace("FROM a", "FROM {t} a").replace("JOIN b", "JOIN {t} b"), t=table)
    found = engine.results(query)
    assert found.column_names == expected.columns
    assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.toArrow().to_pylist()))


def test_what_has_no_type_but_nothing_is_kept_too(typed: tuple[plait.Engine, DataFrame]) -> None:
    """Spark itself cannot hand an empty array of nothing to Arrow, so the right rows are written out."""
    expected = [{"id": id_, "n": None, "e": [], "f": [None], "g": [("a", None)]} for id_ in range(4)]
    assert sorted(typed[0].results("nothing").to_pylist(), key=lambda row: row["id"]) == expected


REFUSED = (
    *(
        (f"SELECT a.id FROM a JOIN b ON ▸a.{NAMES[type_]} = b.{NAMES[type_]}", "cannot be a join key", True)
        for type_ in NO_KEYS
    ),
    *(
        (f"SELECT a.id FROM a WHERE ▸a.{NAMES[type_]}", "must be true or false", True)
        for type_ in TYPES
        if type_ != "boolean"
    ),
    ("SELECT ▸INTERVAL '1' YEAR AS i FROM a", "months have no fixed length", True),
    ("SELECT ▸make_interval(1) AS i FROM a", "months have no fixed length", True),
    ("SELECT struct(a.id, ▸b.id) AS s FROM a JOIN b ON a.id = b.id", "struct(a.id AS field1, b.id AS field2)", True),
    ("SELECT a.id, ▸CAST(a.ts AS TIME(3)) AS t FROM a", "CAST(... AS STRING)", True),
    ("▸SELECT array(TIME'10:00:00') AS t FROM a", "CAST(... AS STRING)", False),
    ("▸SELECT map() AS m FROM a", "give it one", False),
    ("SELECT a.id, ▸length(a.c9, 1) FROM a", "length", False),
    ("SELECT a.id FROM a JOIN b ON a.id = b.id AND ▸a.c15 > 1", "incompatible types", False),
    ("SELECT a.id FROM a JOIN b ON ▸CAST(a.c9 AS STRING COLLATE UNICODE_CI) = b.c9", "lower(CAST(x AS STRING))", True),
)


@pytest.mark.parametrize(("marked", "says", "without_spark"), REFUSED)
def test_what_does_not_work_is_refused_at_its_place(
    typed: tuple[plait.Engine, DataFrame], marked: str, says: str, without_spark: bool
) -> None:
    engine, _ = typed
    column = marked.index("▸") + 1
    with pytest.raises(SqlError) as raised:
        engine.query("refused", marked.replace("▸", ""), sink=plait.sinks.memory())
    assert (raised.value.line, raised.value.column) == (1, column), raised.value
    assert says in raised.value.message
    ddl = ", ".join(f"{name} {type_}" for name, type_ in (("id", "bigint"), ("ts", "timestamp"), *DECLARED))
    sources = "".join(f"CREATE STREAM {name} ({ddl}) USING mine TIMESTAMP BY ts WINDOW UNBOUNDED;\n" for name in "ab")
    problems = check_script(f"{sources}CREATE QUERY q INTO memory AS\n{marked.replace('▸', '')}")
    assert [(problem.line, problem.column) for problem in problems][:1] == ([(4, column)] if without_spark else [])


DECLARED = [(name, type_) for type_, name in NAMES.items()]


# -- event time --------------------------------------------------------------------------------------------------------


def test_event_time_may_be_any_expression(spark: SparkSession, tmp_path: Path) -> None:
    rows = """VALUES (1L, 1704067200000L, '2024-01-01 00:00:00', named_struct('At', TIMESTAMP'2024-01-01 00:00:00')),
        (2L, 1704067203000L, '2024-01-01 00:00:03', named_struct('At', TIMESTAMP'2024-01-01 00:00:03')),
        (3L, 1704067290000L, '2024-01-01 00:01:30', named_struct('At', TIMESTAMP'2024-01-01 00:01:30')),
        (4L, NULL, 'no time', NULL) AS t(id, ms, t, head)"""
    spark.sql(f"SELECT * FROM {rows}").coalesce(1).write.parquet(f"{tmp_path}/in")
    times = {
        "a": "timestamp_millis(ms)",
        "b": "head.at",
        "c": "to_timestamp(t, 'yyyy-MM-dd HH:mm:ss')",
        "d": "CAST(t AS TIMESTAMP_NTZ)",
    }
    forgiven = {
        "e": "t::timestamp - INTERVAL 1 SECOND",
        "f": "coalesce(to_timestamp(t), head.at)",
        "g": "date_trunc('SECOND', CAST(t AS TIMESTAMP))",
    }
    script = "".join(
        f"CREATE STREAM {name} USING parquet OPTIONS (path 'in') TIMESTAMP BY {time} WINDOW INTERVAL 5 SECONDS;"
        for name, time in (times | forgiven).items()
    )
    script += "".join(f"CREATE QUERY q{name} INTO memory AS SELECT id FROM {name};" for name in forgiven)
    ids = ", ".join(f"{name}.id AS {name}" for name in times)
    rising = "a.id <= b.id AND b.id <= c.id AND c.id <= d.id"
    script += f"CREATE QUERY q INTO memory AS SELECT {ids} FROM a, b, c, d WHERE {rising};"
    script += (
        "CREATE QUERY band INTO memory AS SELECT a.id AS a, b.id AS b FROM a JOIN b "
        "ON timestamp_millis(a.ms) BETWEEN b.head.at AND b.head.at + INTERVAL 3 SECONDS"
    )
    engine = plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint")
    engine.load(load_script(script, base=str(tmp_path)))
    summary = engine.run_available()
    near = {1: (1, 2), 2: (1, 2), 3: (3,)}
    expected = [(a, b, c, d) for a in near for b in near[a] for c in near[a] for d in near[a] if a <= b <= c <= d]
    assert sorted(tuple(row.values()) for row in engine.results("q").to_pylist()) == sorted(expected)
    assert sorted(tuple(row.values()) for row in engine.results("band").to_pylist()) == [(1, 1), (2, 1), (2, 2), (3, 3)]
    for name in forgiven:
        assert sorted(engine.results(f"q{name}").column("id").to_pylist()) == [1, 2, 3]
    assert summary.bad == 7


def test_event_time_of_a_frame_may_be_an_expression(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT 1L AS id, 1704067200000L AS ms").write.parquet(f"{tmp_path}/in")
    engine = plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint")

    def frame(name: str) -> DataFrame:
        return spark.readStream.name(name).schema("id BIGINT, ms BIGINT").parquet(f"{tmp_path}/in")

    engine.stream("a", frame("a"), time="timestamp_millis(MS)", distinct={"ID": 5})
    for wrong, says in (
        ("ms", "write timestamp_millis"),
        ("timestamp_milis(ms)", "did you mean"),
        ("from_unixtime(ms)", "has type string"),
        ("element_at(array(ms), 1)", "has type bigint"),
    ):
        with pytest.raises(OptionError, match=says):
            engine.stream("b", frame("b"), time=wrong)
    engine.query("q", "SELECT A.ID FROM a WHERE Ms > 0", sink=plait.sinks.memory())
    engine.run_available()
    assert engine.results("q").to_pylist() == [{"ID": 1}]


# -- options and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("plait.parallelism", "0", "from 1"),
        ("plait.capacity", 0, "above zero"),
        ("plait.gap", 2, "a share from 0 to 1"),
        ("plait.compaction", "maybe", "true, false"),
        ("plait.storage_rows", -1, "at least 0"),
        ("plait.strategy", "best", "expected fixed"),
        ("plait.routng", "local", "did you mean"),
        ("spark.sql.session.timeZone", "Europe/Rome", "needs UTC"),
        ("spark.sql.ansi.enabled", False, "needs true"),
        ("spark.executor.memory", "1g", "when the session is built"),
    ],
)
def test_python_takes_the_options_a_script_takes(
    spark: SparkSession, tmp_path: Path, name: str, value: str | float, says: str
) -> None:
    engine = plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint")
    with pytest.raises(OptionError, match=says):
        engine.set_option(name, value)
    engine.set_option("plait.storage_rows", 0)
    engine.set_option("plait.compaction", False)
    with pytest.raises(OptionError, match="expected"):
        plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint", parallelism=0)


def test_files_that_do_not_fit_are_told_with_what_was_expected(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in (("swapped", "ts,id\n2024-01-01,1\n"), ("longer", "id,ts,x\n1,2024-01-01,2\n")):
        (tmp_path / name).mkdir()
        stream = "CREATE STREAM s (id BIGINT, ts TIMESTAMP) USING csv"
        script = f"{stream} OPTIONS (path '{name}', header 'true') TIMESTAMP BY ts;"
        loaded = load_script(f"{script} CREATE QUERY q INTO memory AS SELECT * FROM s", base=str(tmp_path))
        engine = plait.Engine(spark, checkpoint=f"{tmp_path}/{name}.checkpoint")
        engine.load(loaded)
        (tmp_path / name / "1.csv").write_text(text)
        with pytest.raises(SourceError, match=f"the header of '{tmp_path}/{name}/1.csv'.*expected"):
            engine.run_available()


def test_a_source_that_is_missing_is_told_by_its_path(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = "CREATE STREAM s (id BIGINT, ts TIMESTAMP) USING json OPTIONS (path 'gone') TIMESTAMP BY ts"
    loaded = load_script(script, base=str(tmp_path))
    (tmp_path / "gone").rmdir()
    engine = plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint")
    with pytest.raises(PlaitError, match=f"stream 's' cannot be read: the path '{tmp_path}/gone' does not exist"):
        engine.load(loaded)


@pytest.mark.parametrize(
    ("connector", "columns", "options"),
    [
        ("delta", "", "path '{0}'"),
        ("kafka", "", "kafka.bootstrap.servers 'localhost:1', subscribe 'topic'"),
        ("org.example.nowhere", "(id BIGINT, ts TIMESTAMP)", "path 'in'"),
    ],
)
def test_a_connector_that_is_missing_is_named(
    spark: SparkSession, tmp_path: Path, connector: str, columns: str, options: str
) -> None:
    time = "timestamp" if connector == "kafka" else "ts"
    given = options.format(tmp_path)
    script = f"CREATE STREAM s {columns} USING {connector} OPTIONS ({given}) TIMESTAMP BY {time}"
    engine = plait.Engine(spark, checkpoint=f"{tmp_path}/checkpoint")
    with pytest.raises(SourceError, match=f"stream 's' cannot be read: this Spark has no data source '{connector}'"):
        engine.load(load_script(script))


def test_a_type_that_spark_was_asked_about_is_known_in_any_schema(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddl = "a BIGINT, b ARRAY<STRUCT<x: TIMESTAMP, y: STRING>>, c MAP<STRING, DECIMAL(10, 2)>, d TIMESTAMP_NTZ NOT NULL"
    schema = StructType.fromDDL(f"{ddl}, e DATE COMMENT 'a day'")
    frame = spark.createDataFrame([], StructType([*schema.fields[:3], StructField("d", TimestampNTZType())]))
    expected = frame.toArrow().schema
    assert arrow_schema(spark, schema).remove(4) == expected
    assert arrow_schema(spark, schema).field("e").metadata == {b"SPARK::metadata::json": b'{"comment": "a day"}'}
    monkeypatch.setattr(type(spark), "range", lambda *_: pytest.fail("it is known"))
    again = StructType.fromDDL("k TIMESTAMP_NTZ, l ARRAY<STRUCT<x: TIMESTAMP, y: STRING>>, m BIGINT")
    other = arrow_schema(spark, again)
    assert other.names == ["k", "l", "m"]
    assert other.types == [expected.field(name).type for name in ("d", "b", "a")]
