"""Queries that group by windows of event time, against Spark's own batch engine: names, types and values."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import OptionError, PlaitError, SqlError
from plait.query.time_windows import TimeWindow
from tests.oracle.compare import difference, table_rows

pytestmark = pytest.mark.spark

SECOND = 1_000_000
READINGS = """
    ts TIMESTAMP, k BIGINT, name STRING, x DOUBLE, f FLOAT, small TINYINT, price DECIMAL(10, 2), wide DECIMAL(38, 4),
    flag BOOLEAN, day DATE, odd STRUCT<a: INT, b: STRING>
"""
WINDOW = "window(r.ts, '10 seconds')"
ONE_STREAM = {
    "counts": f"""
        SELECT window.start, window.end AS until, r.k, count(*) AS n, count(r.x), count(DISTINCT r.name, r.flag),
          count_if(r.flag), approx_count_distinct(r.name) AS about FROM r GROUP BY {WINDOW}, r.k
    """,
    "sums": f"""
        SELECT {WINDOW} AS w, sum(r.small) AS small, sum(r.x) AS x, sum(r.f), sum(r.price) AS price, sum(r.wide),
          avg(r.small), avg(r.price) AS mean, avg(r.x), try_sum(r.k) FROM r GROUP BY 1
    """,
    "extremes": f"""
        SELECT r.name, min(r.x), max(r.x), min(r.name), max(r.day) AS day, max(r.ts), bool_and(r.flag), max(r.odd),
          bit_or(r.small) FROM r GROUP BY {WINDOW}, r.name
    """,
    "spreads": f"""
        SELECT round(stddev(r.small), 9) AS s, round(variance(r.price), 9), round(var_pop(r.k), 9), median(r.small),
          percentile(r.small, array(0.25, 0.5)), round(corr(r.k, r.small), 9) FROM r GROUP BY {WINDOW}, r.flag
    """,
    "hopping": """
        SELECT window.start AS at, lower(r.name) AS name, count(*) FILTER (WHERE r.k > 2) AS n, max(r.k) - min(r.k)
        FROM r WHERE r.k > 0 GROUP BY window(r.ts, '9 seconds', '3 seconds', '1 second'), lower(r.name)
        HAVING count(*) > 1 AND n >= 0
    """,
    "keys": f"SELECT r.x, r.f, r.price, r.day, count(*) FROM r GROUP BY {WINDOW}, r.x, r.f, r.price, r.day",
    "sets": f"""
        SELECT window.end, r.k, r.name AS name, grouping(r.name) AS g, grouping_id() AS id, count(*), sum(r.k) AS k2
        FROM r GROUP BY {WINDOW}, CUBE (r.k, r.name)
    """,
    "rollup": f"""
        SELECT r.k % 2 AS parity, r.flag, max(r.small) AS m, stddev(r.k) IS NULL AS few
        FROM r GROUP BY {WINDOW}, GROUPING SETS ((parity, r.flag), (r.flag), ())
    """,
    "sessions": """
        SELECT session_window.start, session_window.end AS until, r.k, count(*) AS n, sum(r.small) AS s, avg(r.small)
        FROM r GROUP BY session_window(r.ts, '625 milliseconds'), r.k HAVING count(*) > 1
    """,
    "visits": """
        SELECT session_window(r.ts, '300 milliseconds') AS w, lower(r.name), count(DISTINCT r.k) AS ks,
          percentile(r.small, 0.5), count_if(r.flag) FILTER (WHERE r.k > 1) AS n FROM r GROUP BY 1, 2
    """,
    "odd_sessions": """
        SELECT session_window.end, r.odd, count(*) AS n, max(r.price) FROM r
        GROUP BY session_window(r.ts, '600 milliseconds'), r.odd
    """,
    "fraction_sessions": """
        SELECT date_trunc('MINUTE', session_window.start) AS at, r.x, max(r.k), count(*) FROM r
        GROUP BY session_window(r.ts, '1 second'), r.x
    """,
    "distinct": f"SELECT DISTINCT {WINDOW} AS w, r.k % 2 AS odd FROM r",
}
JOINED = """
    SELECT window.start AS at, s.name AS name, count(*) AS n, sum(r.small * s.v) AS total FROM r JOIN s ON r.k = s.k {}
    GROUP BY window(s.ts, '8 seconds', '4 seconds'), s.name
"""
JOINED_SESSIONS = """
    SELECT session_window.start AS at, session_window.end AS until, s.name AS name, count(*) AS n, sum(s.v) AS total
    FROM r JOIN s ON r.k = s.k {} GROUP BY session_window(s.ts, '300 milliseconds'), s.name
"""
SEVERAL = """
    SELECT unix_micros(session_window.start) AS at, r.k, count(DISTINCT r.name) AS names,
      count(DISTINCT r.flag) AS flags FROM r GROUP BY session_window(r.ts, '625 milliseconds'), r.k
"""
ISLANDS = """
    WITH timed AS (SELECT *, epoch_us(ts) AS us FROM readings),
      marked AS (SELECT *, us - lag(us) OVER (PARTITION BY k ORDER BY us) <= 625000 AS goes_on FROM timed),
      numbered AS (
        SELECT *, count(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (PARTITION BY k ORDER BY us) AS island FROM marked
      )
    SELECT min(us), k, count(DISTINCT name), count(DISTINCT flag) FROM numbered GROUP BY k, island
"""
"""What `SEVERAL` comes to: Spark's own batch engine does not put rows of a session together where two are distinct."""


def row(number: int, at: int) -> dict[str, Any]:
    """Return one of many rows, with NULL, NaN, zeros of both signs and values that add up exactly."""
    special = (None, float("nan"), -0.0, 0.0, float("inf"))
    return {
        "ts": at,
        "k": None if number % 11 == 0 else number % 5,
        "name": None if number % 7 == 0 else ("ä", "A", "a", "")[number % 4],
        "x": special[number % 5] if number % 3 == 0 else number / 8,
        "f": special[number % 4] if number % 5 == 0 else number / 4,
        "small": None if number % 6 == 0 else number % 100 - 50,
        "price": None if number % 9 == 0 else Decimal(number * 37 % 100_000 - 40_000).scaleb(-2),
        "wide": Decimal(number * 10**20) if number % 8 else None,
        "flag": (None, True, False)[number % 3],
        "day": None if number % 4 == 0 else datetime.date(2026, 1, 1 + number % 28),
        "odd": {"a": number % 3, "b": None if number % 2 else "b"},
    }


def write(folder: Path, batches: int, behind_s: int = 0) -> None:
    """Write a file a batch of either stream; the times of `s` are so much behind those of `r`."""
    times = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            ("ts", times),
            ("k", pa.int64()),
            ("name", pa.string()),
            ("x", pa.float64()),
            ("f", pa.float32()),
            ("small", pa.int8()),
            ("price", pa.decimal128(10, 2)),
            ("wide", pa.decimal128(38, 4)),
            ("flag", pa.bool_()),
            ("day", pa.date32()),
            ("odd", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ]
    )
    for batch in range(batches):
        numbers = range(batch * 60, batch * 60 + 60)
        readings = [row(number, number * SECOND // 8 - number % 5 * SECOND // 10) for number in numbers]
        others = [
            {"ts": n * SECOND // 8 + 5 - behind_s * SECOND, "k": n % 7, "name": f"s{n % 2}", "v": n % 3}
            for n in numbers
        ]
        columns = pa.schema([("ts", times), ("k", pa.int64()), ("name", pa.string()), ("v", pa.int32())])
        for name, rows, wanted in (("r", readings, schema), ("s", others, columns)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows, schema=wanted), folder / name / f"{batch}.parquet")


def engine(spark: Any, folder: Path, idle: str | None = None) -> plait.Engine:
    made = plait.Engine(spark, checkpoint=str(folder / "checkpoint"))
    for name, schema in (("r", READINGS), ("s", "ts TIMESTAMP, k BIGINT, name STRING, v INT")):
        reader = spark.readStream.name(name).schema(schema).option("maxFilesPerTrigger", 1)
        made.stream(
            name,
            reader.parquet(str(folder / name)),
            time="ts",
            window="6 seconds",
            delay="2 seconds",
            idle=idle if name == "s" else None,
        )
    return made


def batch_results(spark: Any, folder: Path, sql: str) -> pa.Table:
    for name in ("r", "s"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return spark.sql(sql).toArrow()


def kinds(table: pa.Table) -> list[tuple[str, str]]:
    """Return names and types; whether what is inside can be NULL nobody is told."""
    return [(field.name, str(field.type).replace(" not null", "")) for field in table.schema]


def test_groups_are_those_of_sparks_batch_engine_type_and_value(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 3)
    made = engine(spark, tmp_path)
    queries = {name: made.query(name, sql, sink=plait.sinks.memory()) for name, sql in ONE_STREAM.items()}
    joined = made.query("joined", JOINED.format(""), sink=plait.sinks.parquet(str(tmp_path / "joined")))
    meetings = made.query("meetings", JOINED_SESSIONS.format(""), sink=plait.sinks.memory())
    several = made.query("several", SEVERAL, sink=plait.sinks.memory())
    first = made.run_available()
    assert dict(first.queries)["counts"] > 0  # windows that are over are written before the input ends
    before = {name: query.results().num_rows for name, query in queries.items()}
    last = made.run_available(close=True)
    assert [name for name, rows in last.queries if rows == 0] == []
    for name, query in queries.items():
        found, wanted = query.results(), batch_results(spark, tmp_path, ONE_STREAM[name])
        assert kinds(found) == kinds(wanted), name
        assert 0 < before[name] < found.num_rows
        assert difference(table_rows(found), table_rows(wanted)) is None, name
    assert joined.name == "joined"
    near = "AND abs(unix_micros(r.ts) - unix_micros(s.ts)) <= 6000000"
    wanted = batch_results(spark, tmp_path, JOINED.format(near))
    assert Counter(table_rows(spark.read.parquet(str(tmp_path / "joined")).toArrow())) == Counter(table_rows(wanted))
    wanted = batch_results(spark, tmp_path, JOINED_SESSIONS.format(near))
    assert Counter(table_rows(meetings.results())) == Counter(table_rows(wanted))
    files = duckdb.connect().read_parquet(str(tmp_path / "r" / "*.parquet"))
    islands = files.query("readings", ISLANDS).fetchall()
    assert Counter(table_rows(several.results())) == Counter(islands)
    with pytest.raises(OptionError, match="has ended"):
        made.run_available()


def test_what_depends_on_the_order_of_rows_takes_them_by_event_time(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "s").mkdir()
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64()), ("name", pa.string())])
    for number, rows in enumerate(([(3, 30, "c"), (1, None, "b")], [(2, 20, None), (1, 11, "a"), (4, 20, "c")])):
        table = pa.Table.from_pylist([dict(zip(("ts", "k", "name"), row, strict=True)) for row in rows], schema=schema)
        pq.write_table(table, tmp_path / "r" / f"{number}.parquet")
    made = engine(spark, tmp_path)
    sql = f"""
        SELECT first(r.k), first(r.k, true), last_value(r.name) FILTER (WHERE r.k < 30), collect_list(r.k),
          collect_set(r.name), size(array_agg(r.name)) FROM r GROUP BY {WINDOW}
    """
    ordered = made.query("ordered", sql, sink=plait.sinks.memory())
    made.run_available(close=True)
    assert table_rows(ordered.results()) == [(None, 11, "c", [11, 20, 30, 20], ["a", "b", "c"], 4)]


@pytest.mark.parametrize(("size", "slide", "start"), [(10, 10, 0), (10, 3, 1), (7, 7, -2), (9, 4, -3)])
def test_windows_are_over_at_the_ends_that_spark_gives_them(spark: Any, size: int, slide: int, start: int) -> None:
    window = TimeWindow(relation="r", column="ts", size_us=size, slide_us=slide, start_us=start, lag_us=0)
    call = f"window(timestamp_micros(id), '{size} microseconds', '{slide} microseconds', '{start} microseconds') AS w"
    rows = spark.range(-40, 41).selectExpr("id", call).selectExpr("id", "unix_micros(w.end) AS until").collect()
    for tau in range(-40, 41):
        ends = [row["until"] for row in rows if row["id"] == tau]
        assert (min(ends), max(ends)) == (window.first_end(tau), window.last_end(tau)), tau


def test_a_group_that_overflows_ends_the_run_and_names_its_query(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 1)
    made = engine(spark, tmp_path)
    made.query("huge", f"SELECT sum(r.k + 9223372036854775800) AS n FROM r GROUP BY {WINDOW}", sink=plait.sinks.noop())
    with pytest.raises(PlaitError, match="query 'huge' cannot compute the groups of a window that is over"):
        made.run_available(close=True)


def test_what_spark_says_of_a_query_that_groups_is_said_when_it_is_added(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 1)
    made = engine(spark, tmp_path)
    with pytest.raises(SqlError, match=r"(?i)group"):
        made.query("wrong", f"SELECT upper(r.name) FROM r GROUP BY {WINDOW}, lower(r.name)", sink=plait.sinks.noop())


def test_windows_are_over_without_new_rows_once_a_silent_stream_is_not_waited_for(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 3, behind_s=2)
    for late in ("r/1.parquet", "r/2.parquet", "s/1.parquet", "s/2.parquet"):
        (tmp_path / late).rename(tmp_path / late.replace("/", "-"))
    made, events = engine(spark, tmp_path, idle="1 second"), list[Any]()
    made.listen(events.append)
    sql = f"SELECT window.start AS at, count(*) AS n FROM r GROUP BY {WINDOW.replace('10', '1')}"
    counts = made.query("counts", sql, sink=plait.sinks.memory())
    near = made.query("near", "SELECT r.k, s.v FROM r JOIN s ON r.k = s.k WHERE s.v < 0", sink=plait.sinks.noop())
    assert near.name == "near"
    handle = made.start("100 milliseconds")
    deadline = time.monotonic() + 60
    while len(events) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(event.batch, event.rows_in, event.unfed) for event in events] == [(0, 120, 0), (1, 0, 1)]
    assert dict(events[1].results)["counts"] > 0
    for late in ("r/1.parquet", "s/1.parquet"):
        (tmp_path / late.replace("/", "-")).rename(tmp_path / late)
    while sum(event.rows_in for event in events) < 240 and time.monotonic() < deadline:
        time.sleep(0.05)
    handle.stop()
    written = sum(dict(event.results)["counts"] for event in events)
    for late in ("r/2.parquet", "s/2.parquet"):
        (tmp_path / late.replace("/", "-")).rename(tmp_path / late)
    made.run_available(close=True)
    assert 0 < written < counts.results().num_rows
    assert difference(table_rows(counts.results()), table_rows(batch_results(spark, tmp_path, sql))) is None
    assert sum(event.late for event in events) == 0


def test_windows_of_a_query_that_is_left_out_wait_for_it_and_none_is_written_twice(spark: Any, tmp_path: Path) -> None:
    times = [(1, 12), (2, 13), (3, 25), (4, 26, 47)]  # those of a file that come before 10 are late
    sql = "SELECT window.start AS at, count(*) AS n FROM r WHERE r.k > 0 GROUP BY window(r.ts, '10 seconds'){}"
    (tmp_path / "r").mkdir()

    def run(number: int, having: str | None, close: bool = False) -> tuple[list[tuple[int, int]], list[str]]:
        rows = [{"ts": at * SECOND, "k": 1} for at in times[number]]
        schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int64())])
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "r" / f"{number}.parquet")
        made = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
        reader = spark.readStream.name("r").schema("ts TIMESTAMP, k BIGINT")
        made.stream("r", reader.parquet(str(tmp_path / "r")), time="ts", window="6 seconds", delay="2 seconds")
        made.query("all", "SELECT r.k FROM r", sink=plait.sinks.noop())
        counts = None if having is None else made.query("counts", sql.format(having), sink=plait.sinks.memory())
        made.run_available(close=close)
        found = [] if counts is None else counts.results().to_pylist()
        told = [notice.kind for notice in made.summary().warnings if notice.of == "counts"]
        return sorted((each["at"].second, each["n"]) for each in found), told

    assert run(0, "") == ([(0, 1)], [])
    assert run(1, None) == ([], ["windows waiting"])
    # [10, 20) has 12 of the first run, not 13 of the second, which went on without the query.
    assert run(2, " HAVING n > 0") == ([(10, 1)], ["windows incomplete"])
    assert run(3, "", close=True) == ([(20, 2), (40, 1)], [])
