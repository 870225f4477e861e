"""A view that is another one when its checkpoint is opened again, on the stand-in for Spark: what comes from then on is
what the new text says, of all that is kept.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import plait
from plait.sql import load_script
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.undecided import A_S, B_S, STREAMS, Place

Results = dict[str, Counter[tuple[Any, ...]]]

BEFORE, AFTER = "a.id % 2 = 0", "a.id % 3 = 0"
VIEW = "CREATE VIEW some AS SELECT a.ts, a.k, a.id FROM a WHERE {};\n"
QUERIES = {
    "met": "SELECT some.id AS a, b.id AS b FROM some JOIN b ON some.k = b.k",
    "alone": "SELECT some.id AS a FROM some LEFT ANTI JOIN b ON some.k = b.k",
    "tally": "SELECT window.start AS begun, count(*) AS n FROM some GROUP BY window(some.ts, '8 seconds')",
}
FILES, ROWS, SECONDS = 3, 12, 12
_NEAR = f"a.k = b.k AND b.ts >= a.ts - INTERVAL {B_S} SECONDS AND b.ts <= a.ts + INTERVAL {A_S} SECONDS"
_WANTED = {
    "met": f"SELECT a.id, b.id FROM a JOIN b ON {_NEAR} WHERE CASE WHEN old(a) AND old(b) THEN {BEFORE} ELSE seen END",
    "alone": f"SELECT a.id FROM a ANTI JOIN b ON {_NEAR} "
    f"WHERE CASE WHEN a.ts + INTERVAL {A_S} SECONDS < (SELECT mark FROM marks) THEN {BEFORE} ELSE seen END",
    "tally": "SELECT begun, count(*) FROM (SELECT *, time_bucket(INTERVAL 8 SECONDS, a.ts) AS begun FROM a) a "
    f"WHERE CASE WHEN begun + INTERVAL 8 SECONDS <= (SELECT mark FROM marks) THEN {BEFORE} ELSE NOT old(a) AND {AFTER} "
    "END GROUP BY ALL",
}


@pytest.fixture(autouse=True)
def _standin(monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)


def run(place: Place, where: str, keep: str, *, close: bool = False) -> set[tuple[str, str | None]]:
    """Let files arrive and take them, with a view that asks this; return what was noticed beside times of 1970."""
    for _ in range(FILES):
        place.arrive(rows=ROWS, seconds=SECONDS)
    into = f"parquet OPTIONS (path '{place.folder}/out/{{}}')"
    asked = "".join(f"CREATE QUERY {name} INTO {into.format(name)} AS {sql};\n" for name, sql in QUERIES.items())
    streams = STREAMS.format(place.folder).replace("OPTIONS (", f"OPTIONS (keep '{keep}', ")
    made = plait.Engine(Session(), checkpoint=str(place.folder / "checkpoint"))  # type: ignore[arg-type]
    made.load(load_script(streams + VIEW.format(where) + asked))
    told = {(notice.kind, notice.of) for notice in made.run_available(close=close).warnings}
    return {each for each in told if each[0] != "event times"}


def found(place: Place) -> Results:
    """Return what lies in the sinks."""
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        files = {name: f"{place.folder}/out/{name}/*.parquet" for name in QUERIES}
        columns = {"tally": "CAST(begun AS TIMESTAMP), n"}
        texts = {name: f"SELECT {columns.get(name, '*')} FROM '{path}'" for name, path in files.items()}
        return {name: Counter(connection.sql(sql).fetchall()) for name, sql in texts.items()}


def wanted(place: Place, keep: str) -> Results:
    """Return what the two texts come to: what of the first half is final by then has the first."""
    old = FILES * ROWS
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        connection.sql(f"CREATE MACRO old(t) AS t.id < {old}")
        for stream in "ab":
            read = f"SELECT CAST(ts AS TIMESTAMP) AS ts, k, id FROM '{place.folder}/{stream}/*.parquet'"
            # Of what only the first text has asked for nothing but that is kept.
            seen = f"CASE WHEN id < {old} AND '{keep}' = 'needed' THEN id % 2 = 0 ELSE true END AND id % 3 = 0 AS seen"
            connection.sql(f"CREATE TABLE {stream} AS SELECT *{f', {seen}' if stream == 'a' else ''} FROM ({read})")
        ends = " UNION ALL ".join(f"SELECT max(ts) AS ts FROM {stream} WHERE id < {old}" for stream in "ab")
        connection.sql(f"CREATE TABLE marks AS SELECT min(ts) - INTERVAL 1 SECOND AS mark FROM ({ends})")
        return {name: Counter(connection.sql(sql).fetchall()) for name, sql in _WANTED.items()}


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_what_was_final_has_the_former_text_and_the_rest_the_new_one(tmp_path: Path, keep: str) -> None:
    place = Place(tmp_path, random.Random(3))
    assert run(place, BEFORE, keep) == set()
    told = run(place, AFTER, keep, close=True)
    assert found(place) == wanted(place, keep)
    assert ("windows begun anew", "tally") in told
    assert any(kind == "rows lacking" for kind, _ in told) == (keep == "needed")


def test_a_view_that_is_written_otherwise_and_says_the_same_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, random.Random(3))
    run(place, BEFORE, "needed")
    assert run(place, BEFORE.replace(" = ", "  =  "), "needed", close=True) == set()
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        read = f"SELECT CAST(ts AS TIMESTAMP) AS ts, id FROM '{place.folder}/a/*.parquet' a WHERE {BEFORE}"
        tally = f"SELECT time_bucket(INTERVAL 8 SECONDS, ts), count(*) FROM ({read}) GROUP BY ALL"
        assert found(place)["tally"] == Counter(connection.sql(tally).fetchall())
