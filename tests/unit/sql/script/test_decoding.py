"""FORMAT: the columns of values in JSON, CSV and Avro."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.query.model import Source
from plait.query.origin import Connector, Decoding
from plait.sql import check_script, load_script

KAFKA = "kafka.bootstrap.servers 'localhost:9092', subscribe 'orders'"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"]},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": []}}},
    ],
}


def script(clauses: str, *, options: str = KAFKA, using: str = "kafka", time: str = "ts") -> str:
    return f"CREATE STREAM s USING {using} OPTIONS ({options}) TIMESTAMP BY {time} {clauses};"


def read(clauses: str, *, options: str = KAFKA, using: str = "kafka", base: str = ".", time: str = "ts") -> Source:
    text = script(clauses, options=options, using=using, time=time)
    assert check_script(text, base=base) == ()
    (source,) = load_script(text, base=base).sources
    return source


def connector_of(source: Source) -> Connector:
    assert source.connector is not None
    return source.connector


def decoding_of(source: Source) -> Decoding:
    decoding = connector_of(source).decoding
    assert decoding is not None
    return decoding


def shown(source: Source) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in source.schema or ())


@pytest.mark.parametrize("format_", ["json", "csv", "JSON"])
def test_the_columns_are_those_of_the_values(format_: str) -> None:
    source = read(f"FORMAT {format_} (id BIGINT, city STRING, ts TIMESTAMP) WINDOW INTERVAL 1 HOUR")
    assert shown(source) == "id bigint, city string, ts timestamp"
    assert decoding_of(source).format == format_.lower()


def test_as_select_sees_what_kafka_says_of_a_record_beside_what_is_in_it() -> None:
    source = read(
        "FORMAT json (id BIGINT, timestamp STRING) AS SELECT *, key, partition, offset, topic FROM source "
        "WHERE offset > 3",
        time="to_timestamp(timestamp)",
    )
    assert shown(source) == "id bigint, timestamp string, key binary, partition int, offset bigint, topic string"
    headers = read(
        "FORMAT json (id BIGINT) AS SELECT *, timestamp AS ts, headers FROM source",
        options=f"{KAFKA}, includeHeaders true",
    )
    assert shown(headers) == "id bigint, ts timestamp, headers array<struct<key:string,value:binary>>"


def test_options_go_to_whom_they_concern() -> None:
    source = read(
        "FORMAT csv (id BIGINT, ts TIMESTAMP)", options=f"{KAFKA}, sep '|', nullValue 'NA', failOnDataLoss false"
    )
    assert decoding_of(source).options == (("sep", "|"), ("nullValue", "NA"))
    assert [name for name, _ in connector_of(source).options] == [
        "kafka.bootstrap.servers",
        "subscribe",
        "failOnDataLoss",
    ]


def test_the_lines_of_a_text_are_values_too(tmp_path: Path) -> None:
    source = read("FORMAT json (id BIGINT, ts TIMESTAMP)", using="text", options=f"path '{tmp_path}'")
    assert shown(source) == "id bigint, ts timestamp"


def test_the_schema_of_avro_is_written_out_or_in_a_file_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(SCHEMA))
    columns = "id bigint, city string, ts timestamp, lines array<struct<>>"
    assert shown(read("FORMAT avro ('order.avsc')", base=str(tmp_path))) == columns
    assert shown(read(f"FORMAT avro ('{json.dumps(SCHEMA)}')")) == columns


@pytest.mark.parametrize(
    ("clauses", "says"),
    [
        ("FORMAT protobuf (id BIGINT)", "there is no FORMAT protobuf"),
        ("FORMAT jsn (id BIGINT)", "did you mean 'json'"),
        ("FORMAT json", "FORMAT json (id BIGINT, ts TIMESTAMP)"),
        ("FORMAT json (id BIGINTT)", "not a type"),
        ("FORMAT avro (id BIGINT)", "a list of columns is not enough"),
        ("FORMAT avro ('nope.avsc')", "'nope.avsc' cannot be read: No such file"),
        ('FORMAT avro (\'{"type": "long"}\')', "expected a record"),
        ("FORMAT avro ('{')", "no schema of Avro"),
        ("FORMAT csv (id BIGINT, ts TIMESTAMP, tags ARRAY<STRING>)", "which csv cannot hold"),
        ("FORMAT json (id BIGINT, ts TIMESTAMP) FORMAT json (id BIGINT)", "FORMAT is given twice"),
        ("FORMAT json (id BIGINT)", "the event time 'ts' is no column"),
    ],
)
def test_what_is_wrong_is_said(clauses: str, says: str) -> None:
    problems = check_script(script(clauses))
    assert any(says in problem.message for problem in problems), problems


def test_an_event_time_of_kafkas_own_is_added_by_as_select() -> None:
    (problem,) = check_script(script("FORMAT json (id BIGINT)", time="timestamp"))
    assert "AS SELECT *, timestamp FROM source" in problem.message


def test_a_format_without_values_and_columns_given_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(b"")
    (problem,) = check_script(
        script("FORMAT json (id BIGINT, ts TIMESTAMP)", using="binaryFile", options=f"path '{tmp_path}'")
    )
    assert problem.message == (
        "stream 's': FORMAT json decodes the column 'value' of what is read, and binaryFile has none; read it with "
        "USING json, or take columns apart with AS SELECT"
    )
    text = script("FORMAT json (id BIGINT, ts TIMESTAMP)").replace("STREAM s", "STREAM s (value STRING)")
    (problem,) = check_script(text)
    assert "leave out the list before USING" in problem.message
