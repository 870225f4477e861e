"""Theta predicates once types are known: bands, what DuckDB evaluates, and what is refused."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Column, Operand, Query, SinkSpec, Source, Stream
from plait.query.predicates import Band, Residual, by_kind
from plait.query.types import resolve_types
from plait.sql import bind_query
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.predicates.translation import value_of

TYPES = {
    "t": "tinyint",
    "i": "int",
    "j": "int",
    "b": "bigint",
    "f": "float",
    "x": "double",
    "y": "double",
    "m": "decimal(10,2)",
    "w": "decimal(38,10)",
    "s": "string",
    "d": "date",
    "ts": "timestamp",
    "n": "timestamp_ntz",
    "q": "boolean",
    "tags": "array<int>",
    "c": "string collate UTF8_LCASE",
    "gap": "interval day to second",
    "age": "interval year to month",
    "v": "decimal(38,30)",
}
OF_EXPRESSIONS = (
    (r"(date_add|date_sub)\(.*|`d` [+-] (INTERVAL )?\d+( DAYS)?", "date"),
    (r"(INTERVAL '1' SECOND \+ )?`(ts|n)`( [+-] .*)?", "timestamp"),
    (r"`d` \+ INTERVAL \d+ HOURS", "timestamp"),
    (r"`i` [+-] [-\d]+", "int"),
    (r"`b` \+ \d+|`i` \+ \d+L", "bigint"),
    (r"`i` \+ 0\.5|`m` .*", "decimal(12,2)"),
    (r"`[xyf]` .*", "double"),
    (r"nullif\(`i`, 0\)", "int"),
)

BANDS = (
    # integers
    ("a.i < b.i", "1 <= b.`i` - a.`i` (int)", True),
    ("a.i <= b.b", "0 <= b.`b` - a.`i` (bigint)", True),
    ("b.i > a.t", "1 <= b.`i` - a.`t` (int)", True),
    ("a.i >= b.i + 3", "b.`i` - a.`i` <= -3 (int)", True),
    ("a.i - 2 > 5 + (b.i - -1)", "b.`i` - a.`i` <= -9 (int)", True),
    ("a.i + 5 > b.i - 3", "b.`i` - a.`i` <= 7 (int)", True),
    ("NOT (a.i < b.i)", "b.`i` - a.`i` <= 0 (int)", True),
    ("abs(a.i - b.i) < 5", "-4 <= b.`i` - a.`i` <= 4 (int)", True),
    ("2.5 >= abs(b.i - a.i)", "-2 <= b.`i` - a.`i` <= 2 (int)", True),
    ("abs(a.i - b.i + 3) <= 5", "-2 <= b.`i` - a.`i` <= 8 (int)", True),
    ("a.i - b.i = 4", "-4 <= b.`i` - a.`i` <= -4 (int)", True),
    ("a.i - b.i + 1 < 4.5", "-3 <= b.`i` - a.`i` (int)", True),
    ("a.i - b.i < 9007199254740999", None, False),
    ("abs(a.i - b.i) > 5", None, False),
    ("abs(a.i - b.i) < -1", None, False),
    ("a.i - b.i = 4.5", None, False),
    ("a.i + b.i < 4", None, False),
    ("a.i <> b.i", None, False),
    ("a.i - b.i <=> 4", None, False),
    ("a.i * 2 < b.i", "1 <= b.`i` - a.`i` * 2 (int)", True),
    # times
    ("a.ts < b.ts", "1 <= b.`ts` - a.`ts` (timestamp)", True),
    ("b.ts <= a.ts + INTERVAL 5 MINUTES", "b.`ts` - a.`ts` <= 300000000 (timestamp)", True),
    ("b.ts <= INTERVAL '1' SECOND + a.ts - INTERVAL 1 MICROSECOND", "b.`ts` - a.`ts` <= 999999 (timestamp)", True),
    ("b.ts - a.ts < INTERVAL '1 00:01' DAY TO MINUTE", "b.`ts` - a.`ts` <= 86459999999 (timestamp)", True),
    ("a.ts + INTERVAL 1 MONTH < b.ts", "1 <= b.`ts` - a.`ts` + INTERVAL 1 MONTH (timestamp)", True),
    ("a.ts < b.n", "1 <= b.`n` - a.`ts` (timestamp)", True),
    ("a.d < b.d", "1 <= b.`d` - a.`d` (date)", True),
    ("b.d <= date_add(a.d, 5)", "b.`d` - a.`d` <= 5 (date)", True),
    ("b.d > a.d - 2", "-1 <= b.`d` - a.`d` (date)", True),
    ("b.d - a.d < INTERVAL 3 DAYS", "b.`d` - a.`d` <= 2 (date)", True),
    ("b.d - a.d <= INTERVAL 36 HOURS", "b.`d` - a.`d` <= 1 (date)", True),
    ("datediff(b.d, a.d) <= 5", "b.`d` - a.`d` <= 5 (date)", True),
    ("a.d + INTERVAL 4 HOURS < b.ts", "1 <= b.`ts` - a.`d` + INTERVAL 4 HOURS (timestamp)", True),
    ("a.d + INTERVAL 4 DAYS <= b.ts", "345600000000 <= b.`ts` - a.`d` (timestamp)", True),
    # fractions
    ("a.x <= b.x", "0.0 <= b.`x` - a.`x` (double)", True),
    ("a.x > b.x", "b.`x` - a.`x` <= 0.0 (double)", False),
    ("a.m >= b.x", "b.`x` - a.`m` <= 0.0 (double)", True),
    ("a.m >= b.m", "b.`m` - a.`m` <= 0.0 (double)", True),
    ("a.m >= b.w", "b.`w` - a.`m` <= 0.0 (double)", False),
    ("a.i <= b.f", "0.0 <= b.`f` - a.`i` (double)", True),
    ("a.x - b.x < 5", "-5.000000000000001 <= b.`x` - a.`x` (double)", False),
    ("5 >= b.x - a.x", "b.`x` - a.`x` <= 5.000000000000001 (double)", False),
    ("a.x - b.x > 5", None, False),
    ("5 < a.x - b.x", None, False),
    ("abs(a.x - b.x) < 0.5", "-0.5000000000000001 <= b.`x` - a.`x` <= 0.5000000000000001 (double)", False),
    ("a.y <= b.y + 0.5", "-0.5000000000000001 <= b.`y` - a.`y` (double)", False),
    ("a.f <= b.f + 1", "0.0 <= b.`f` + 1 - a.`f` (double)", True),
    ("a.i < b.i + 0.5", "0.0 <= b.`i` + 0.5 - a.`i` (double)", False),
    ("a.s < b.s", None, False),
    ("a.q < b.q", None, False),
)

REFUSED = (
    ("a.s < b.i", "< between string and int; cast one of them"),
    ("a.tags < b.tags", "< of type array<int>"),
    ("a.c < b.c", "of type string collate UTF8_LCASE"),
    ("a.i / b.i > 1", "use try_divide"),
    ("a.i % b.j = 1", "divide by nullif(y, 0)"),
    ("a.m / b.m > 1", "use try_divide"),
    ("(a.m - b.m) / 3 > 1", "the quotient of decimals is rounded"),
    ("a.w * b.w > 1", "is rounded; cast to double first"),
    ("a.w < b.v", "< between decimal(38,10) and decimal(38,30) loses digits"),
    ("a.w < b.x", "decimal(38,10) as a double"),
    ("concat(a.s, b.s) RLIKE 'x'", "RLIKE differs"),
    ("upper(concat(a.s, b.s)) = 'X'", "upper() of 1 arguments is not known"),
    ("round(a.x - b.x) = 1", "round() of 1 arguments is not known"),
    ("CAST(a.x - b.x AS INT) = 1", "a cast from double to int"),
    ("CAST(a.s || b.s AS INT) = 1", "a cast from string to int"),
    ("TRY_CAST(a.i + b.i AS TINYINT) = 1", "TRY_CAST is not translated"),
    ("a.i << b.i = 4", "<< between int and int"),
    ("a.gap < b.age", "< between interval day to second and interval year to month"),
    ("a.gap < b.s", "< between interval day to second and string"),
    ("startswith(a.i, b.s)", "startswith() of int; cast it to a string"),
    ("a.s + b.x > 1", "+ between string and double"),
    ("if(a.i > b.i, a.s, b.i) = 'x'", "between string and int"),
    ("a.i > b.i AND try_divide(a.i, b.i)", "a condition must be true or false"),
)

EVALUATED: tuple[tuple[str, list[Any], list[Any], list[bool | None]], ...] = (
    ("a.s LIKE b.s", ["a%", "a%b", None], ["a\\%", "a\\%", "%"], [True, False, None]),
    ("concat(a.s, b.s) LIKE 'a\\%_'", ["a%", "ab"], ["b", "b"], [True, False]),
    ("a.s LIKE b.s ESCAPE '\\\\'", ["a%", "ab"], ["a\\%", "a\\%"], [True, False]),
    ("a.s LIKE b.s ESCAPE '!'", ["a%", "a\\b"], ["a!%", "a\\_"], [True, True]),
    ("a.s <> b.s", ["é", "e", None], ["e", "e", "e"], [True, False, None]),
    ("levenshtein(a.s, b.s) < 2", ["日本", "🤦é", ""], ["日木", "ab", "ö"], [True, False, True]),
    ("levenshtein(a.s, b.s) = 3", ["kitten", "äbc", "éa"], ["sitting", "xyö", "aéß"], [True, True, False]),
    ("concat(a.s, b.s) = 'xy'", ["x", None], ["y", "y"], [True, None]),
    ("a.x - b.x > 5D", [math.inf, 7.0, math.nan], [math.inf, 1.0, 0.0], [True, True, True]),
    ("a.x < b.x", [math.nan, 1.0, -0.0], [math.nan, math.nan, 0.0], [False, True, False]),
    ("sqrt(a.x - b.x) < 1", [0.0, 0.25], [1.0, 0.0], [False, True]),
    ("ln(a.x - b.x) < 1", [0.0, 2.0], [0.0, 1.0], [None, True]),
    ("a.i <=> b.i", [None, 1, None], [None, 1, 1], [True, True, False]),
    ("a.i IN (b.i, NULL)", [1, 2], [1, 1], [True, None]),
    ("try_divide(a.i, b.i) > 1", [3, 3], [0, 2], [None, True]),
    ("a.i / nullif(b.i, 0) > 1", [3, 3], [0, 2], [None, True]),
    ("a.age < b.age", [1, 14, None], [2, 13, 1], [True, False, None]),
    ("a.gap <> b.gap", [0, 10**18], [0, 10**18 - 1], [False, True]),
    ("CASE WHEN a.i > b.i THEN a.i - b.i ELSE NULL END = 2", [3, 1], [1, 3], [True, None]),
)


def type_of(operand: Operand) -> str:
    """Say what Spark would."""
    sql = operand.expression.sql
    if sql.strip("`") in TYPES:
        return TYPES[sql.strip("`")]
    return next((type_ for pattern, type_ in OF_EXPRESSIONS if re.fullmatch(pattern, sql)), "int")


def bound(condition: str) -> Query:
    schema = tuple(Column(name=name, type=type_) for name, type_ in TYPES.items())
    sources: dict[str, Source] = {name: Stream(name=name, time="ts", schema=schema) for name in "ab"}
    return bind_query(
        name="q",
        select=f"SELECT 1 FROM a, b WHERE {condition}",
        sink=SinkSpec(format="noop"),
        sources=sources,
        predicates=("near",),
    )


def shown(band: Band[Operand]) -> str:
    low, high = ("" if band.low is None else f"{band.low} <= "), ("" if band.high is None else f" <= {band.high}")
    sides = (f"{side.relation}.{side.expression.sql}" for side in (band.right, band.left))
    return f"{low}{' - '.join(sides)}{high} ({band.left.type})"


@pytest.mark.parametrize(("condition", "expected", "is_all"), BANDS)
def test_bounds_on_differences_are_found(condition: str, expected: str | None, is_all: bool) -> None:
    found = by_kind(resolve_residuals(bound(condition), type_of).predicates)
    assert [shown(band) for band in found.bands] == ([] if expected is None else [expected])
    assert [residual.sql != residual.text for residual in found.residuals] == ([] if is_all else [True])
    for residual in found.residuals:
        assert [operand.type for operand in residual.operands] == [type_of(operand) for operand in residual.operands]


def test_both_halves_of_between_bound_the_same_pair() -> None:
    condition = "b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 5 MINUTES"
    first, second = by_kind(resolve_residuals(bound(condition), type_of).predicates).bands
    assert shown(first) == "-1000000 <= b.`ts` - a.`ts` (timestamp)"
    assert shown(second) == "b.`ts` - a.`ts` <= 300000000 (timestamp)"


def test_a_registered_predicate_needs_types_only() -> None:
    (theta,) = resolve_residuals(bound("near(a.s, b.tags)"), type_of).predicates
    assert isinstance(theta, Residual)
    assert (theta.sql, [operand.type for operand in theta.operands]) == ("near", ["string", "array<int>"])


@pytest.mark.parametrize(("condition", "says"), REFUSED)
def test_what_duckdb_is_not_trusted_with_is_refused(condition: str, says: str) -> None:
    with pytest.raises(UnsupportedQueryError, match=re.escape(says)):
        resolve_residuals(bound(condition), type_of)


@pytest.mark.parametrize(("condition", "left", "right", "expected"), EVALUATED)
def test_duckdb_evaluates_as_spark_would(
    condition: str, left: list[Any], right: list[Any], expected: list[bool | None]
) -> None:
    (theta,) = bound(f"({condition}) IS NULL").residuals
    sql = theta.text.removeprefix("(").removesuffix(" IS NULL)")
    types = [type_of(operand) for operand in theta.operands]
    never_zero = [place for place, operand in enumerate(theta.operands) if "nullif" in operand.expression.sql]
    arrow = {"int": pa.int32(), "double": pa.float64(), "string": pa.string()}
    arrow |= {TYPES["gap"]: pa.duration("us"), TYPES["age"]: pa.int32()}
    sides = [left if operand.relation == "a" else right for operand in theta.operands]
    sides = [
        [None if value == 0 else value for value in side] if place in never_zero else side
        for place, side in enumerate(sides)
    ]
    given = pa.table({str(place): pa.array(side, arrow[types[place]]) for place, side in enumerate(sides)})
    found = duckdb.connect().from_arrow(given).select(value_of(sql, types, never_zero=never_zero).sql).fetchall()
    assert [row[0] for row in found] == expected


def test_another_time_zone_leaves_days_to_spark() -> None:
    def resolved(condition: str) -> Any:
        return by_kind(resolve_residuals(bound(condition), type_of, time_zone="Europe/Berlin").predicates).bands[0]

    assert shown(resolved("b.ts < a.ts + INTERVAL 2 HOURS")) == "b.`ts` - a.`ts` <= 7199999999 (timestamp)"
    assert shown(resolved("b.ts < a.ts + INTERVAL 1 DAY")) == "b.`ts` - a.`ts` + INTERVAL 1 DAY <= -1 (timestamp)"
    for condition in ("b.ts - a.ts < INTERVAL 5 MINUTES", "timestampdiff(HOUR, a.ts, b.ts) < 5"):
        with pytest.raises(UnsupportedQueryError, match=r"time zone, Europe/Berlin; set spark\.sql\.session\.timeZone"):
            resolved(condition)


def test_a_refusal_shows_the_predicate_as_its_author_knows_it() -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        resolve_residuals(bound("a.i + 1 < round(a.x * b.y)"), type_of)
    assert "query 'q': Plait cannot check ((a.`i` + 1) < round((a.`x` * b.`y`))) as Spark would" in str(caught.value)
    assert str(caught.value).endswith("or register a predicate in Python with engine.predicate(name, function)")


def test_a_refusal_points_at_its_predicate() -> None:
    """Also where types are known only when Spark is asked, by when the predicates have been cut and renamed."""
    query = bound("a.i = b.i AND a.x < b.x\n  AND a.s RLIKE b.s")
    with pytest.raises(UnsupportedQueryError) as caught:
        resolve_residuals(query, type_of)
    assert (caught.value.line, caught.value.column) == (2, 7)
    with pytest.raises(SqlError, match="cannot be a join key") as keyed:
        resolve_types(bound("a.i = b.i\n AND a.tags = b.tags"), type_of)
    assert (keyed.value.line, keyed.value.column) == (2, 6)


def test_is_distinct_compares_nulls_as_values() -> None:
    given = pa.table({"0": pa.array([1, 1, 1, None], pa.int32()), "1": pa.array([1, 2, None, None], pa.int32())})
    for sql, expected in (
        ("`0` IS DISTINCT FROM `1`", [False, True, True, False]),
        ("`0` IS NOT DISTINCT FROM `1`", [True, False, False, True]),
    ):
        written = value_of(sql, ["int", "int"]).sql
        rows = duckdb.connect().from_arrow(given).select(written).fetchall()
        assert [row[0] for row in rows] == expected


GUARDED = (
    (
        "(a.b <> b.b AND a.b * b.b < 50) OR a.s = b.s",
        [(4 * 10**9, 4 * 10**9, "u", "u"), (7, 6, "u", "v")],
        [True, True],
    ),
    ("a.b IN (b.b, a.b * b.b)", [(2**62, 2**62, "", ""), (None, 2**62, "", "")], [True, False]),
    ("a.s <> b.s AND a.b * b.b < 50", [(2**62, 2**62, "u", "u"), (7, 7, "u", "v")], [False, True]),
    ("a.b + b.b < 99 AND a.b * b.b < 50", [(2**40, 2**40, "", ""), (7, 7, "", "")], [False, True]),
    ("if(a.b = b.b, NULL, 5) < a.b * b.b", [(2**62, 2**62, "", ""), (7, 6, "", "")], [False, True]),
)


@pytest.mark.parametrize(("condition", "rows", "expected"), GUARDED)
def test_what_an_earlier_part_settles_need_not_be_computable(
    condition: str, rows: list[tuple[Any, ...]], expected: list[bool]
) -> None:
    found = by_kind(resolve_residuals(bound(condition), type_of).predicates)
    (residual,) = found.residuals
    left = dict(zip(("`b`", "`s`"), ("a", "s"), strict=True))
    names = [f"{operand.relation}{left[operand.expression.sql]}" for operand in residual.operands]
    columns = dict(zip(("aa", "ba", "as", "bs"), zip(*rows, strict=True), strict=True))
    table = pa.table({str(number): pa.array(columns[name]) for number, name in enumerate(names)})
    truths = duckdb.connect().from_arrow(table).project(residual.sql).fetchall()
    assert [truth is True for (truth,) in truths] == expected


def test_conditions_that_cannot_fail_are_written_as_they_are() -> None:
    types = ["double", "double", "bigint", "bigint"]
    text = '((("0" - "1") < "0") AND ("2" IN ("3", "2"))) OR ("2" = "3")'
    assert value_of(text.replace('"', "`"), types).sql == f"({text})"
