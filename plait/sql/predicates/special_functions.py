"""Functions that take values of any comparable type, or that need more than a text with holes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from plait.sql.lexis.literals import INTERVAL, NOTHING, Literal, literal
from plait.sql.lexis.numbers import is_numeric
from plait.sql.lexis.operators import Additive, Comparison, ConstantTest
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import tokenize
from plait.sql.predicates.arithmetic import quotient
from plait.sql.predicates.coercions import Untranslatable, Value, common_type_of, condition, converted
from plait.sql.predicates.duckdb_functions import STRING


class Writer(Protocol):
    """What writes operations."""

    def as_type(self, value: Value, type_: str) -> str:
        """Write a value as one of a wider type."""

    def compared(self, kind: Comparison, left: Value, right: Value) -> Value:
        """Write a comparison."""

    def is_constant(self, kind: ConstantTest, part: Value) -> Value:
        """Write ``part IS NULL`` and the like."""

    def time(self, kind: Additive, left: Value, right: Value) -> Value | None:
        """Write a sum or difference of times and intervals, None if it is none."""


Special: TypeAlias = Callable[[Writer, Sequence[Value]], Value | None]


def _abs(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``abs(x)``."""
    if len(parts) != 1 or not (is_numeric(parts[0].type) or parts[0].type == INTERVAL):
        return None
    sql, type_ = f"abs({parts[0].sql})", parts[0].type
    return Value(sql=sql, type=type_, never_zero=parts[0].never_zero, never_negative=is_numeric(type_))


def _choice(writer: Writer, name: str, parts: Sequence[Value]) -> Value:
    """``coalesce``, ``greatest`` and ``least``; the latter two leave NULLs out, in both."""
    type_ = common_type_of(parts, name)
    return Value(sql=f"{name}({', '.join(writer.as_type(part, type_) for part in parts)})", type=type_)


def _nullif(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``nullif(x, y)``; with a zero for y it can be divided by."""
    if len(parts) != 2:
        return None
    equal = writer.compared("=", *parts)
    is_zero = parts[1].literal is not None and parts[1].literal.value == 0
    sql = f"(CASE WHEN {equal.sql} THEN NULL ELSE {parts[0].sql} END)"
    return Value(sql=sql, type=parts[0].type, never_zero=is_zero)


def _if(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``if(condition, x, y)``."""
    if len(parts) != 3:
        return None
    type_ = common_type_of(parts[1:], "if()")
    yes, no = (writer.as_type(part, type_) for part in parts[1:])
    return Value(sql=f"(CASE WHEN {condition(parts[0], 'if()')} THEN {yes} ELSE {no} END)", type=type_)


def _try_divide(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``try_divide(x, y)``: NULL where y is zero."""
    if len(parts) != 2 or not all(is_numeric(part.type) for part in parts):
        return None
    divided = quotient(*parts)
    divisor = writer.as_type(parts[1], "double")
    return Value(sql=f"(CASE WHEN {divisor} = 0 THEN NULL ELSE {divided.sql} END)", type="double")


def _concat(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``concat(x, y, ...)``: NULL if one of them is."""
    if len(parts) < 2 or not all(part.type in (STRING, NOTHING) for part in parts):
        return None
    return Value(sql=f"({' || '.join(writer.as_type(part, STRING) for part in parts)})", type=STRING)


def _lower(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``lower('text')`` of ASCII; beyond that the two have different letters."""
    text = parts[0].literal.value if len(parts) == 1 and parts[0].literal is not None else None
    if not isinstance(text, str) or not text.isascii() or parts[0].type != STRING:
        return None
    constant = Literal(type=STRING, value=text.lower())
    return Value(sql=constant.sql, type=STRING, literal=constant)


def _days(writer: Writer, parts: Sequence[Value]) -> Value | None:
    """``datediff(end, start)``."""
    if len(parts) != 2 or any(part.type != "date" for part in parts):
        return None
    return Value(sql=f"CAST({parts[0].sql} - {parts[1].sql} AS INTEGER)", type="int")


def _later(writer: Writer, kind: Additive, parts: Sequence[Value]) -> Value | None:
    """``date_add(date, days)`` and ``date_sub``."""
    if len(parts) != 2 or parts[0].type != "date":
        return None
    return writer.time(kind, *parts)


def _nothing(writer: Writer, kind: ConstantTest, parts: Sequence[Value]) -> Value | None:
    """``isnull(x)`` and ``isnotnull(x)``."""
    return writer.is_constant(kind, parts[0]) if len(parts) == 1 else None


def like(value: Value, pattern: Value, tail: str) -> str:
    """Write ``value LIKE pattern``. `tail`: its ESCAPE clause, or "". Raises Untranslatable."""
    if not {value.type, pattern.type} <= {STRING, NOTHING}:
        raise Untranslatable(f"LIKE between {value.type} and {pattern.type}", "cast it to a string")
    escape = r"'\'"
    if tail:
        text = tail.removeprefix(" ESCAPE ")
        constant = literal(text, tokenize(SourceText(text=text), text, 0, len(text)))
        if constant is None or constant.type != STRING:
            raise Untranslatable(f"ESCAPE {text}", "write the escape character as a string")
        escape = constant.sql
    return f"({converted(value, STRING)} LIKE {converted(pattern, STRING)} ESCAPE {escape})"


SPECIAL: Final[Mapping[str, Special]] = MappingProxyType(
    {
        "abs": _abs,
        "coalesce": lambda writer, parts: _choice(writer, "coalesce", parts),
        "ifnull": lambda writer, parts: _choice(writer, "coalesce", parts),
        "nvl": lambda writer, parts: _choice(writer, "coalesce", parts),
        "greatest": lambda writer, parts: _choice(writer, "greatest", parts),
        "least": lambda writer, parts: _choice(writer, "least", parts),
        "nullif": _nullif,
        "if": _if,
        "try_divide": _try_divide,
        "concat": _concat,
        "lower": _lower,
        "datediff": _days,
        "date_diff": _days,
        "date_add": lambda writer, parts: _later(writer, "+", parts),
        "dateadd": lambda writer, parts: _later(writer, "+", parts),
        "date_sub": lambda writer, parts: _later(writer, "-", parts),
        "isnull": lambda writer, parts: _nothing(writer, "IS NULL", parts),
        "isnotnull": lambda writer, parts: _nothing(writer, "IS NOT NULL", parts),
    }
)
"""By name. None: not for arguments like these."""
