"""Values on their way to DuckDB: which type Spark makes them for an operation, and how.

A conversion is only written where both give the same value; the rest is left to the user, who can cast an operand:
that is Spark's work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from plait.query.types import common_type, way_out
from plait.sql.lexis.literals import INTERVAL, MONTHS, NOTHING, Literal, duckdb_type
from plait.sql.lexis.numbers import FLOATING, INTEGERS, TIMES, decimal_size, is_decimal, is_numeric

ALIKE: Final = re.compile(
    r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|boolean|date|timestamp|timestamp_ntz"
)
"""Types whose values Spark and DuckDB hand over alike, so that a column of one can be computed by the other."""

_COMPARED: Final = (*INTEGERS, *FLOATING, *TIMES, "date", "string", "boolean", "binary", INTERVAL, MONTHS, NOTHING)
_DOUBLE_DIGITS: Final = 15
_ALIASES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}


class Untranslatable(Exception):
    """A part that DuckDB is not trusted with: `reason` says which and why, `advice` what to do."""

    def __init__(self, reason: str, advice: str) -> None:
        self.reason, self.advice = reason, advice
        super().__init__(f"{reason}; {advice}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """DuckDB SQL, and the Spark type of what it yields. `never_zero`: safe to divide by. `never_negative`: not below 0,
    or NaN, or NULL; squares, absolute values and their sums are. `can_fail`: for some rows it may be an error.
    """

    sql: str
    type: str
    literal: Literal | None = None
    never_zero: bool = False
    never_negative: bool = False
    can_fail: bool = False


def common_type_of(values: Sequence[Value], what: str) -> str:
    """Return the type Spark compares these values in. Raises Untranslatable."""
    return reduce(lambda type_, value: _common(type_, value.type, what), values, NOTHING)


def _common(left: str, right: str, what: str) -> str:
    for type_ in (left, right):
        if type_ not in _COMPARED and not is_decimal(type_):
            raise Untranslatable(f"{what} of type {type_}", way_out(type_))
    if NOTHING in (left, right) or left == right:
        return right if left == NOTHING else left
    common = None if {left, right} & {"string", INTERVAL, MONTHS} else common_type(left, right)
    if common is None:
        raise Untranslatable(f"{what} between {left} and {right}", "cast one of them to the other's type")
    exact = decimal_size(left), decimal_size(right), decimal_size(common)
    if is_decimal(common) and exact[0] and exact[1] and exact[2]:
        digits = max(exact[0][0] - exact[0][1], exact[1][0] - exact[1][1]) + max(exact[0][1], exact[1][1])
        if digits > exact[2][0]:
            raise Untranslatable(f"{what} between {left} and {right} loses digits", "cast both to a smaller decimal")
    return common


def converted(value: Value, type_: str) -> str:
    """Write a value as one of a wider type. Raises Untranslatable where Spark and DuckDB may round differently."""
    if value.type == type_:
        return value.sql
    if value.type == NOTHING:
        return f"CAST(NULL AS {duckdb_type(type_)})"
    if value.literal is not None and is_numeric(value.type) and type_ in FLOATING:
        return f"CAST('{value.literal.value}' AS {duckdb_type(type_)})"
    size = decimal_size(value.type)
    if is_decimal(value.type) and type_ == "double" and size is not None and size[0] > _DOUBLE_DIGITS:
        raise Untranslatable(f"{value.type} as a double", "cast it to a double, in each relation")
    if not _widens(value.type, type_):
        raise Untranslatable(f"{value.type} as {type_}", "cast it, in each relation")
    return f"CAST({value.sql} AS {duckdb_type(type_)})"


def condition(value: Value, what: str) -> str:
    """Write a value that must be true or false."""
    if value.type not in ("boolean", NOTHING):
        raise Untranslatable(f"{what} of {value.type}", "compare it with something")
    return converted(value, "boolean")


def cast(value: Value, target: str) -> Value:
    """Write the user's own CAST. Raises Untranslatable for what the two convert differently."""
    type_ = _ALIASES.get(target, target).replace(", ", ",")
    if value.type == NOTHING and type_ in _COMPARED:
        return Value(sql=converted(value, type_), type=type_)
    narrower = value.type in INTEGERS and type_ in INTEGERS
    shown = value.type in INTEGERS and type_ == "string"
    if not (narrower or shown or value.type == type_ or _widens(value.type, type_)):
        raise Untranslatable(f"a cast from {value.type} to {target}", "cast operands of one relation, which Spark does")
    if narrower or shown:
        return Value(sql=f"CAST({value.sql} AS {duckdb_type(type_)})", type=type_)
    return Value(sql=converted(value, type_), type=type_, never_zero=value.never_zero)


def _widens(type_: str, wider: str) -> bool:
    if type_ in INTEGERS and wider in INTEGERS:
        return INTEGERS.index(type_) <= INTEGERS.index(wider)
    sizes = decimal_size(type_), decimal_size(wider)
    if sizes[0] is not None and sizes[1] is not None and is_decimal(wider):
        return sizes[0][0] - sizes[0][1] <= sizes[1][0] - sizes[1][1] and sizes[0][1] <= sizes[1][1]
    if wider == "double":
        return is_numeric(type_)
    if wider == "float":
        return type_ in INTEGERS
    return wider in TIMES and type_ in (*TIMES, "date")
