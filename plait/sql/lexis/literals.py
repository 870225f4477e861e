"""Literals: their Spark types, and how DuckDB writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from plait.errors import OptionError
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.durations import parse_duration_us
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token, rendered

INTERVAL: Final = "interval day to second"
"""The type of differences between times. DuckDB gets them as BIGINT microseconds, whose order and sums are Spark's."""

MONTHS: Final = "interval year to month"
"""The type of intervals of years and months, which DuckDB gets as their number of months."""

NOTHING: Final = "void"
"""The type of NULL."""

_NUMBER: Final = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(BD|[LSYDF])?", re.IGNORECASE)
_SUFFIXES: Final = {"L": "bigint", "S": "smallint", "Y": "tinyint", "D": "double", "F": "float"}
_WORDS: Final = {"TRUE": ("boolean", True), "FALSE": ("boolean", False), "NULL": (NOTHING, None)}
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?")
_TIMES: Final = {
    "DATE": ("date", _DATE),
    "TIMESTAMP": ("timestamp", _TIMESTAMP),
    "TIMESTAMP_LTZ": ("timestamp", _TIMESTAMP),
    "TIMESTAMP_NTZ": ("timestamp_ntz", _TIMESTAMP),
}
_MAX_DIGITS: Final = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A value written in a query. Numbers are Decimal (their digits are kept), intervals int microseconds, times the
    text between their quotes.
    """

    type: str
    value: Decimal | int | str | bool | None

    @property
    def sql(self) -> str:
        """The literal as DuckDB has it, of the DuckDB type that stands for `type`."""
        if self.type == NOTHING:
            return "NULL"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        quoted = "'" + str(self.value).replace("'", "''") + "'"
        return quoted if self.type == "string" else f"CAST({quoted} AS {duckdb_type(self.type)})"


def literal(text: str, tokens: Sequence[Token]) -> Literal | None:
    """Read a literal; None if these tokens are none, or one whose value only Spark knows."""
    first, rest = tokens[0], tokens[1:]
    if first.kind == "string":
        return _string(text, tokens)
    if first.keyword == "INTERVAL" and rest:
        return _interval(rendered(text, tokens, {}))
    if len(rest) == 1 and rest[0].kind == "string" and first.keyword in _TIMES:
        type_, form = _TIMES[first.keyword]
        return Literal(type=type_, value=rest[0].value) if form.fullmatch(rest[0].value) else None
    if rest:
        return None
    if first.kind == "number":
        return _number(text[first.start : first.end])
    if first.keyword in _WORDS:
        type_, value = _WORDS[first.keyword]
        return Literal(type=type_, value=value)
    return None


def duckdb_type(type_: str) -> str:
    """Return the DuckDB type that holds a Spark type's values."""
    return _DUCKDB[type_] if type_ in _DUCKDB else type_.upper()


_DUCKDB: Final = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp_ntz": "TIMESTAMP",
    INTERVAL: "BIGINT",
    MONTHS: "INTEGER",
}


def _string(text: str, tokens: Sequence[Token]) -> Literal | None:
    cursor = Cursor(SourceText(text=text), text, tokens, tokens[-1].end)
    value, _ = cursor.string("a string")
    return Literal(type="string", value=value) if cursor.token is None and "\0" not in value else None


def _interval(text: str) -> Literal | None:
    """Read an interval of fixed length; months and years have none."""
    try:
        return Literal(type=INTERVAL, value=parse_duration_us(text))
    except OptionError:
        return None


def _number(text: str) -> Literal | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits, exponent, suffix = match.group(1), match.group(2) or "", (match.group(3) or "").upper()
    value = Decimal(digits + exponent)
    if suffix in _SUFFIXES:
        return Literal(type=_SUFFIXES[suffix], value=value)
    if exponent and not suffix:
        return Literal(type="double", value=value)
    if suffix or "." in digits:
        return _decimal(value)
    return Literal(type=_integer_type(value), value=value) if value < 2**63 else _decimal(value)


def _integer_type(value: Decimal) -> str:
    return "int" if value < 2**31 else "bigint"


def _decimal(value: Decimal) -> Literal | None:
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    return Literal(type=f"decimal({precision},{scale})", value=value) if precision <= _MAX_DIGITS else None
