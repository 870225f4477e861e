"""Join predicates as DuckDB evaluates them, and as indexes look them up, against Spark: equal for every nasty value.

Everything the translation lets through is here, over pairs of rows full of NULLs, NaN, infinities, zeros of both signs,
largest and smallest numbers, odd characters and far-off times. Spark evaluates all of it in one go.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from plait.operators.traversal.results import made_rows
from plait.query.model import Column, ColumnRef, JoinedExpression, Operand, Query, SinkSpec, Source, Stream
from plait.query.predicates import Band, ByKind, by_kind
from plait.sql import bind_query
from plait.sql.lexis.literals import INTERVAL
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.predicates.translation import value_of
from plait.sql.select.formulas import made_of

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "abc",
    "é",
    "e",
    "日本",
    "日木",
    "🤦🏼",
    "a%b",
    "a_b",
    "a\\b",
    "ß",
    "z",
    "i\u0307",
    " a",
    "a\nb",
)
PATTERNS = ("", "%", "_", "a%", "%b", "a_b", "a\\%b", "a\\_b", "a\\\\b", "__", "日%", "%é%", "a%b%", "_\n_", "\\%")
NOON_US = 1_709_208_000_000_000
FAR_TIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999, -1, 0, 1, 1_582_934_400_000_000)

VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "t": (pa.int8(), (-60, -3, -1, 0, 1, 2, 7, 60)),
    "h": (pa.int16(), (-170, -3, -1, 0, 1, 2, 7, 170)),
    "i": (pa.int32(), (-1000, -3, -1, 0, 1, 2, 3, 7, 40_000)),
    "ie": (pa.int32(), (-(2**31), 2**31 - 1, -1, 0, 1, 16_777_217)),
    "b": (pa.int64(), (-(10**9), -3, -1, 0, 1, 2, 7, 10**9)),
    "be": (pa.int64(), (-(2**63), 2**63 - 1, -1, 0, 1, 2**53 + 1, 2**53)),
    "f": (pa.float32(), (NAN, INF, -INF, 0.0, -0.0, 0.1, -1.5, 1.0, 3.4e38, 1e-45, 16_777_216.0)),
    "x": (pa.float64(), (NAN, INF, -INF, 0.0, -0.0, 0.1, -1.5, 1.0, 1.7e308, 5e-324, 0.30000000000000004, 1e15)),
    "y": (pa.float64(), (0.0, 0.1, 0.3, 0.7, 1.0, -1.0, 2.0, 3.5, -100.25, 1e-9)),
    "m": (pa.decimal128(10, 2), tuple(map(Decimal, ("0.00", "0.10", "-1.50", "1.00", "99999999.99", "-99999999.99")))),
    "w": (pa.decimal128(30, 5), tuple(map(Decimal, ("0", "0.00001", "-1.5", "1", "1234567890123456789012345.00001")))),
    "s": (pa.string(), TEXTS),
    "p": (pa.string(), PATTERNS),
    "d": (pa.date32(), (date(1969, 12, 31), *(date(2024, 2, day) for day in (1, 2, 5, 28, 29)))),
    "de": (pa.date32(), (date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1582, 10, 4))),
    "ts": (pa.timestamp("us", "UTC"), tuple(NOON_US + step for step in (0, 1, -1, 299_999_999, 86_400_000_000))),
    "te": (pa.timestamp("us", "UTC"), FAR_TIMES),
    "n": (pa.timestamp("us"), FAR_TIMES),
    "q": (pa.bool_(), (True, False)),
    "z": (pa.binary(), (b"", b"\x00", b"a", b"\xff", b"a\x00")),
    "g": (pa.duration("us"), (0, 1, -1, 299_999_999, 86_400_000_000, -86_400_000_001)),
    "ge": (pa.duration("us"), (-(2**63), 2**63 - 1, 0, 1, 86_400_000_000)),
}  # fmt: skip
TYPES = {
    "t": "tinyint",
    "h": "smallint",
    "i": "int",
    "ie": "int",
    "b": "bigint",
    "be": "bigint",
    "f": "float",
    "x": "double",
    "y": "double",
    "m": "decimal(10,2)",
    "w": "decimal(30,5)",
    "s": "string",
    "p": "string",
    "d": "date",
    "de": "date",
    "ts": "timestamp",
    "te": "timestamp",
    "n": "timestamp_ntz",
    "q": "boolean",
    "z": "binary",
    "g": "interval day to second",
    "ge": "interval day to second",
}
ROWS = 500

COMPARED = (
    ("a.t", "b.t"), ("a.t", "b.be"), ("a.h", "b.i"), ("a.ie", "b.ie"), ("a.ie", "b.be"), ("a.be", "b.be"),
    ("a.f", "b.f"), ("a.x", "b.x"), ("a.f", "b.x"), ("a.ie", "b.f"), ("a.be", "b.x"), ("a.be", "b.f"), ("a.m", "b.m"),
    ("a.m", "b.w"), ("a.w", "b.w"), ("a.m", "b.ie"), ("a.be", "b.m"), ("a.m", "b.x"), ("a.m", "b.f"), ("a.s", "b.s"),
    ("a.s", "b.p"), ("a.de", "b.de"), ("a.te", "b.te"), ("a.de", "b.te"), ("a.n", "b.n"), ("a.n", "b.te"),
    ("a.n", "b.de"), ("a.q", "b.q"), ("a.z", "b.z"),
    ("a.g", "b.g"), ("a.ge", "b.ge"),
)  # fmt: skip
SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

EXPRESSIONS = (
    # logic
    "a.q AND b.q", "a.q OR b.q", "NOT (a.q = b.q)", "(a.i < b.i) IS NULL", "(a.i < b.i) IS NOT NULL",
    "(a.i < b.i) IS TRUE", "(a.i < b.i) IS NOT FALSE", "a.i IS DISTINCT FROM b.i", "a.i IN (1, b.i, b.i + 1)",
    "a.x IN (b.x, 0.0D)", "a.s NOT IN (b.s, 'a')", "a.i NOT IN (b.i, NULL)", "a.i BETWEEN b.i AND b.b",
    "a.x NOT BETWEEN b.x AND b.y", "isnull(a.i + b.i)", "isnotnull(a.i + b.i)", "a.i = b.i OR a.s = b.s",
    "CASE WHEN a.i < b.i THEN a.x ELSE b.i END", "CASE a.i WHEN b.i THEN 1 WHEN 7 THEN b.b END",
    "if(a.i < b.i, a.s, b.s)", "coalesce(a.i, b.b)", "ifnull(a.s, b.s)", "nvl(a.x, b.i)", "nullif(a.i, b.i)",
    "nullif(a.x, b.x)", "greatest(a.x, b.x)", "least(a.x, b.x, 0D)", "greatest(a.i, b.b)", "least(a.s, b.s)",
    "greatest(a.de, b.de)", "least(a.te, b.te)",
    # numbers
    "a.t + b.t", "a.t - b.h", "a.h * b.h", "a.i + b.b", "a.i * b.i", "a.b - b.b", "a.f + b.f", "a.f * b.f", "a.f - b.y",
    "a.x + b.x", "a.x - b.x", "a.x * b.x", "a.i + b.x", "a.b * b.y", "a.i + b.f", "a.b - b.f", "a.m + b.m", "a.m - b.i",
    "a.m * b.m", "a.w + b.m", "a.w - b.w", "a.m + b.x", "a.m * b.f", "a.i - b.i + 1.5", "(a.i - b.i) * 0.5",
    "(a.x - b.x) * 0.1", "-(a.i + b.i)", "-(a.x * b.x)", "-(a.m - b.m)", "+(a.t + b.t)", "~(a.i + b.i)", "a.ie & b.be",
    "a.ie | b.ie", "a.be ^ b.ie", "a.i + b.i - 3 * 2 + 1L", "abs(a.i - b.i)", "abs(a.x - b.x)", "abs(a.m - b.m)",
    "(a.i + b.i) / 7", "(a.x - b.x) / 3", "(a.m - b.m) / 2D", "a.i / nullif(b.i, 0)", "a.x / nullif(b.x, 0)",
    "try_divide(a.i, b.i)", "try_divide(a.x, b.x)", "try_divide(a.m, b.y)", "(a.i - b.i) % 3", "(a.x - b.x) % 3",
    "(a.x - b.y) % -2.5D", "a.b % nullif(b.i, 0)", "(a.i + b.b) DIV 7", "a.h DIV nullif(b.i, 0)",
    "CAST(a.t + b.t AS BIGINT)", "CAST(a.i - b.i AS DOUBLE)", "CAST(a.b + b.i AS STRING)", "(a.t * 1 + b.t)::TINYINT",
    "CAST(a.f - b.f AS DOUBLE)", "CAST(a.i + b.i AS DECIMAL(20,2))", "CAST(a.m - b.m AS DOUBLE)", "isnan(a.x - b.x)",
    "a.i + b.i = 10", "a.i - b.i < 1.5", "a.x - b.x < 0.1", "a.b + b.i < 99999999999", "5 > a.t + b.t",
    "a.i + b.i < 1e3",
    # text
    *(f"a.s LIKE {pattern}" for pattern in ("b.p", "concat('%', replace(b.s, '\\\\', ''), '%')",
    "replace(b.s, '\\\\', '%')")),
    "a.s NOT LIKE b.p", "a.s LIKE concat(b.s, '!%') ESCAPE '!'", "concat(a.s, b.s) LIKE 'a%'", "a.s || b.s",
    "a.s ILIKE replace(b.s, '\\\\', '')", "if(a.i < b.i, lower(a.s), lower(b.s)) LIKE lower('A%')",
    "concat(a.s, b.s, 'x')", "startswith(a.s, b.s)", "endswith(a.s, b.s)", "contains(a.s, b.s)", "length(a.s || b.s)",
    "char_length(concat(a.s, b.s)) > 3", "levenshtein(a.s, b.s)", "levenshtein(concat(a.s, b.p), b.s)",
    # time
    "a.te + INTERVAL 1 HOUR > b.te", "a.ts - b.ts", "a.ts - b.ts < INTERVAL 5 MINUTES", "abs(a.ts - b.ts)",
    "a.ts + (b.ts - a.ts)", "a.d - b.d", "a.d - b.d <= INTERVAL '3' DAY", "datediff(a.d, b.d)", "date_add(a.d, b.i)",
    "date_sub(a.de, b.t)", "a.d + b.h", "a.ts - b.n", "a.n - b.n", "-(a.ts - b.ts)", "(a.ts - b.ts) + (a.n - b.n)",
    "a.g + b.g", "a.ts + b.g > b.ts", "a.ts - b.ts < a.g", "-(a.g - b.g)",
    *(f"timestampdiff({unit}, a.ts, b.ts)" for unit in ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")),
    "datediff(HOUR, a.ts, b.ts)", "timestampdiff(HOUR, a.d, b.ts)", "greatest(a.ts, b.ts) > TIMESTAMP '2024-02-29'",
    "coalesce(a.d, b.d) = DATE '2024-02-29'", "if(a.i < b.i, a.d, b.d) < DATE'2024-02-05'",
)  # fmt: skip
"""What must come out bit for bit the same."""

APPROXIMATE = (
    *(f"{name}(a.x - b.x)" for name in ("sqrt", "cbrt", "exp", "ln", "log", "log10", "log2", "sin", "cos", "tan",
    "atan")),
    *(f"{name}(a.y - b.y)" for name in ("sqrt", "asin", "acos", "ln", "radians", "degrees")),
    "atan2(a.x, b.x)", "pow(a.y, b.y)", "power(a.x, b.x)", "pow(a.x - b.x, 2)", "pi() * (a.y + b.y)",
    "sqrt(pow(a.y - b.y, 2) + pow(a.i - b.i, 2))",
    "2 * 6371 * asin(sqrt(pow(sin(radians(a.y - b.y) / 2), 2) + cos(radians(a.y)) * cos(radians(b.y))"
    " * pow(sin(radians(a.y - b.y) / 2), 2)))",
)  # fmt: skip
"""What two mathematical libraries compute: a few units in the last place may differ."""

BANDS = (
    *(f"a.{left} {sign} b.{right}" for sign in ("<", "<=", ">", ">=") for left, right in (
        ("ie", "be"), ("x", "x"), ("f", "x"), ("m", "m"), ("be", "x"), ("w", "m"), ("be", "m"), ("de", "de"),
        ("te", "te"), ("de", "te"), ("n", "n"), ("n", "te"), ("f", "f"),
    )),
    "NOT (a.i < b.i)", "NOT (a.x < b.x)", "a.i + 5 > b.b - 3", "a.i < 2 + b.i", "abs(a.i - b.i) < 5",
    "5.5 >= abs(b.i - a.b)",
    "a.i - b.i > 3", "a.i - b.i = 4", "a.i - b.i + 1 <= 4.5", "a.i - b.t BETWEEN -3 AND 7",
    "a.ts < b.ts - INTERVAL 5 MINUTES",
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 00:01' DAY TO MINUTE", "a.ts - b.ts < INTERVAL 5 MINUTES",
    "abs(a.ts - b.ts) <= INTERVAL 299999999 MICROSECONDS", "a.d < date_add(b.d, 3)", "a.d - 3 <= b.d",
    "a.d - b.d < INTERVAL '3' DAY", "datediff(a.d, b.d) >= 2", "a.d >= b.d + INTERVAL 4 DAYS",
    "a.d + INTERVAL 4 HOURS > b.ts",
    "a.d + 1 < b.ts", "a.x - b.x < 1.5", "1.5 > a.x - b.x", "abs(a.x - b.x) <= 0.2", "a.y - b.y < 0.2",
    "abs(a.f - b.f) < 1",
    "a.y BETWEEN b.y - 0.2 AND b.y + 0.2", "a.x <= b.x + 1", "a.m - b.m <= 0.1", "abs(a.w - b.m) < 2",
    "a.m < b.m + 1.6",
    "a.i - b.y < 1", "a.i < b.i + 1.5", "a.f < b.f + 1.5",
)  # fmt: skip

OVERFLOWS = (
    "a.t + b.t",
    "a.h * b.h",
    "a.i - b.i",
    "a.b + b.b",
    "-(a.b * b.t)",
    "abs(a.i * b.t)",
    "CAST(a.i * b.t AS TINYINT)",
)


def column(name: str, rng: random.Random, other: Sequence[Any] | None) -> list[Any]:
    """Draw values, one in ten NULL; one in four is what the other relation has there."""
    values = VALUES[name][1]
    drawn = [None if rng.random() < 0.1 else rng.choice(values) for _ in range(ROWS)]
    return [theirs if rng.random() < 0.25 else mine for mine, theirs in zip(drawn, other or drawn, strict=True)]


@pytest.fixture(scope="module")
def pairs(spark: SparkSession) -> DataFrame:
    """Return pairs of rows: columns ``a`` and ``b`` are structs, so that Spark reads ``a.i`` as the query does."""
    rng = random.Random(4)
    left = {name: column(name, rng, None) for name in VALUES}
    right = {name: column(name, rng, left[name]) for name in VALUES}
    fields = [pa.field(name, type_) for name, (type_, _) in VALUES.items()]
    structs = [
        pa.StructArray.from_arrays([pa.array(side[field.name], field.type) for field in fields], fields=fields)
        for side in (left, right)
    ]
    frame = spark.createDataFrame(pa.table({"a": structs[0], "b": structs[1]})).coalesce(1)
    return frame.selectExpr(typed_struct("a"), typed_struct("b")).cache()


def typed_struct(side: str) -> str:
    """Give the columns the types they are named for: naive times would become instants."""
    columns = (f"'{name}', CAST({side}.`{name}` AS {type_})" for name, type_ in TYPES.items())
    return f"named_struct({', '.join(columns)}) AS {side}"


def bound(condition: str) -> Query:
    schema = tuple(Column(name=name, type=type_) for name, type_ in TYPES.items())
    sources: dict[str, Source] = {name: Stream(name=name, time="ts", schema=schema) for name in "ab"}
    sink = SinkSpec(format="noop")
    return bind_query(name="q", select=f"SELECT 1 FROM a, b WHERE {condition}", sink=sink, sources=sources)


def in_pairs(operand: Operand) -> str:
    """Write an operand over the columns of `pairs`."""
    sql = operand.expression.sql
    for name in operand.expression.columns:
        sql = sql.replace(f"`{name}`", f"{operand.relation}.`{name}`")
    return sql


def type_in(pairs: DataFrame) -> Callable[[Operand], str]:
    known: dict[str, str] = {}

    def type_of(operand: Operand) -> str:
        sql = in_pairs(operand)
        if sql not in known:
            known[sql] = pairs.selectExpr(sql).schema[0].dataType.simpleString()
        return known[sql]

    return type_of


def computed(pairs: DataFrame, expressions: Sequence[str]) -> pa.Table:
    """Let Spark compute expressions; times come without a zone."""
    frame = pairs.selectExpr(*(f"{expression} AS `{index}`" for index, expression in enumerate(expressions)))
    table = frame.toArrow()
    arrays = []
    for array in table.columns:
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp("us"))
        arrays.append(array.combine_chunks())
    return pa.table(arrays, names=[str(index) for index in range(len(arrays))])


def cut(expression: str) -> tuple[str, tuple[Operand, ...]]:
    """Return an expression of any type, cut into operands."""
    (theta,) = bound(f"({expression}) IS NULL").residuals
    return theta.text.removeprefix("(").removesuffix(" IS NULL)"), theta.operands


def both(pairs: DataFrame, expressions: Sequence[str]) -> Iterator[tuple[str, str, str, list[Any], list[Any]]]:
    """Yield (expression, its type in Spark, its type here, Spark's values, DuckDB's values)."""
    type_of = type_in(pairs)
    cuts = [cut(expression) for expression in expressions]
    distinct = {in_pairs(operand): operand for _, operands in cuts for operand in operands}
    operands = computed(pairs, list(distinct))
    places = {sql: index for index, sql in enumerate(distinct)}
    schema = pairs.selectExpr(*(f"({expression}) AS c" for expression in expressions)).schema
    expected = computed(pairs, [f"({expression})" for expression in expressions])
    connection = duckdb.connect()
    for index, (expression, (sql, used)) in enumerate(zip(expressions, cuts, strict=True)):
        never_zero = [place for place, operand in enumerate(used) if operand.expression.sql.startswith("nullif(")]
        value = value_of(sql, [type_of(operand) for operand in used], never_zero=never_zero)
        given = operands.select([places[in_pairs(operand)] for operand in used]).rename_columns(
            [str(place) for place in range(len(used))]
        )
        found = connection.from_arrow(given).select(value.sql).to_arrow_table().column(0)
        theirs = schema[index].dataType.simpleString().split(" day")[0]
        wanted = expected.column(index)
        yield expression, theirs, value.type.split(" day")[0], exact(wanted), exact(found.cast(wanted.type))


def exact(array: pa.ChunkedArray) -> list[Any]:
    """Return values that compare as they are: times as numbers."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return [repr(value) if isinstance(value, float) else value for value in array.to_pylist()]


def shown_rows(pairs: DataFrame, wrong: Sequence[int]) -> str:
    rows = pairs.toArrow().to_pylist()
    return str([rows[index] for index in wrong[:2]])


def zeros_alike(value: Any) -> Any:
    return "0.0" if value == "-0.0" else value


def test_comparisons_are_those_of_spark(pairs: DataFrame) -> None:
    expressions = [f"{left} {sign} {right}" for left, right in COMPARED for sign in SIGNS]
    for expression, _, type_, wanted, found in both(pairs, expressions):
        wrong = [index for index, (one, two) in enumerate(zip(wanted, found, strict=True)) if one != two]
        assert (expression, type_, wrong) == (expression, "boolean", [])


def test_expressions_have_the_types_and_the_values_of_spark(pairs: DataFrame) -> None:
    problems = []
    for expression, theirs, ours, wanted, found in both(pairs, EXPRESSIONS):
        wrong = [
            (index, one, two)
            for index, (one, two) in enumerate(zip(map(zeros_alike, wanted), map(zeros_alike, found), strict=True))
            if one != two
        ]
        if wrong or (theirs != ours and not theirs.startswith("decimal")):
            problems.append((expression, theirs, ours, len(wrong), wrong[:3]))
    assert problems == []


GUARDED = (
    "abs(a.i) < 9 AND b.be BETWEEN -9 AND 9 AND (a.i * b.be < 5 AND a.i + b.be > 0 OR a.s = b.s)",
    "b.be BETWEEN -2 AND 2 AND a.be BETWEEN -2 AND 2 AND a.be + b.be < 2 OR NOT a.q",
    "NOT (a.q OR b.q OR a.ie IS NULL OR b.ie IS NULL OR abs(CAST(a.ie AS BIGINT)) > 9 OR abs(CAST(b.ie AS BIGINT)) > 9"
    " OR a.ie * b.ie > 0)",
    "a.be = b.be OR a.be < -9 OR b.be < -9 OR a.be > 9000 OR b.be > 9000 OR a.be * b.be = 7",
    "(a.be > 9 OR b.be > 9 OR a.be < -9 OR b.be < -9 OR a.be * b.be = 1) AND (a.s = b.s OR a.q)",
    "a.i IN (b.i, if(abs(a.i) < 9 AND b.be BETWEEN -9 AND 9, a.i * b.be, 0))",
    "if(a.be BETWEEN -9 AND 9 AND abs(b.i) < 9, a.be, NULL) IN (b.i, a.be * b.i, a.be + b.i, NULL)",
    "if(abs(a.ie + 0L) < 9 AND abs(b.ie + 0L) < 9, 0, NULL) BETWEEN a.ie * b.ie AND a.ie - b.ie",
    "if(abs(a.ie + 0L) < 9 AND abs(b.ie + 0L) < 9, 0, NULL) NOT BETWEEN a.ie - b.ie AND a.ie * b.ie",
    "if(abs(a.ie + 0L) < 9 AND abs(b.ie + 0L) < 9, 5, NULL) > a.ie * b.ie",
    "if(a.be BETWEEN -9 AND 9 AND abs(b.i) < 9, 5, NULL) - a.be * b.i < 3",
    "CAST(NULL AS BOOLEAN) AND a.i * b.i < 5 OR a.i < b.i",
    "a.be BETWEEN -9 AND 9 AND b.be BETWEEN -9 AND 9 AND CAST(a.be * b.be AS TINYINT) > 3 OR a.s <> b.s",
)
"""They have values only because Spark leaves out what earlier parts settle."""


CONDITIONS = (
    *(f"{left} {sign} {right}" for left, right in COMPARED[::3] for sign in SIGNS[2::2]),
    *("a.q", "b.q", "a.i IN (1, b.i, NULL)", "a.s LIKE b.p", "contains(a.s, b.s)", "levenshtein(a.s, b.s) < 3"),
    *("CAST(NULL AS BOOLEAN)", "a.i < 3", "b.s IS NULL"),
    *("a.i + b.i > 3", "a.x - b.x < 0.1", "abs(a.m - b.m) <= 1", "a.ts - b.ts < INTERVAL 5 MINUTES", "TRUE"),
)
COMPOSITIONS = (
    *("({0}) AND ({1})", "({0}) OR ({1})", "NOT ({0})", "NOT {0}", "CASE WHEN {0} THEN {1} ELSE {2} END"),
    *(
        "({0}) = ({1})",
        "({0}) <=> ({1})",
        "({0}) IS NULL",
        "if({0}, {1}, {2})",
        "coalesce({0}, {1})",
        "{0} AND {1} OR {2}",
    ),
)


def composed(rng: random.Random, depth: int) -> str:
    """Put conditions together; those of one relation alone become parts of operands."""
    if depth == 0:
        return rng.choice(CONDITIONS)
    return rng.choice(COMPOSITIONS).format(*(composed(rng, rng.randrange(depth)) for _ in range(3)))


def test_conditions_put_together_at_random_are_those_of_spark(pairs: DataFrame) -> None:
    rng = random.Random(11)
    drawn = (composed(rng, 3) for _ in range(400))
    conditions = list(dict.fromkeys(text for text in drawn if "a." in text and "b." in text and len(text) < 400))[:120]
    for condition, _, type_, wanted, found in both(pairs, conditions):
        wrong = [index for index, (one, two) in enumerate(zip(wanted, found, strict=True)) if one != two]
        assert (condition, type_, wrong) == (condition, "boolean", [])


@pytest.fixture
def each_by_itself(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from computing at once what several columns of a SELECT list have in common, guarded or not: a join
    has one condition.
    """
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    yield
    spark.conf.unset("spark.sql.subexpressionElimination.enabled")


@pytest.mark.usefixtures("each_by_itself")
def test_parts_that_cannot_be_computed_are_left_out_as_spark_leaves_them_out(pairs: DataFrame) -> None:
    for condition, _, type_, wanted, found in both(pairs, GUARDED):
        wrong = [index for index, (one, two) in enumerate(zip(wanted, found, strict=True)) if one != two]
        assert (condition, type_, wrong) == (condition, "boolean", [])
        assert {True} < set(wanted), condition


def test_mathematical_functions_differ_in_the_last_places_at_most(pairs: DataFrame) -> None:
    problems = []
    for expression, theirs, ours, wanted, found in both(pairs, APPROXIMATE):
        wrong = [
            (one, two)
            for one, two in zip(wanted, found, strict=True)
            if (one is None) != (two is None) or (one is not None and not close(float(one), float(two)))
        ]
        if wrong or theirs != ours:
            problems.append((expression, theirs, ours, len(wrong), wrong[:3]))
    assert problems == []


def close(one: float, two: float) -> bool:
    return repr(one) == repr(two) or abs(one - two) <= 4e-16 * max(abs(one), abs(two))


def test_bands_hold_what_spark_lets_through(pairs: DataFrame) -> None:
    type_of = type_in(pairs)
    cases = [(text, found) for text in BANDS for found in resolved_one_by_one(text, type_of)]
    conditions = {text: conjunct(text) for text in BANDS}
    truths = computed(pairs, [f"coalesce(({text}), FALSE)" for texts in conditions.values() for text in texts])
    keys: dict[tuple[str, str], list[Any]] = {}
    for _, found in cases:
        for side in (side for band in found.bands for side in (band.left, band.right)):
            keys.setdefault((in_pairs(side), side.type or ""), []).append(f"CAST({in_pairs(side)} AS {side.type})")
    values = computed(pairs, [sqls[0] for sqls in keys.values()])
    by_key = {key: exact_numbers(values.column(index)) for index, key in enumerate(keys)}
    assert len(cases) == len(truths.columns)
    for (text, found), truth in zip(cases, truths.columns, strict=True):
        if not found.bands:
            assert [residual.sql != residual.text for residual in found.residuals] == [True]
            continue
        (band,) = found.bands
        sides = (by_key[(in_pairs(side), side.type or "")] for side in (band.left, band.right))
        inside = [within(band, left, right) for left, right in zip(*sides, strict=True)]
        wanted = truth.to_pylist()
        missed = [index for index, (holds, is_in) in enumerate(zip(wanted, inside, strict=True)) if holds and not is_in]
        assert (text, missed) == (text, [])
        if not found.residuals:
            assert (text, wanted) == (text, inside)


def resolved_one_by_one(text: str, type_of: Callable[[Operand], str]) -> Iterator[ByKind[Operand]]:
    """Yield what each predicate of a condition amounts to."""
    query = bound(text)
    for predicate in query.predicates:
        yield by_kind(resolve_residuals(replace(query, predicates=(predicate,)), type_of).predicates)


def conjunct(text: str) -> list[str]:
    """Cut BETWEEN in two, as the front end does."""
    if " BETWEEN " not in text:
        return [text]
    value, bounds = text.split(" BETWEEN ")
    low, high = bounds.split(" AND ")
    return [f"{value} >= {low}", f"{value} <= {high}"]


def exact_numbers(array: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return array.to_pylist()


def within(band: Band[Operand], left: Any, right: Any) -> bool:
    """Look up ``left + bound`` in the order of Spark, NaN last, with what is allowed for rounding."""
    if left is None or right is None:
        return False

    def reached(bound: float, direction: int) -> Any:
        if band.order != "double":
            return left + bound
        slack = 0.0 if not bound else 2.0**-49 * max(abs(left), abs(right), abs(bound))
        return left + bound + direction * (slack if slack < INF else 0.0)

    def key(value: Any) -> tuple[bool, Any]:
        return (True, 0) if value != value else (False, value)

    low = band.low is None or key(reached(band.low, -1)) <= key(right)
    high = band.high is None or key(right) <= key(reached(band.high, 1))
    return low and high


@pytest.mark.parametrize("expression", OVERFLOWS)
def test_what_overflows_in_spark_fails_here_too(spark: SparkSession, expression: str) -> None:
    sql, operands = cut(expression)
    extremes = {"t": 127, "h": 32_767, "i": 2**31 - 1, "b": 2**63 - 1}
    names = [operand.expression.columns[0] for operand in operands]
    signs = [-1 if operand.relation == "b" and " - " in expression else 1 for operand in operands]
    given = pa.table(
        {
            str(index): pa.array([sign * extremes[name]], VALUES[name][0])
            for index, (name, sign) in enumerate(zip(names, signs, strict=True))
        }
    )
    frame = spark.createDataFrame(given)
    with pytest.raises(PySparkException):
        frame.selectExpr(sql).collect()
    with pytest.raises(duckdb.Error):
        duckdb.connect().from_arrow(given).select(value_of(sql, [TYPES[name] for name in names]).sql).fetchall()


def test_dates_and_times_of_the_test_are_what_they_seem() -> None:
    assert datetime.fromtimestamp(NOON_US / 1e6, timezone.utc).isoformat() == "2024-02-29T12:00:00+00:00"
    assert INTERVAL.startswith("interval day")


def selected(expressions: Sequence[str]) -> list[tuple[JoinedExpression, tuple[ColumnRef, ...]]]:
    """Return the expressions as columns of a SELECT list."""
    schema = tuple(Column(name=name, type=type_) for name, type_ in TYPES.items())
    sources: dict[str, Source] = {name: Stream(name=name, time="ts", schema=schema) for name in "ab"}
    columns = ", ".join(f"{expression} AS c{index}" for index, expression in enumerate(expressions))
    select = f"SELECT {columns} FROM a, b WHERE a.i = b.i"
    query = bind_query(name="q", select=select, sink=SinkSpec(format="noop"), sources=sources)
    return [(column.expression, column.expression.columns) for column in query.output]


SELECTED = (
    *(text for text in (*EXPRESSIONS, *APPROXIMATE) if "lower(" not in text),
    *(f"{left} {sign} {right}" for left, right in COMPARED for sign in SIGNS),
    "a.i", "a.z", "a.te", "a.n", "a.i + 5", "-a.x", "-a.f", "-a.i", "a.i + 5 * b.i - 1", "a.m * 2", "a.m + 0.5", "1",
    "'text'", "a.s || ': ' || b.s", "a.i IS NULL", "a.te + INTERVAL 1 HOUR", "a.d + 1", "date_add(a.d, 7)", "NOT a.q",
    "CAST(a.i AS STRING)", "CAST(a.i AS BIGINT)", "CAST(a.f AS DOUBLE)", "a.x * 0", "a.x * -1", "a.f % 2",
    "coalesce(a.s, 'none')", "CASE WHEN a.i > 1 AND b.i < 2 OR a.q THEN a.s END", "abs(a.x)", "abs(a.f)", "sqrt(a.x)",
    "a.y / 3", "CAST(a.b AS DOUBLE) / 3", "a.i BETWEEN 1 AND 7", "a.s LIKE 'a%'", "DATE '2024-02-29'", "2.5", "1e3",
    "a.m + 1", "a.w - 1", "a.i * 1.5", "greatest(a.x, 0D)", "least(a.f, b.f)", "pi()", "length(a.s)",
)  # fmt: skip


def test_columns_of_the_select_list_are_those_of_spark_to_the_bit(pairs: DataFrame) -> None:
    columns = selected(SELECTED)
    schema = pairs.selectExpr(*(f"({expression}) AS c" for expression in SELECTED)).schema
    refs = list(dict.fromkeys(ref for _, used in columns for ref in used))
    operands = pairs.selectExpr(*(f"{ref.relation}.`{ref.column}`" for ref in refs)).toArrow()
    stored = pa.table(operands.columns, names=[ref.name for ref in refs]).combine_chunks().to_batches()[0]
    expected = pairs.selectExpr(*(f"({expression}) AS c{n}" for n, expression in enumerate(SELECTED))).toArrow()
    problems, done = [], 0
    for text, (expression, used), field, wanted in zip(SELECTED, columns, schema, expected.columns, strict=True):
        type_ = field.dataType.simpleString()
        made = made_of([(expression, type_)], {ref: TYPES[ref.column] for ref in used}, time_zone="UTC")
        if made is None:
            continue
        done += 1
        rows = stored.select([ref.name for ref in used]) if used else pa.record_batch({"#row": pa.nulls(ROWS)})
        found = made_rows(rows, made).column(0).cast(wanted.type)
        side_by_side = zip(exact(wanted), exact(pa.chunked_array([found])), strict=True)
        wrong = [(theirs, ours) for theirs, ours in side_by_side if theirs != ours]
        if wrong:
            problems.append((text, type_, len(wrong), wrong[:3]))
    assert problems == []
    assert done > 250
