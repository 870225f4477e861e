"""Which columns of the SELECT list DuckDB computes in place of Spark."""

from __future__ import annotations

import pytest

from plait.query.model import Column, SinkSpec, Source, Stream
from plait.sinks.delivery import Formula, Made
from plait.sql import bind_query
from plait.sql.select.formulas import made_of

TYPES = {"i": "int", "s": "string", "x": "double", "m": "decimal(10,2)", "ts": "timestamp", "st": "struct<f:int>"}


def made(select: str, *types: str, time_zone: str = "UTC") -> Made | None:
    """Return how the results of a SELECT list are made, Spark giving its columns these types."""
    schema = tuple(Column(name=name, type=type_) for name, type_ in TYPES.items())
    sources: dict[str, Source] = {name: Stream(name=name, time="ts", schema=schema) for name in "ab"}
    sink = SinkSpec(format="noop")
    query = bind_query(name="q", select=f"SELECT {select} FROM a, b WHERE a.i = b.i", sink=sink, sources=sources)
    expressions = [column.expression for column in query.output]
    joined = {ref: TYPES[ref.column] for expression in expressions for ref in expression.columns}
    return made_of(list(zip(expressions, types, strict=True)), joined, time_zone=time_zone)


def test_columns_as_they_are_are_picked_whatever_their_type() -> None:
    assert made("b.st, a.s, b.st AS again", "struct<f:int>", "string", "struct<f:int>") == (0, 1, 0)


def test_arithmetic_is_computed_over_the_numbers_of_the_columns_it_reads() -> None:
    found = made("a.s, b.i + 5 * a.i AS total", "string", "int")
    assert found is not None
    formula = found[1]
    assert isinstance(formula, Formula)
    assert formula.reads == (1, 2)
    assert formula.sql == '(CASE WHEN "1" IS NULL THEN NULL ELSE ("1" + (CAST(\'5\' AS INTEGER) * "2")) END)'


def test_a_constant_reads_nothing() -> None:
    assert made("a.i, 'x' AS c", "int", "string") == (0, Formula(sql="'x'", reads=()))


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("upper(a.s)", "string"),
        ("a.st.f + 1", "int"),
        ("a.s RLIKE 'x'", "boolean"),
        ("sin(a.x)", "double"),
        ("pow(a.x, 2)", "double"),
        ("a.i / b.i", "double"),
        ("a.m / nullif(b.m, 0)", "decimal(23,13)"),
    ],
)
def test_one_column_of_sparks_leaves_all_of_them_to_spark(expression: str, type_: str) -> None:
    assert made(f"a.i, {expression} AS c", "int", type_) is None


def test_what_is_not_of_sparks_type_is_left_to_spark() -> None:
    assert made("a.m + b.m AS c", "decimal(11,2)") is not None
    assert made("a.m + b.m AS c", "decimal(12,2)") is None
    assert made("NULL AS c, a.i", "void", "int") is None
    assert made("a.ts - b.ts AS c", "interval day to second") is None


def test_what_hangs_on_another_time_zone_than_utc_is_left_to_spark() -> None:
    expression = "coalesce(a.ts, TIMESTAMP '2024-01-01 00:00:00') AS c"
    assert made(expression, "timestamp") is not None
    assert made(expression, "timestamp", time_zone="Europe/Berlin") is None
