"""AS SELECT: what a source's rows are made of, bound over the columns that it delivers."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Source, Stream, Table
from plait.query.origin import Column, Making
from plait.sql import check_script, load_script
from plait.sql.expressions.scope import SchemaUnknownError

COLUMNS = "id BIGINT, ms BIGINT, t STRING, body STRING, addr STRUCT<City: STRING, zip: INT>, tags ARRAY<STRING>"
KEPT = "CREATE QUERY q INTO noop AS SELECT * FROM s"


def script(select: str, *, time: str = "ts", columns: str = f"({COLUMNS})", rest: str = "") -> str:
    return f"CREATE STREAM s {columns} USING mine TIMESTAMP BY {time} {rest} AS {select};"


def made(select: str, *, time: str = "ts") -> tuple[Source, Making]:
    text = script(select, time=time)
    assert check_script(text) == ()
    (source,) = load_script(text).sources
    assert source.connector is not None
    assert source.connector.making is not None
    return source, source.connector.making


def shown(source: Source) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in source.schema or ())


@pytest.mark.parametrize("rest", ["", "WINDOW INTERVAL 1 HOUR", "OPTIONS (idle '5 seconds') DELAY INTERVAL 1 SECOND"])
def test_columns_are_chosen_named_and_computed(rest: str) -> None:
    select = "SELECT ID, timestamp_millis(ms) AS ts, upper(source.t) name, addr.city FROM source WHERE id > 3"
    text = script(select, rest=rest)
    assert check_script(text) == ()
    (source,) = load_script(text).sources
    assert shown(source) == "id bigint, ts timestamp, name string, city string"
    making = source.connector.making if source.connector else None
    assert making is not None
    assert making.items == (
        ("id", "`id`"),
        ("ts", "timestamp_millis(`ms`)"),
        ("name", "upper(`t`)"),
        ("city", "`addr`.city"),
    )
    assert (making.condition, making.failures, making.unpacked) == ("(`id` > 3)", (), ())
    assert ", ".join(column.name for column in making.delivered) == "id, ms, t, body, addr, tags"


def test_a_star_is_all_that_is_read_and_a_struct_with_a_star_is_its_fields() -> None:
    source, making = made("SELECT *, addr.*, timestamp_millis(ms) AS ts FROM source AS x")
    assert ", ".join(column.name for column in source.schema or ()) == "id, ms, t, body, addr, tags, City, zip, ts"
    assert making.unpacked == (("__unpacked0", "`addr`"),)
    assert dict(making.items)["City"] == "`__unpacked0`.`City`"


def test_a_text_is_taken_apart_once_whatever_number_of_fields_it_has() -> None:
    select = "SELECT from_json(body, 'k BIGINT, at TIMESTAMP, `a b` STRING').* FROM source"
    source, making = made(select, time="at")
    assert shown(source) == "k bigint, at timestamp, a b string"
    (unpacked,) = making.unpacked
    assert unpacked == ("__unpacked0", "from_json(`body`, 'k BIGINT, at TIMESTAMP, `a b` STRING')")


def test_conversions_are_tried_and_it_is_told_when_one_has_failed() -> None:
    _, making = made("SELECT CAST(t AS INT) + 1 AS n, to_timestamp(body, 'yyyy') AS ts FROM source WHERE t::int > 2")
    assert dict(making.items) == {"n": "(try_CAST(`t` AS INT) + 1)", "ts": "try_to_timestamp(`body`, 'yyyy')"}
    assert making.condition == "(try_CAST(`t` AS int) > 2)"
    assert making.failures[:2] == (
        ("try_CAST(`t` AS INT) IS NULL AND `t` IS NOT NULL", "CAST(`t` AS INT)"),
        (
            "try_to_timestamp(`body`, 'yyyy') IS NULL AND `body` IS NOT NULL AND 'yyyy' IS NOT NULL",
            "to_timestamp(`body`, 'yyyy')",
        ),
    )


def test_a_conversion_that_need_not_be_carried_out_is_null_where_it_fails() -> None:
    select = """SELECT CASE WHEN id = 1 THEN CAST(t AS INT) END AS a, coalesce(body, CAST(id AS STRING)) AS b,
        timestamp_millis(ms) AS ts FROM source WHERE id > 1 OR CAST(t AS INT) = 2"""
    source, making = made(select)
    assert making.failures == ()
    assert dict(making.items)["a"] == "(CASE WHEN (`id` = 1) THEN try_CAST(`t` AS INT) END)"
    assert shown(source) == "a int, b string, ts timestamp"


def test_a_type_that_only_spark_knows_is_left_open() -> None:
    text = script("SELECT id, element_at(tags, 1) AS tag, timestamp_millis(ms) AS ts FROM source")
    assert check_script(text) == ()
    (source,) = load_script(text).sources
    assert source.schema is None
    told = (Column(name="id", type="bigint"), Column(name="tag", type="string"), Column(name="ts", type="timestamp"))
    (asked,) = load_script(text, schema_of=lambda source: told).sources
    assert asked.schema == told
    assert asked.connector is not None
    assert asked.connector.making is not None


def test_what_is_read_may_be_found_in_files_or_asked_for(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    pq.write_table(pa.table({"id": [1], "at": [moment]}), tmp_path / "0.parquet")
    text = f"CREATE STREAM s USING parquet OPTIONS (path '{tmp_path}') TIMESTAMP BY ts AS SELECT id, at ts FROM source;"
    (source,) = load_script(text).sources
    assert shown(source) == "id bigint, ts timestamp"
    unseen = script("SELECT id, timestamp_millis(ms) AS ts FROM source", columns="")
    assert check_script(unseen) == ()
    with pytest.raises(SchemaUnknownError, match="declare them before USING"):
        load_script(unseen)


def test_a_table_is_made_as_well() -> None:
    text = f"CREATE TABLE t ({COLUMNS}) USING mine AS SELECT id, lower(t) AS t FROM source WHERE id > 0;"
    assert check_script(text) == ()
    (table,) = load_script(text).sources
    assert isinstance(table, Table)
    assert shown(table) == "id bigint, t string"


def test_queries_see_what_was_made_and_nothing_else() -> None:
    text = script("SELECT id, timestamp_millis(ms) AS ts FROM source")
    assert check_script(f"{text} {KEPT}") == ()
    (problem,) = check_script(f"{text} CREATE QUERY q INTO noop AS SELECT s.ms FROM s")
    assert "has no column 'ms'" in problem.message


@pytest.mark.parametrize(
    ("select", "says", "kind"),
    [
        ("SELECT ▸idd, ms AS ts FROM source", "did you mean 'id'", SqlError),
        ("SELECT (▸SELECT 1) AS id, ms AS ts FROM source", "a subquery", UnsupportedQueryError),
        ("SELECT id, ms AS ts FROM (▸SELECT id, ms FROM source) s", "write FROM source", SqlError),
        ("SELECT id, ms ts FROM ▸other", "FROM source", SqlError),
        ("SELECT id, ▸ms + 1 FROM source", "write ms + 1 AS name", SqlError),
        ("SELECT id, ms AS ▸ID FROM source", "two columns are called 'ID'", SqlError),
        ("SELECT id, ms AS ▸_corrupt_record FROM source", "another name", SqlError),
        ("SELECT ▸count(*) AS n FROM source", "aggregate", UnsupportedQueryError),
        ("SELECT ▸now() AS n FROM source", "time column", UnsupportedQueryError),
        ("SELECT id FROM source ▸JOIN source b ON true", "a row of each row", UnsupportedQueryError),
        ("SELECT id FROM source ▸GROUP BY id", "a row of each row", UnsupportedQueryError),
        ("▸SELECT DISTINCT id FROM source", "a row of each row", UnsupportedQueryError),
        ("SELECT id FROM source ▸LIMIT 3", "LIMIT", UnsupportedQueryError),
        ("SELECT id FROM source WHERE id IN (▸SELECT id FROM source)", "subquery", UnsupportedQueryError),
        ("SELECT ▸variant_get(parse_json(body), '$.a', 'string').* FROM source", "one by one", SqlError),
        ("SELECT ▸nope(id) AS x FROM source", "no function nope()", SqlError),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(select: str, says: str, kind: type[SqlError]) -> None:
    text = script(select.replace("▸", ""))
    problems = [problem for problem in check_script(text) if not problem.message.endswith("no column")]
    assert problems
    assert says in problems[0].message
    assert type(problems[0]) is kind
    assert problems[0].column == text.index("AS SELECT") + len("AS ") + 1 + select.index("▸")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (script("id FROM source"), "expected SELECT after AS"),
        (f"CREATE STREAM s ({COLUMNS}) AS SELECT id FROM source;", "expected USING and a format before AS SELECT"),
        (script("SELECT id FROM source", time="ms"), "AS SELECT *, ms FROM source"),
        (script("SELECT id FROM source", time="nope"), "is no column"),
        (script("SELECT id, ms AS ts FROM source"), "write timestamp_millis(ts)"),
    ],
)
def test_what_is_missing_is_said(text: str, says: str) -> None:
    assert any(says in problem.message for problem in check_script(text))


def test_an_event_time_may_be_an_expression_over_what_was_made() -> None:
    text = script("SELECT id, ms + 1 AS later FROM source", time="timestamp_millis(later)")
    (source,) = load_script(text).sources
    assert isinstance(source, Stream)
    assert source.computed is not None
    assert source.computed.sql == "timestamp_millis(`later`)"
