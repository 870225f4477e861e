"""The type two join keys are compared in: Spark's coercion for ``=`` under ANSI mode (the default of Spark 4).

Types are Spark DDL in lower case. `tests/spark/test_common_type.py` compares the whole table with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from plait.errors import SqlError
from plait.query.model import Operand, OrderedType, Query, with_predicates
from plait.query.predicates import Conjunction, Equality

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FRACTIONAL = ("float", "double")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_OTHERS = ("string", "boolean", "binary")
_MAX_DIGITS = 38
_CALENDAR = ("year", "month")
_CLOCK = ("day", "hour", "minute", "second")


def is_key_type(type_: str) -> bool:
    """Tell whether a value of this type can be a join key at all; nested and collated types cannot, nor an interval of
    both months and days.
    """
    is_plain = type_ in (*_DIGITS, *_FRACTIONAL, *_TIMES, *_OTHERS) or _DECIMAL.fullmatch(type_) is not None
    return is_plain or is_calendar(type_) or is_clock(type_)


def is_calendar(type_: str) -> bool:
    """Tell whether a type is an interval of years and months, which Spark can hand to nobody as it is."""
    return _units(type_, _CALENDAR) is not None


def is_clock(type_: str) -> bool:
    """Tell whether a type is an interval of days and times of day, of fixed length."""
    return _units(type_, _CLOCK) is not None


def _units(type_: str, units: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the places of the first and the last unit of an interval among these units; None if it is of others."""
    words = type_.removeprefix("interval ").split(" to ") if type_.startswith("interval ") else []
    if not words or len(words) > 2 or not set(words) <= set(units):
        return None
    first, last = units.index(words[0]), units.index(words[-1])
    return (first, last) if first < last or len(words) == 1 else None


def common_type(left: str, right: str) -> str | None:
    """Return the type Spark casts both sides of ``left = right`` to, None if they cannot be compared as keys."""
    if not (is_key_type(left) and is_key_type(right)):
        return None
    if left == right:
        return left
    if left == "string":
        left, right = right, left
    if right == "string":
        return None if left.startswith("interval") else _with_string(left)
    if left in _TIMES and right in _TIMES:
        return "timestamp" if "timestamp" in (left, right) else "timestamp_ntz"
    return _numeric(left, right) or _wider_interval(left, right)


def resolve_types(query: Query, type_of: Callable[[Operand], str]) -> Query:
    """Return the query with the types of equalities filled in. Raises SqlError for operands that cannot be compared."""

    def resolved(predicates: Conjunction[Operand]) -> Conjunction[Operand]:
        return tuple(_resolved(query, each, type_of) if isinstance(each, Equality) else each for each in predicates)

    return with_predicates(query, resolved)


def _resolved(query: Query, equality: Equality[Operand], type_of: Callable[[Operand], str]) -> Equality[Operand]:
    left, right = type_of(equality.left), type_of(equality.right)
    problem = mismatch(_shown(equality.left), left, _shown(equality.right), right)
    if problem is not None:
        place = equality.place or query.place
        message = f"query '{query.name}': {problem}"
        raise SqlError(message, line=place.line, column=place.column, file=place.file)
    return typed(equality, common_type(left, right))


def typed(equality: Equality[Operand], type_: str | None) -> Equality[Operand]:
    """Return the equality of both sides as this type."""
    return replace(equality, left=replace(equality.left, type=type_), right=replace(equality.right, type=type_))


def _shown(operand: Operand) -> str:
    return f"{operand.expression.sql} of {operand.relation}"


def way_out(type_: str) -> str:
    """Say what to compare instead of values of a type that is no key."""
    if type_.startswith("string collate"):
        return "compare lower(CAST(x AS STRING)) with lower(CAST(y AS STRING)), without lower if case matters"
    return "compare a field of it, or cast it to a string"


def mismatch(left: str, left_type: str | None, right: str, right_type: str | None) -> str | None:
    """Say why two operands cannot be keys of each other, and what to do; None if they can, as far as is known."""
    for name, type_ in ((left, left_type), (right, right_type)):
        if type_ is not None and not is_key_type(type_):
            return f"{name} has type {type_}, which cannot be a join key; {way_out(type_)}"
    if left_type is None or right_type is None or common_type(left_type, right_type) is not None:
        return None
    return f"cannot compare {left} ({left_type}) with {right} ({right_type}); cast one of them to the other's type"


def ordered_type(type_: str | None) -> OrderedType | None:
    """Return the type in which the differences of such values are bounded; None if they have none.

    >>> ordered_type("timestamp_ntz"), ordered_type("decimal(10,2)"), ordered_type("string")
    ('timestamp_ntz', 'double', None)
    """
    match type_:
        case "tinyint" | "smallint" | "int" | "bigint" | "date" | "timestamp" | "timestamp_ntz" | "double":
            return type_
        case None:
            return None
        case _:
            return "double" if type_ == "float" or _DECIMAL.fullmatch(type_) else None


def _with_string(other: str) -> str:
    if other in _DIGITS:
        return "bigint"
    return "double" if other in _FRACTIONAL or _DECIMAL.fullmatch(other) else other


def _wider_interval(left: str, right: str) -> str | None:
    """Keep every unit of both."""
    for units in (_CALENDAR, _CLOCK):
        mine, theirs = _units(left, units), _units(right, units)
        if mine is not None and theirs is not None:
            first, last = min(mine[0], theirs[0]), max(mine[1], theirs[1])
            return f"interval {' to '.join(dict.fromkeys((units[first], units[last])))}"
    return None


def _numeric(left: str, right: str) -> str | None:
    if left in _DIGITS and right in _DIGITS:
        return max(left, right, key=_DIGITS.__getitem__)
    mine, theirs = _as_decimal(left), _as_decimal(right)
    if mine and theirs:
        return _wider_decimal(mine, theirs)
    return "double" if (mine or left in _FRACTIONAL) and (theirs or right in _FRACTIONAL) else None


def _as_decimal(type_: str) -> tuple[int, int] | None:
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def _wider_decimal(left: tuple[int, int], right: tuple[int, int]) -> str:
    """Keep every digit of both; beyond 38 digits the integral ones win, as in Spark."""
    scale = max(left[1], right[1])
    precision = max(left[0] - left[1], right[0] - right[1]) + scale
    excess = max(precision - _MAX_DIGITS, 0)
    return f"decimal({precision - excess},{max(scale - excess, 0)})"
