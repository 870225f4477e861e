"""Spark SQL to DuckDB, for the constructs that the tests use.

What differs, and what is done about it:

- TIMESTAMP: Spark's is an instant shown in the session's time zone. Everything here is UTC, and DuckDB uses its naive
  TIMESTAMP, so the two agree.
- ``xxhash64``: Spark's own, because tasks compute it too where they can. Of what they cannot hash (intervals) any good
  64-bit hash does, if equal values have equal hashes and unequal values unequal ones: DuckDB's ``hash``. A
  deliberately weak hash can be asked for where the engine must not trust it (strings, wide decimals).
- ``LIKE`` without ESCAPE: a backslash escapes in Spark, nothing does in DuckDB; so it is written out.
- ``levenshtein`` counts characters in Spark, and bytes in older versions of DuckDB: a plain Python function counts.
- Predicates that cases register are macros.
- The difference of two dates is an interval in Spark, a number of days in DuckDB: where it is compared with an interval
  it is that of timestamps.
- Integers are long enough: the generators avoid overflow, division, and text functions beyond simple letters.
- Spark compares a text with a number, a date, a truth value or bytes by casting the text, DuckDB does not: so the cast
  is written for columns whose name tells that they can be read (`tests.property.values.TEXTS_OF_OTHERS`).
- Intervals are numbers, of microseconds or of months, in tables, in what they are cast to and compared with.
"""

from __future__ import annotations

import functools

import duckdb
import sqlglot
from sqlglot import exp

from tests.oracle.spark_hashes import FUNCTIONS
from tests.property.patterns import distance
from tests.property.registered import REGISTERED

_MACROS = (
    "CREATE OR REPLACE MACRO strong_hash(v) AS CAST(CAST(hash(v) AS HUGEINT) - 9223372036854775808 AS BIGINT)",
    "CREATE OR REPLACE MACRO timestamp_micros(v) AS make_timestamp(v)",
    "CREATE OR REPLACE MACRO weak_hash(v) AS CAST(hash(v) % 3 AS BIGINT)",
    *(f"CREATE OR REPLACE MACRO {each.name}(a, b) AS {each.duckdb}" for each in REGISTERED),
)
_DAY_ZERO = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
_READ_AS = {"ntext": "BIGINT", "dtext": "DATE", "btext": "BOOLEAN", "xtext": "BLOB"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Between, exp.In)
_NARROW_DECIMAL_DIGITS = 18
_DISTANCE = "characters_apart"


def connect() -> duckdb.DuckDBPyConnection:
    """Return a single-threaded in-memory database, in UTC, with the macros and functions used here."""
    connection = duckdb.connect(config={"threads": 1})
    for macro in _MACROS:
        connection.execute(macro)
    connection.create_function(_DISTANCE, functools.cache(distance), ["VARCHAR", "VARCHAR"], "INTEGER")
    for name, function, type_ in FUNCTIONS:
        connection.create_function(name, function, [type_], "BIGINT")
    return connection


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return this process's database."""
    return connect()


@functools.lru_cache(maxsize=4096)
def to_duckdb(sql: str, *, weak_hash: bool = False) -> str:
    """Translate one Spark SQL statement or expression."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    return rendered(tree, weak_hash=weak_hash)


def rendered(tree: exp.Expression, *, weak_hash: bool = False) -> str:
    """Return a parsed Spark SQL tree as DuckDB text. The tree is rewritten in place."""
    for node in list(tree.find_all(exp.DataType)):
        if node.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            node.set("this", exp.DataType.Type.TIMESTAMP)
        if isinstance(node.this, exp.Interval):
            is_calendar = "YEAR" in node.sql().upper() or "MONTH" in node.sql().upper()
            node.set("this", exp.DataType.Type.INT if is_calendar else exp.DataType.Type.BIGINT)
    root = exp.Paren(this=tree)
    for call in list(root.find_all(exp.UnixMicros)):
        call.replace(exp.Anonymous(this="epoch_us", expressions=[call.this]))
    for call in list(root.find_all(exp.UnixDate)):
        call.replace(
            exp.Anonymous(this="date_diff", expressions=[exp.Literal.string("day"), _DAY_ZERO.copy(), call.this])
        )
    for call in list(root.find_all(exp.TsOrDsAdd, exp.DateAdd)):
        call.replace(exp.cast(call.copy(), "DATE"))
    for text in list(root.find_all(exp.Column)):
        if isinstance(text.parent, _COMPARISONS) and not all(map(_read_as, text.parent.iter_expressions())):
            type_ = _read_as(text)
            if type_ is not None:
                text.replace(exp.cast(text.copy(), type_))
    for test in list(root.find_all(exp.LT, exp.LTE, exp.GT, exp.GTE)):
        if not isinstance(test.expression, exp.Interval):
            continue
        if isinstance(test.this, exp.Sub):
            for side in (test.this.this, test.this.expression):
                side.replace(exp.cast(side.copy(), "TIMESTAMP"))
        else:
            test.expression.replace(exp.Literal.number(int(test.expression.name)))
    for call in list(root.find_all(exp.Levenshtein)):
        call.replace(exp.Anonymous(this=_DISTANCE, expressions=[call.this, call.expression]))
    for match in list(root.find_all(exp.Like)):
        if not isinstance(match.parent, exp.Escape):
            match.replace(exp.Escape(this=match.copy(), expression=exp.Literal.string("\\")))
    for call in list(root.find_all(exp.Anonymous)):
        if call.name.lower() == "xxhash64":
            value = call.expressions[0]
            if weak_hash and not _is_fixed_width(value.to):
                call.set("this", "weak_hash")
            else:
                name, form = _hash_of(value.to)
                call.set("this", name)
                call.set("expressions", [sqlglot.parse_one(form.format(value.sql(dialect="duckdb")), dialect="duckdb")])
    return root.this.sql(dialect="duckdb")


def _read_as(side: exp.Expression) -> str | None:
    """Return the type that a text stands for, None if it is any other column."""
    return _READ_AS.get(side.name.lower().rstrip("0123456789")) if isinstance(side, exp.Column) else None


def _hash_of(kind: exp.DataType) -> tuple[str, str]:
    """Return the function that hashes values of a type as Spark does, and how its argument is written."""
    if kind.is_type(*exp.DataType.TEXT_TYPES):
        return "hash_of_text", "{}"
    if kind.is_type("binary", "varbinary"):
        return "hash_of_binary", "{}"
    if kind.is_type("boolean"):
        return "hash_of_narrow", "CAST({} AS INTEGER)"
    if kind.is_type("float"):
        return "hash_of_float", "{}"
    if kind.is_type("double"):
        return "hash_of_double", "{}"
    if kind.is_type("timestamp", "timestampntz"):
        return "hash_of_long", "epoch_us({})"
    if kind.is_type("decimal"):
        digits = "replace(CAST({} AS VARCHAR), '.', '')"
        return ("hash_of_long", f"CAST({digits} AS BIGINT)") if _is_fixed_width(kind) else ("hash_of_wide", digits)
    return "strong_hash", "{}"


def _is_fixed_width(kind: exp.DataType) -> bool:
    if kind.is_type(*exp.DataType.TEXT_TYPES, "binary", "varbinary"):
        return False
    if kind.is_type("decimal"):
        return int(kind.expressions[0].name) <= _NARROW_DECIMAL_DIGITS
    return True
