"""The demo, killed in the middle and started again, against DuckDB over the same files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from plait.workloads.flights import TIME_COLUMNS
from plait.workloads.questions import QUESTIONS

pytestmark = pytest.mark.spark

ARGUMENTS = ("--from", "2013-02-07", "--days", "3", "--hours", "12")
STREAMS, TABLES = ("departures", "arrivals", "cancellations", "weather"), ("planes", "airlines", "airports")
WINDOWS = {
    "gusty_departures": {"d.departed": 3600, "w.observed": 3600},
    "knock_on": {"d.departed": 16 * 3600, "a.arrived": 8 * 3600, "n.departed": 1},
    "late_landings": {"d.departed": 16 * 3600, "a.arrived": 8 * 3600, "w.observed": 18 * 3600},
    "grounded": {"c.planned": 3600, "here.observed": 3600, "other.observed": 3600},
    "gate_crunch": {"x.arrived": 1200, "y.arrived": 1200},
}
"""Seconds by event-time column, written out here once more so that the script and its reading are both checked."""

DECIDED = {
    "unobserved": """
        SELECT d.departed, d.origin, d.dest, l.name AS airline, d.flight, d.dep_delay
        FROM departures d JOIN airlines l ON l.carrier = d.carrier
        WHERE epoch(d.departed) + 3600 < {watermark} AND NOT EXISTS (
            SELECT 1 FROM weather w WHERE w.origin = d.origin AND w.observed = date_trunc('hour', d.departed)
              AND w.pressure IS NOT NULL)
    """,
    "delays": """
        SELECT date_trunc('hour', departed) AS hour, hour + INTERVAL 1 HOUR AS until, origin, count(*) AS flights,
               avg(dep_delay) AS mean_delay, max(dep_delay) AS worst_delay
        FROM departures WHERE epoch(date_trunc('hour', departed)) + 3600 <= {watermark} GROUP BY ALL
    """,
    "bad_days": """
        SELECT date_trunc('day', hour) AS day, origin, count(*) AS hours, max(mean) AS worst_mean FROM (
            SELECT date_trunc('hour', departed) AS hour, origin, avg(dep_delay) AS mean FROM departures GROUP BY ALL)
        WHERE mean >= 30 AND epoch(date_trunc('day', hour)) + 25 * 3600 <= {watermark} GROUP BY ALL
    """,
    "stayed_away": """
        SELECT d.tailnum, d.carrier, d.flight, d.origin, d.dest, d.departed, d.distance FROM departures d
        WHERE d.tailnum IS NOT NULL AND d.distance < 300 AND epoch(d.departed) + 12 * 3600 < {watermark}
          AND NOT EXISTS (SELECT 1 FROM departures n WHERE n.tailnum = d.tailnum AND n.departed > d.departed
                          AND epoch(n.departed) - epoch(d.departed) <= 12 * 3600)
    """,
}
"""What the watermark has decided by the end of the files; what is not certain then has not come."""
DELAY_S = 300


def plait_demo(output: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "plait.cli.main", "demo", *ARGUMENTS, "--output", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        start_new_session=True,
    )


def lines_until(process: subprocess.Popen[str], sign: str, seconds: float) -> Iterator[str]:
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    for line in process.stdout:
        yield line
        if sign in line or time.monotonic() > deadline:
            return


@pytest.fixture(scope="module")
def killed_and_restarted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the demo's folder and what its second run printed; the first was killed after its third batch."""
    output = tmp_path_factory.mktemp("demo") / "out"
    with plait_demo(output) as first:
        seen = list(lines_until(first, "batch 2 ", 300))
        os.killpg(first.pid, signal.SIGKILL)
    assert "batch 2 " in seen[-1], "".join(seen)
    with plait_demo(output) as second:
        printed, _ = second.communicate(timeout=400)
    assert second.returncode == 0, printed
    return output, printed


@pytest.fixture(scope="module")
def database(killed_and_restarted: tuple[Path, str]) -> duckdb.DuckDBPyConnection:
    output, _ = killed_and_restarted
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET memory_limit = '2GB'")
    for name in STREAMS:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{output}/in/{name}/*.parquet'")
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{output}/in/{name}.parquet'")
    return connection


def select_of(script: Path, query: str) -> str:
    """Return the SELECT of an inner join, every one of which ends in its WHERE clause."""
    statement = script.read_text().split(f"CREATE QUERY {query} ")[1].split(";")[0]
    return statement[statement.index("SELECT") :]


def wanted_of(query: str, output: Path, database: duckdb.DuckDBPyConnection) -> str:
    """Return what DuckDB is asked for the results of a query."""
    if query in DECIDED:
        times = {name: TIME_COLUMNS[name] for name in STREAMS}
        newest = ", ".join(f"(SELECT max(epoch({time})) FROM {name})" for name, time in times.items())
        ((watermark,),) = database.execute(f"SELECT least({newest}) - {DELAY_S}").fetchall()
        return DECIDED[query].format(watermark=watermark)
    newest = f"greatest({', '.join(WINDOWS[query])})"
    windows = [f"epoch({newest}) - epoch({time}) <= {seconds}" for time, seconds in WINDOWS[query].items()]
    return f"{select_of(output / 'flights.sql', query)} AND {' AND '.join(windows)}"


@pytest.mark.parametrize("query", [question.query for question in QUESTIONS])
def test_results_equal_a_batch_engine_although_the_run_was_killed(
    query: str, killed_and_restarted: tuple[Path, str], database: duckdb.DuckDBPyConnection
) -> None:
    output, _ = killed_and_restarted
    wanted = database.execute(wanted_of(query, output, database))
    expected, columns = Counter(wanted.fetchall()), [column[0] for column in wanted.description]
    files = list((output / "out" / query).glob("*.parquet"))
    found: Counter[tuple[object, ...]] = Counter()
    if files:
        listed = ", ".join(f'"{column}"' for column in columns)
        found = Counter(database.execute(f"SELECT {listed} FROM '{output}/out/{query}/*.parquet'").fetchall())
    assert found == expected
    assert expected or query == "gate_crunch", "these days have results, or the test shows nothing"


def test_the_second_run_goes_on_where_the_first_was_killed(killed_and_restarted: tuple[Path, str]) -> None:
    _, printed = killed_and_restarted
    assert "batch 3 " in printed
    assert "batch 1 " not in printed


def test_no_row_is_late_or_bad(killed_and_restarted: tuple[Path, str]) -> None:
    _, printed = killed_and_restarted
    assert " 0 late, 0 bad" in printed


def test_it_ends_with_answers_sharing_and_where_to_look(killed_and_restarted: tuple[Path, str]) -> None:
    output, printed = killed_and_restarted
    for question in QUESTIONS:
        assert question.asks[:50] in printed
    assert "9 queries over 25 relations" in printed
    assert f"SELECT * FROM '{output}/out/knock_on/*.parquet'" in printed
