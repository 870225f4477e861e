import os

import pytest

from plait.errors import SqlError
from plait.query.model import Column, Connector, DeclaredStatistics, SinkSpec, Stream, Table
from plait.sql import parse_script
from plait.sql.script.reading import read_script
from plait.sql.statements import CreateQuery, CreateStream, CreateTable, DropQuery, SetOption, WindowOverride

DESIGN = """\
CREATE STREAM orders (id BIGINT, cust BIGINT, o_ts TIMESTAMP)      -- schema optional where the format carries it
  USING parquet OPTIONS (path 'in/orders', maxFilesPerTrigger '1') -- anything spark.readStream takes
  TIMESTAMP BY o_ts WINDOW INTERVAL 30 SECONDS DELAY INTERVAL 5 SECONDS;
CREATE TABLE nation USING csv OPTIONS (path 'nation.csv', header 'true');
CREATE QUERY late INTO parquet OPTIONS (path 'out/late')
  WINDOW (o INTERVAL 10 SECONDS)                                   -- overrides, per relation; optional
  AS SELECT o.id, l.qty FROM orders o, lineitem l WHERE o.id = l.oid AND l.qty > 5;
DROP QUERY late;
SET plait.strategy = ilp;
"""


def test_the_statements_of_the_reference_are_read_in_full() -> None:
    stream, table, query, drop, option = parse_script(DESIGN, base="/data")
    assert isinstance(stream, CreateStream)
    assert stream.stream == Stream(
        name="orders",
        time="o_ts",
        schema=(
            Column(name="id", type="bigint"),
            Column(name="cust", type="bigint"),
            Column(name="o_ts", type="timestamp"),
        ),
        window_us=30_000_000,
        delay_us=5_000_000,
        connector=Connector(format="parquet", options=(("path", "/data/in/orders"), ("maxFilesPerTrigger", "1"))),
    )
    assert isinstance(table, CreateTable)
    assert table.table == Table(
        name="nation", connector=Connector(format="csv", options=(("path", "/data/nation.csv"), ("header", "true")))
    )
    assert (table.line, table.column) == (4, 1)
    assert isinstance(query, CreateQuery)
    assert (query.name, query.sink) == ("late", SinkSpec(format="parquet", options=(("path", "/data/out/late"),)))
    assert query.windows == (WindowOverride(alias="o", window_us=10_000_000, line=6, column=11),)
    assert query.select == "SELECT o.id, l.qty FROM orders o, lineitem l WHERE o.id = l.oid AND l.qty > 5"
    assert (query.select_line, query.select_column) == (7, 6)
    assert drop == DropQuery(name="late", line=8, column=1)
    assert option == SetOption(name="plait.strategy", value="ilp", line=9, column=1)


def stream_of(text: str, base: str = "/data") -> Stream:
    (statement,) = parse_script(text, base=base)
    assert isinstance(statement, CreateStream)
    return statement.stream


def test_options_of_ours_are_taken_out_and_the_rest_goes_to_the_connector() -> None:
    stream = stream_of(
        "CREATE STREAM s USING kafka TIMESTAMP BY ts OPTIONS (kafka.bootstrap.servers 'h:1', RATE 1000, rows = '5e6', "
        "'distinct.a.b' '50', distinct.k '7', deadLetter 'dead', idle '30 seconds', keep 'ALL', placement 'Random', "
        "failOnDataLoss false)"
    )
    assert stream.declared == DeclaredStatistics(rate_rows_per_s=1000.0, rows=5e6, distinct=(("a.b", 50.0), ("k", 7.0)))
    assert (stream.dead_letter, stream.idle_us, stream.keep) == ("/data/dead", 30_000_000, "all")
    assert stream.placement == "random"
    assert stream.connector == Connector(
        format="kafka", options=(("kafka.bootstrap.servers", "h:1"), ("failOnDataLoss", "false"))
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("in/x", "/data/in/x"),
        ("./in/../y", "/data/y"),
        ("/abs/z", "/abs/z"),
        ("s3a://bucket/x", "s3a://bucket/x"),
        ("file:/tmp/x", "file:/tmp/x"),
        ("hdfs://n:1/a", "hdfs://n:1/a"),
        ("in/*.parquet", "/data/in/*.parquet"),
    ],
)
def test_only_paths_without_a_scheme_are_made_absolute(path: str, expected: str) -> None:
    names = ("PATH", "basePath", "sourceArchiveDir")
    options = ", ".join(f"{name} '{path}'" for name in (*names, "deadLetter"))
    stream = stream_of(f"CREATE STREAM s USING parquet OPTIONS ({options}) TIMESTAMP BY t")
    assert stream.connector is not None
    assert stream.connector.options == tuple((name, expected) for name in names)
    assert stream.dead_letter == expected


def test_a_relative_base_is_seen_from_the_working_directory() -> None:
    stream = stream_of("CREATE STREAM s USING parquet OPTIONS (path 'x') TIMESTAMP BY t", base="sub")
    assert stream.connector is not None
    assert stream.connector.options == (("path", os.path.join(os.getcwd(), "sub", "x")),)


def test_clauses_come_in_any_order_and_a_stream_has_no_window_unless_it_says_so() -> None:
    stream = stream_of("CREATE STREAM s USING rate DELAY INTERVAL 0 SECONDS TIMESTAMP BY `timestamp` OPTIONS ()")
    assert (stream.window_us, stream.delay_us, stream.time) == (None, 0, "timestamp")
    stream = stream_of("CREATE STREAM s USING rate-micro-batch TIMESTAMP BY timestamp WINDOW UNBOUNDED")
    assert (stream.window_us, stream.connector) == (None, Connector(format="rate-micro-batch"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("INTERVAL 1 HOUR 30 MINUTES", 5_400_000_000),
        ("INTERVAL '1' MINUTE", 60_000_000),
        ("INTERVAL '90 seconds'", 90_000_000),
        ("INTERVAL '1:30' HOUR TO MINUTE", 5_400_000_000),
        ("UNBOUNDED", None),
    ],
)
def test_every_way_to_write_an_interval_is_understood_in_a_script(written: str, expected: int | None) -> None:
    stream = stream_of(f"CREATE STREAM s USING rate TIMESTAMP BY t WINDOW {written} DELAY INTERVAL 1 SECOND")
    assert (stream.window_us, stream.delay_us) == (expected, 1_000_000)


def test_nothing_inside_quotes_or_comments_ends_a_statement() -> None:
    statements = parse_script(
        "/* ; -- */ SET spark.a = 'x;y'; -- CREATE; '\n"
        "CREATE QUERY `q` INTO memory AS SELECT ';', \"--;\", `a;b`, r'\\', '\\';' FROM t -- the end;\n;;\n"
        "/* a /* nested ; */ ' */ DROP QUERY q"
    )
    assert [type(statement) for statement in statements] == [SetOption, CreateQuery, DropQuery]
    query = statements[1]
    assert isinstance(query, CreateQuery)
    assert query.select == "SELECT ';', \"--;\", `a;b`, r'\\', '\\';' FROM t"


def test_a_backslash_escapes_nothing_in_a_raw_string() -> None:
    statements = parse_script("CREATE QUERY q INTO memory AS SELECT r'\\', ';', xr'\\';' FROM t; DROP QUERY q")
    assert [type(statement) for statement in statements] == [CreateQuery, DropQuery]


def test_option_values_follow_the_escapes_of_spark() -> None:
    stream = stream_of(
        r"CREATE STREAM s USING kafka OPTIONS (a 'it''s', b 'x' 'y', c '\t\\n', d r'\t', e 'é', f '\%d') TIMESTAMP BY t"
    )
    assert stream.connector is not None
    assert [value for _, value in stream.connector.options] == ["it's", "xy", "\t\\n", r"\t", "é", r"\%d"]


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("SET plait.routing=local", "plait.routing", "local"),
        ("SET plait.trigger = '1 second'", "plait.trigger", "1 second"),
        ("SET spark.sql.x = a b-c,[d]", "spark.sql.x", "a b-c,[d]"),
        ("SET `spark.y` = 1 -- why", "spark.y", "1"),
    ],
)
def test_set_takes_its_value_as_it_stands(written: str, name: str, value: str) -> None:
    (option,) = parse_script(written)
    assert isinstance(option, SetOption)
    assert (option.name, option.value) == (name, value)


def test_words_of_sql_are_fine_as_names_and_a_byte_order_mark_is_skipped() -> None:
    stream = stream_of("\ufeffCREATE STREAM select (order INT, from TIMESTAMP) USING parquet TIMESTAMP BY from")
    assert (stream.name, stream.time) == ("select", "from")


def test_a_broken_statement_does_not_hide_the_others() -> None:
    readings = read_script("CREATE STREM a; SET plait.routing = auto; CREATE TABLE t USING; SELECT 1; DROP QUERY 'x';")
    assert [reading.statement is None for reading in readings] == [True, False, True, True, True]
    assert [reading.name for reading in readings] == [None, None, "t", None, None]
    with pytest.raises(SqlError, match="STREAM, TABLE, VIEW or QUERY"):
        parse_script("CREATE STREM a")


def test_places_survive_windows_line_ends() -> None:
    statements = parse_script("-- one\r\nSET a = b;\r\n  DROP QUERY q;\r\n")
    assert [(statement.line, statement.column) for statement in statements] == [(2, 1), (3, 3)]


def test_an_empty_script_has_no_statements() -> None:
    assert parse_script(" ;; -- nothing\n") == ()
