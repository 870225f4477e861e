import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import OptionError, SinkError, SourceError, SqlError
from plait.optimizer.strategies import STRATEGIES as PLANNED
from plait.plan.strategy_names import STRATEGY_NAMES
from plait.query.model import Column, Connector, Source, Stream
from plait.sql import check_script, load_script
from plait.sql.script.set_options import OPTIONS, checked_option
from plait.sql.script.source_files import known_schema
from plait.workloads import flights

GOOD = """
CREATE STREAM s USING parquet OPTIONS (path 'in') TIMESTAMP BY TS WINDOW INTERVAL 1 HOUR;
CREATE TABLE t USING csv OPTIONS (path 't.csv', header 'true');
SET plait.routing = LOCAL;
CREATE QUERY a INTO parquet OPTIONS (path 'out/a') AS SELECT * FROM s JOIN t USING (id);
CREATE QUERY b INTO memory AS SELECT s.id FROM s;
DROP QUERY a;
CREATE QUERY c INTO parquet OPTIONS (path 'out/a') AS SELECT t.name, s.ts FROM s, t WHERE s.id = t.id;
SET spark.sql.shuffle.partitions = 2;
"""


@pytest.fixture
def base(tmp_path: Path) -> str:
    (tmp_path / "in").mkdir()
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    pq.write_table(pa.table({"id": [1], "ts": [moment]}), tmp_path / "in" / "part-0.parquet")
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (tmp_path / "t.csv").write_text("id,name\n1,x\n")
    return str(tmp_path)


def test_a_sink_in_the_checkpoint_or_around_it_is_refused_where_the_checkpoint_is_known(base: str) -> None:
    for path in ("x.checkpoint", "x.checkpoint/out", "."):
        text = f"CREATE STREAM s USING rate TIMESTAMP BY timestamp; CREATE QUERY q INTO csv OPTIONS (path '{path}')"
        text += " AS SELECT s.value FROM s;"
        (problem,) = check_script(text, base=base, checkpoint=f"{base}/x.checkpoint")
        assert (type(problem), problem.column) == (SinkError, text.index("path '") + 1)
        assert "where the checkpoint is" in problem.message
        assert check_script(text, base=base) == ()


def test_a_good_script_has_no_mistakes_and_loads_in_order(base: str) -> None:
    assert check_script(GOOD, base=base) == ()
    script = load_script(GOOD, base=base)
    assert [source.name for source in script.sources] == ["s", "t"]
    assert [query.name for query in script.queries] == ["b", "c"]
    assert [(option.name, option.value) for option in script.options] == [
        ("plait.routing", "local"),
        ("spark.sql.shuffle.partitions", "2"),
    ]
    assert script.drops == ("a",)


def test_columns_not_declared_are_read_from_the_files(base: str) -> None:
    stream, table = load_script(GOOD, base=base).sources
    assert stream.schema == (Column(name="id", type="bigint"), Column(name="ts", type="timestamp"))
    assert isinstance(stream, Stream)
    assert stream.time == "ts"
    assert table.schema == (Column(name="id", type="string"), Column(name="name", type="string"))


def test_whoever_runs_the_script_is_asked_first_for_columns_not_declared(base: str) -> None:
    asked: list[str] = []

    def schema_of(source: Source) -> tuple[Column, ...]:
        asked.append(source.name)
        extra = Column(name="name" if source.name == "t" else "ts", type="timestamp")
        return (Column(name="id", type="int"), extra)

    script = load_script(GOOD, base=base, schema_of=schema_of)
    assert asked == ["s", "t"]
    assert [source.schema and source.schema[0].type for source in script.sources] == ["int", "int"]

    def failing(source: Source) -> tuple[Column, ...]:
        raise SourceError(f"'{source.name}' is damaged")

    with pytest.raises(SourceError, match=r"2:40: 's' is damaged"):
        load_script(GOOD, base=base, schema_of=failing)


def test_every_mistake_is_found_in_order_of_appearance(base: str) -> None:
    text = """\
CREATE STREAM s USING parquet OPTIONS (path 'in', idle '1 year') TIMESTAMP BY ts WINDOW INTERVAL 0 SECONDS;
CREATE STREAM broken USING;
SELECT 1;
CREATE QUERY a INTO parquet AS SELECT nope, s.id FROM s WHERE rand() > 1;
CREATE QUERY b INTO memory AS SELECT x.y, * FROM broken x;
SET plait.nothing = 1;
DROP QUERY zzz;
CREATE QUERY c INTO memory AS SELECT 'never closed FROM s;
"""
    problems = check_script(text, file="f.sql", base=base)
    assert [(problem.line, problem.column) for problem in problems] == [
        *((1, 51), (1, 89)),
        (2, 27),
        (3, 1),
        *((4, 21), (4, 63)),
        (6, 1),
        (7, 1),
        (8, 38),
    ]
    with pytest.raises(OptionError, match=r"f\.sql:1:51: option 'idle'"):
        load_script(text, file="f.sql", base=base)


def test_queries_over_a_broken_stream_are_not_blamed_for_it(base: str) -> None:
    text = "CREATE STREAM s USING;\nCREATE QUERY q INTO memory AS SELECT a, s.b FROM s;\nDROP QUERY q;"
    assert [problem.line for problem in check_script(text, base=base)] == [1]
    text = "CREATE QUERY q INTO;\nDROP QUERY q;"
    assert [problem.line for problem in check_script(text, base=base)] == [1]


def test_what_takes_spark_to_know_is_no_mistake_when_checking(base: str) -> None:
    text = "CREATE TABLE t USING delta OPTIONS (path 'in');" + (
        "CREATE STREAM s USING rate TIMESTAMP BY timestamp;"
        "CREATE QUERY q INTO memory AS SELECT * FROM s JOIN t ON s.value = t.id;"
    )
    assert check_script(text, base=base) == ()
    with pytest.raises(SqlError, match="declare its schema"):
        load_script(text, base=base)


def test_a_stream_of_text_files_may_leave_its_columns_to_spark_if_told_so(base: str) -> None:
    text = "CREATE STREAM s USING csv OPTIONS (path 'in') TIMESTAMP BY ts;"
    assert len(check_script(text, base=base)) == 1
    assert check_script("SET spark.sql.streaming.schemaInference = true;" + text, base=base) == ()


def test_two_queries_cannot_write_to_one_directory_at_once(base: str) -> None:
    one = "CREATE STREAM s USING rate TIMESTAMP BY timestamp;\n"
    one += "CREATE QUERY a INTO parquet OPTIONS (path 'out') AS SELECT value FROM s;\n"
    two = one + "CREATE QUERY b INTO json OPTIONS (path './out') AS SELECT value FROM s;"
    (problem,) = check_script(two, base=base)
    assert (problem.line, problem.column) == (3, 35)
    assert "query 'a' writes to" in problem.message
    assert check_script(one + "DROP QUERY a;" + two.splitlines()[2], base=base) == ()


def test_names_are_taken_once(base: str) -> None:
    text = (
        "CREATE STREAM s USING rate TIMESTAMP BY timestamp;\nCREATE TABLE S (a INT) USING csv OPTIONS (path 't.csv');\n"
    )
    text += "CREATE QUERY q INTO memory AS SELECT value FROM s;\nCREATE QUERY Q INTO memory AS SELECT value FROM s;"
    assert [problem.line for problem in check_script(text, base=base)] == [2, 4]


def test_a_directory_without_permission_is_refused(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != base)
    text = "CREATE STREAM s USING rate TIMESTAMP BY timestamp;"
    text += "CREATE QUERY q INTO csv OPTIONS (path 'new/out') AS SELECT value FROM s;"
    (problem,) = check_script(text, base=base)
    assert "no permission to write" in problem.message


def test_parquet_types_are_those_spark_reads(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 1)
    arrays = {
        "i8": pa.array([1], pa.int8()),
        "u8": pa.array([1], pa.uint8()),
        "u32": pa.array([1], pa.uint32()),
        "u64": pa.array([1], pa.uint64()),
        "dec": pa.array([decimal.Decimal("1.50")], pa.decimal128(7, 2)),
        "day": pa.array([moment.date()], pa.date32()),
        "utc": pa.array([moment], pa.timestamp("us", tz="UTC")),
        "local": pa.array([moment], pa.timestamp("ms")),
        "list": pa.array([[1]], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "rec": pa.array([{"a b": 1.5}], pa.struct([("a b", pa.float32())])),
        "text": pa.array(["x"]).dictionary_encode(),
        "bin": pa.array([b"x"]),
    }
    pq.write_table(pa.table(arrays), tmp_path / "a.parquet")
    schema = known_schema(Connector(format="parquet", options=(("path", str(tmp_path)),)), is_stream=True)
    assert schema is not None
    assert [column.type for column in schema] == [
        *("tinyint", "smallint", "bigint", "decimal(20,0)", "decimal(7,2)", "date", "timestamp", "timestamp_ntz"),
        *("array<int>", "map<string,bigint>", "struct<`a b`:float>", "string", "binary"),
    ]


def test_files_without_types_spark_would_map_are_left_to_spark(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([datetime.time(1)], pa.time64("us"))}), tmp_path / "a.parquet")
    connector = Connector(format="parquet", options=(("path", str(tmp_path)),))
    assert known_schema(connector, is_stream=True) is None


def test_partitioned_directories_are_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    connector = Connector(format="parquet", options=(("path", str(tmp_path)),))
    assert known_schema(connector, is_stream=True) is None


def test_old_timestamps_of_other_writers_are_instants(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    connector = Connector(format="parquet", options=(("path", str(tmp_path / "a.parquet")),))
    assert known_schema(connector, is_stream=False) == (Column(name="t", type="timestamp"),)


def test_the_strategies_of_set_are_those_there_are() -> None:
    assert set(STRATEGY_NAMES) == set(PLANNED)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("plait.Strategy", "GREEDY", ("plait.strategy", "greedy")),
        ("plait.parallelism", "8", ("plait.parallelism", "8")),
        ("plait.compaction", "off", ("plait.compaction", "off")),
        ("plait.trigger", "2 seconds", ("plait.trigger", "2 seconds")),
        ("spark.sql.ansi.enabled", "True", ("spark.sql.ansi.enabled", "True")),
        ("spark.sql.session.timeZone", "UTC", ("spark.sql.session.timeZone", "UTC")),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", ("spark.sql.legacy.timeParserPolicy", "LEGACY")),
        *(
            (name, value, (name, value))
            for name, value in (
                ("spark.hadoop.fs.s3a.endpont", "host"),
                ("spark.sql.catalog.mine", "org.example.Catalog"),
                ("spark.sql.iceberg.handle-timestamp-without-timezone", "true"),
                ("spark.sql.autoBroadcastJoinThreshold", "10MB"),
                ("spark.executor.memory", "2g"),
            )
        ),
        ("plait.storage_rows", "0", ("plait.storage_rows", "0")),
    ],
)
def test_options_are_normalized_and_those_of_spark_pass(name: str, value: str, expected: tuple[str, str]) -> None:
    assert checked_option(name, value) == expected


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_says_what_it_expects(name: str) -> None:
    with pytest.raises(OptionError, match="expected "):
        checked_option(name, "-1 month")


def test_the_flights_workload_is_right() -> None:
    text = Path(flights.__file__).with_name("flights.sql").read_text(encoding="utf-8")
    mistakes = [problem for problem in check_script(text) if not isinstance(problem, SourceError)]
    assert mistakes == []


def test_options_of_formats_plait_does_not_know_and_of_hadoop_pass(base: str) -> None:
    script = (
        "CREATE STREAM s (ts TIMESTAMP) USING com.example.Source OPTIONS (anything 'goes') TIMESTAMP BY ts;"
        "CREATE TABLE t (id INT, name STRING) USING csv "
        "OPTIONS (path 't.csv', 'fs.s3a.endpoint' 'x', HEADER 'TRUE', Sep ',')"
    )
    assert check_script(script, base=base) == ()
