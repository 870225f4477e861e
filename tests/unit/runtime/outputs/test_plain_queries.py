"""Of which queries it is known without Spark what it says; that this is what it says, tests/spark/test_front_end.py
finds out.
"""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from plait.query.model import Query, SinkSpec, Stream
from plait.runtime.inputs.opening import schema_columns
from plait.runtime.outputs.plain_queries import plain_output
from plait.sql import bind_query
from plait.sql.lexis.ddl import parse_columns
from tests.property.standin.types import struct_of
from tests.unit.sql.reading import cursor_over

DDL = {
    "o": "id BIGINT, day DATE, price DOUBLE, name STRING, tags ARRAY<STRING>, ts TIMESTAMP",
    "i": "order_id INT, qty SMALLINT, name STRING, ts TIMESTAMP",
}


def schema(ddl: str) -> StructType:
    return struct_of((column.name, column.type) for column in parse_columns(cursor_over(f"({ddl})")))


SCHEMAS = {name: schema(ddl) for name, ddl in DDL.items()}


def bound(select: str) -> Query:
    sources = {
        name: Stream(name=name, time="ts", window_us=1_000_000, schema=schema_columns(columns))
        for name, columns in SCHEMAS.items()
    }
    return bind_query(name="q", select=select, sink=SinkSpec(format="noop"), sources=sources)


def output(select: str) -> StructType | None:
    return plain_output(bound(select), SCHEMAS)


def test_columns_keep_their_types_and_have_the_names_that_are_written() -> None:
    found = output("SELECT o.ID, i.qty AS pieces, tags FROM o JOIN i ON o.id = i.order_id WHERE i.qty > 2")
    assert found == schema("ID BIGINT, pieces SMALLINT, tags ARRAY<STRING>")


@pytest.mark.parametrize(
    "rest",
    [
        "o.id = i.order_id AND o.name = i.name",
        "o.id = i.order_id AND i.qty IN (1, 2) AND NOT o.name = 'x'",
        "o.id = i.order_id AND (o.day > DATE'2024-01-01' OR o.day IS NULL)",
        "o.id = i.order_id AND i.qty BETWEEN -5 AND 70000",
    ],
)
def test_equal_columns_and_columns_compared_with_constants_are_known(rest: str) -> None:
    assert output(f"SELECT o.id FROM o, i WHERE {rest}") == schema("id BIGINT")


@pytest.mark.parametrize(
    "select",
    [
        "SELECT o.id + 1 AS next FROM o, i WHERE o.id = i.order_id",
        "SELECT o.tags[0] FROM o, i WHERE o.id = i.order_id",
        "SELECT upper(o.name) AS name FROM o, i WHERE o.id = i.order_id",
        "SELECT o.id FROM o, i WHERE o.id + 1 = i.order_id",
        "SELECT o.id FROM o, i WHERE o.id = i.order_id AND o.ts < i.ts",
        "SELECT o.id FROM o, i WHERE o.id = i.order_id AND upper(o.name) = 'X'",
        "SELECT o.id FROM o, i WHERE o.id = i.order_id AND o.id > o.price",
        "SELECT o.id FROM o, i WHERE o.id = i.order_id AND 1 = 2",
        "SELECT o.id FROM o LEFT JOIN i ON o.id = i.order_id",
        "SELECT o.id, i.name FROM o JOIN i USING (name)",
        "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.order_id = o.id)",
        "SELECT count(*) AS n FROM o GROUP BY window(o.ts, '1 minute')",
    ],
)
def test_of_what_is_computed_or_may_lack_a_partner_spark_is_asked(select: str) -> None:
    assert output(select) is None


@pytest.mark.parametrize("constant", ["70000S", "1e400", "1e400D", "1.5BD"])
def test_of_numbers_that_may_not_fit_what_they_are_written_as_spark_is_asked(constant: str) -> None:
    assert output(f"SELECT o.id FROM o, i WHERE o.id = i.order_id AND i.qty < {constant}") is None
    assert output(f"SELECT o.id FROM o, i WHERE o.id = i.order_id AND o.price < {constant}") is None


def test_of_texts_with_escapes_spark_is_asked() -> None:
    assert output(r"SELECT o.id FROM o, i WHERE o.id = i.order_id AND o.name = 'a\tb'") is None
