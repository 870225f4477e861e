"""Event times that are expressions: read, bound, typed and refused where they stand."""

import pytest

from plait.errors import SqlError
from plait.operators.ingest.projection import ingest_spec, tau_sql
from plait.query.model import EventTime, Stream
from plait.sql import check_script, load_script
from plait.sql.lexis.text import SourceText
from plait.sql.script.event_time import bind_event_time
from tests.unit.sql.reading import columns

COLUMNS = "id BIGINT, ms BIGINT, t STRING, head STRUCT<At: TIMESTAMP, n: INT>, ts TIMESTAMP, ntz TIMESTAMP_NTZ, d DATE"


def script(event_time: str, rest: str = "") -> str:
    return f"CREATE STREAM s ({COLUMNS}) USING mine TIMESTAMP BY {event_time} {rest}"


def bound(event_time: str) -> Stream:
    stream = Stream(name="s", time=event_time, schema=columns(COLUMNS))
    return bind_event_time(stream, SourceText(text=event_time))


@pytest.mark.parametrize("rest", ["", "WINDOW INTERVAL 1 HOUR DELAY INTERVAL 5 SECONDS", "OPTIONS (idle '5 seconds')"])
@pytest.mark.parametrize(
    ("written", "sql", "type_"),
    [
        ("timestamp_millis(ms)", "timestamp_millis(`ms`)", "timestamp"),
        ("timestamp_millis(s.MS)", "timestamp_millis(`ms`)", "timestamp"),
        ("head.at", "`head`.at", "timestamp"),
        ("s.head.At", "`head`.At", "timestamp"),
        ("to_timestamp(t, 'yyyy''WINDOW''')", "to_timestamp(`t`, 'yyyy''WINDOW''')", "timestamp"),
        ("CAST(t AS TIMESTAMP)", "CAST(`t` AS TIMESTAMP)", "timestamp"),
        ("t::timestamp_ntz", "`t`::timestamp_ntz", "timestamp_ntz"),
        ("ts + INTERVAL 1 HOUR", "`ts` + INTERVAL 1 HOUR", "timestamp"),
        ("(ntz)", "(`ntz`)", "timestamp_ntz"),
        ("to_date(t)", "to_date(`t`)", "date"),
        ("coalesce(ts, timestamp_millis(ms))", "coalesce(`ts`, timestamp_millis(`ms`))", "timestamp"),
        (
            "CASE WHEN ms > 0 THEN timestamp_millis(ms) END",
            "CASE WHEN `ms` > 0 THEN timestamp_millis(`ms`) END",
            "timestamp",
        ),
        ("array_max(array(ts))", "array_max(array(`ts`))", None),
    ],
)
def test_an_expression_is_an_event_time(written: str, sql: str, type_: str | None, rest: str) -> None:
    assert check_script(script(written, rest)) == ()
    (stream,) = load_script(script(written, rest)).sources
    assert isinstance(stream, Stream)
    assert stream.computed is not None
    assert (stream.computed.sql, stream.computed.type) == (sql, type_)
    assert bound(stream.time).computed == stream.computed


@pytest.mark.parametrize("written", ["ts", "TS", "`ts`", "ntz", "d"])
def test_a_column_is_an_event_time_whatever_its_case(written: str) -> None:
    (stream,) = load_script(script(written)).sources
    assert isinstance(stream, Stream)
    assert (stream.time, stream.computed) == (written.strip("`").lower(), None)


@pytest.mark.parametrize(
    ("marked", "says"),
    [
        ("▸ms", "write timestamp_millis(ms) if it counts milliseconds"),
        ("▸t", "write to_timestamp(t, 'yyyy-MM-dd HH:mm:ss')"),
        ("▸head", "name the field that is a time: head.field"),
        ("▸head.n", "write timestamp_millis(head.n)"),
        ("▸ms + 1", "write timestamp_millis(ms + 1)"),
        ("▸from_unixtime(ms)", "write timestamp_seconds(ms): from_unixtime makes a text"),
        ("▸from_unixtime(ms DIV 1000, 'yyyy')", "write timestamp_seconds(ms DIV 1000)"),
        ("▸nope", "is no column"),
        ("timestamp_millis(▸mss)", "did you mean 'ms'"),
        ("▸head.att", "did you mean 'At'"),
        ("▸timestamp_milis(ms)", "did you mean 'timestamp_millis'"),
        ("▸max(ts)", "aggregate"),
        ("▸now()", "use the time column"),
        ("▸timestamp_millis(5)", "depends on no column"),
        ("CAST(ms AS ▸DATETIME)", "use TIMESTAMP"),
        ("▸", "expected the time column"),
        ("▸'x'", "expected the time column"),
        ("timestamp_millis(ms) ▸WINDW INTERVAL 1 HOUR", "did you mean 'WINDOW'"),
        ("ts ▸WINDW INTERVAL 1 HOUR", "did you mean 'WINDOW'"),
        ("ts ▸WATERMARK FOR ts AS ts", "DELAY INTERVAL 5 SECONDS"),
    ],
)
def test_what_is_no_event_time_is_refused_where_it_stands(marked: str, says: str) -> None:
    text = script(marked).rstrip()
    (problem, *_) = check_script(text.replace("▸", ""))
    assert (problem.line, problem.column) == (1, text.index("▸") + 1), problem
    assert says in problem.message


def of_date(date: str) -> str:
    days = f"unix_date({date})"
    bounded = f"{days} BETWEEN -106751991 AND 106751991 THEN {days} * 86400000000L"
    return f"CASE WHEN {bounded} WHEN {days} IS NOT NULL THEN 9223372036854775807L END"


@pytest.mark.parametrize(
    ("written", "tau"),
    [
        ("timestamp_millis(ms)", "unix_micros(CAST(timestamp_millis(`ms`) AS TIMESTAMP))"),
        ("to_timestamp(t, 'yyyy')", "unix_micros(CAST(try_to_timestamp(`t`, 'yyyy') AS TIMESTAMP))"),
        ("CAST(t AS DATE)", of_date("try_CAST(`t` AS DATE)")),
        ("head.at", "unix_micros(CAST(`head`.at AS TIMESTAMP))"),
        ("ts", "unix_micros(CAST(`ts` AS TIMESTAMP))"),
        ("d", of_date("`d`")),
    ],
)
def test_a_text_that_cannot_be_read_is_a_bad_record_and_no_failure(written: str, tau: str) -> None:
    assert tau_sql(bound(written)) == tau


def test_a_computed_event_time_needs_no_stored_column() -> None:
    spec = ingest_spec(bound("timestamp_millis(ms)"), ())
    assert spec.aliases == ()
    assert [name for name, _ in spec.projection] == ["#tau"] or len(spec.projection) == 1


def test_an_event_time_is_bound_again_to_what_it_was() -> None:
    stream = bound("timestamp_millis(MS)")
    assert stream.computed == EventTime(sql="timestamp_millis(`ms`)", columns=("ms",), type="timestamp")
    assert bind_event_time(stream, SourceText(text=stream.time)) == stream


def test_without_columns_nothing_is_said_of_an_event_time() -> None:
    with pytest.raises(SqlError, match="is no column"):
        bind_event_time(Stream(name="s", time="x", schema=()), SourceText(text="x"))
    assert check_script("CREATE STREAM s USING mine TIMESTAMP BY to_timestamp(value, 'x')") == ()
