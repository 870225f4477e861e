"""Rows that are made as they are read: values decoded, expressions computed, and what cannot be set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import plait
from plait.query.origin import Connector, Decoding
from plait.runtime.inputs.making import made_rows
from plait.sql import load_script

pytestmark = pytest.mark.spark

TIME = "2026-01-01 10:00:"
LINES = {
    "values": [
        '{"id": 1, "city": "Köln", "at": 1767261600000}',
        '{"id": "x", "city": "Bonn", "at": 1767261601000}',
        '{"id": 3, "city"',
        '{"id": 4, "at": 1767261603000, "more": [1]}',
        '{"id": 5, "city": "Ulm", "at": null}',
    ],
    "piped": [f"1|a b|{TIME}01", f"2|c|{TIME}02|more", "3|NA|NA", f"4|d|{TIME}04"],
    "sums": [f"1,5,{TIME}05", f"2,x,{TIME}06", f"3,7,{TIME}07", f"4,,{TIME}08", "5,1,noon"],
}
NAMES = """1,x
3,"{'first': 'Ann', 'last': 'Lee'}"
9,{}
"""
SCRIPT = """
CREATE STREAM values USING text OPTIONS (path 'values', deadLetter 'letters/values')
  TIMESTAMP BY timestamp_millis(at) WINDOW INTERVAL 1 HOUR FORMAT json (id BIGINT, city STRING, at BIGINT);
CREATE STREAM piped USING text OPTIONS (path 'piped', sep '|', nullValue 'NA', deadLetter 'letters/piped')
  TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR FORMAT csv (id BIGINT, name STRING, ts TIMESTAMP)
  AS SELECT id * 10 AS id, upper(name) AS name, ts, value AS line FROM source;
CREATE STREAM sums (k STRING, n STRING, t STRING) USING csv OPTIONS (path 'sums', deadLetter 'letters/sums')
  TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR
  AS SELECT CAST(k AS BIGINT) AS k, CAST(n AS INT) AS n, to_timestamp(t) AS ts FROM source WHERE n IS NULL OR n > 5;
CREATE TABLE names (k STRING, name STRING) USING csv OPTIONS (path 'names.csv')
  AS SELECT CAST(k AS BIGINT) AS k,
    from_json(name, 'first STRING, last STRING', map('allowSingleQuotes', 'true')).* FROM source WHERE k < 4;
CREATE QUERY of_values INTO memory AS SELECT id, city FROM values;
CREATE QUERY of_piped INTO memory AS SELECT id, name, line FROM piped;
CREATE QUERY of_sums INTO memory AS SELECT s.k, s.n, m.last FROM sums s LEFT JOIN names m ON s.k = m.k;
"""


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> plait.Engine:
    for name, lines in LINES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "names.csv").write_text(NAMES)
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    engine.load(load_script(SCRIPT, base=str(tmp_path)))
    return engine


def rows(engine: plait.Engine, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in engine.results(query).to_pylist())


def letters(place: Path) -> list[dict[str, Any]]:
    """Return what is told of the records set aside that could not be read."""
    found = [letter["row"]["_corrupt_record"] for letter in pq.read_table(place).to_pylist()]
    return [json.loads(text) for text in found if text is not None]


def test_rows_are_what_was_asked_for_and_the_rest_is_set_aside_with_what_was_in_it(
    engine: plait.Engine, tmp_path: Path
) -> None:
    summary = engine.run_available()
    assert rows(engine, "of_values") == [(1, "Köln"), (4, None)]
    assert rows(engine, "of_piped") == [(10, "A B", LINES["piped"][0]), (40, "D", LINES["piped"][3])]
    assert rows(engine, "of_sums") == [(3, 7, "Lee"), (4, None, None)]
    told = {counts.source: {bad.reason: bad for bad in counts.bad} for counts in summary.sources}
    assert {name: {reason: bad.rows for reason, bad in bads.items()} for name, bads in told.items()} == {
        "values": {"malformed": 2, "no event time": 1},
        "piped": {"malformed": 1, "no event time": 1},
        "sums": {"malformed": 2},
    }
    assert told["values"]["malformed"].column == "id"
    assert "declare the column STRING" in (told["values"]["malformed"].hint or "")
    assert "try_cast" in (told["sums"]["malformed"].hint or "")
    assert letters(tmp_path / "letters/values") == [
        {"failed": "FORMAT json", "value": line} for line in LINES["values"][1:3]
    ]
    assert letters(tmp_path / "letters/piped") == [{"failed": "FORMAT csv", "value": LINES["piped"][1]}]
    assert letters(tmp_path / "letters/sums") == [
        {"failed": "CAST(`n` AS INT)", "k": "2", "n": "x", "t": f"{TIME}06"},
        {"failed": "to_timestamp(`t`)", "k": "5", "n": "1", "t": "noon"},
    ]


def test_bytes_that_are_no_text_and_values_that_are_none_are_told_with_where_they_are(spark: Any) -> None:
    frame = spark.sql(
        """SELECT * FROM VALUES ('t', 0, 5L, X'7b226964223a20317d'), ('t', 1, 6L, NULL), ('u', 0, 7L, X'ff00'),
            ('u', 0, 8L, X'') AS delivered (topic, partition, offset, value)"""
    )
    decoding = Decoding(format="json", columns=load_columns("id BIGINT"))
    connector = Connector(format="kafka", decoding=decoding)
    made, corrupt = made_rows(frame, connector, None, keeps_bad=True)
    assert made.columns == ["id", "_corrupt_record"]
    found = [(row[0], row[1] and json.loads(row[1])) for row in made.collect()]
    assert corrupt == "_corrupt_record"
    assert found == [
        (1, None),
        (None, {"failed": "tombstone", "topic": "t", "partition": 1, "offset": 6}),
        (None, {"failed": "FORMAT json", "topic": "u", "partition": 0, "offset": 7, "base64": "/wA="}),
        (None, {"failed": "FORMAT json", "topic": "u", "partition": 0, "offset": 8, "value": ""}),
    ]


def load_columns(ddl: str) -> Any:
    text = f"CREATE TABLE t ({ddl}) USING csv OPTIONS (path '.');"
    return load_script(text).sources[0].schema


def test_what_is_made_is_what_a_batch_engine_makes(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    con = duckdb.connect()
    con.sql(
        "CREATE TABLE delivered AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN CAST(i % 10 AS VARCHAR) END AS k, "
        "1767261600000 + i * 37 % 5000 AS ms FROM range(500) t(i)"
    )
    con.sql(f"COPY delivered TO '{tmp_path}/in/0.parquet' (FORMAT parquet)")
    script = f"""
        CREATE STREAM s USING parquet OPTIONS (path '{tmp_path}/in') TIMESTAMP BY ts WINDOW INTERVAL 1 SECOND
          AS SELECT id % 11 AS id, CAST(k AS INT) + 1 AS k, timestamp_millis(ms) AS ts FROM source WHERE id % 3 > 0;
        CREATE QUERY q INTO memory AS SELECT a.id, a.k, b.k AS other FROM s a JOIN s b ON a.id = b.id AND a.k < b.k;"""
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    engine.load(load_script(script))
    engine.run_available()
    expected = con.sql(
        """WITH s AS (SELECT id % 11 AS id, CAST(k AS INT) + 1 AS k, ms FROM delivered WHERE id % 3 > 0)
           SELECT a.id, a.k, b.k FROM s a JOIN s b ON a.id = b.id AND a.k < b.k AND abs(a.ms - b.ms) <= 1000"""
    ).fetchall()
    assert len(expected) > 100
    assert rows(engine, "q") == sorted(expected)
