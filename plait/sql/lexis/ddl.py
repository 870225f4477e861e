"""Column lists in Spark DDL: ``(id BIGINT, addr STRUCT<city: STRING>)``. Types come out as Spark prints them."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Final

from plait.errors import SqlError
from plait.query.model import Column
from plait.sql.lexis import foreign
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.names import backquoted, did_you_mean, folded
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token, tokenize

_SIMPLE: Final = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
    "variant": "variant",
    "void": "void",
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_FOREIGN: Final = {
    "text": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "number": "decimal",
    "timestamptz": "timestamp",
    **dict.fromkeys(("int64", "int8", "hugeint"), "bigint"),
    **dict.fromkeys(("int32", "int4", "serial"), "int"),
    "int16": "smallint",
    **dict.fromkeys(("float64", "float8", "double precision"), "double"),
    **dict.fromkeys(("float32", "float4"), "float"),
    **dict.fromkeys(("uint64", "uint32"), "decimal(20,0)"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("uuid", "json", "jsonb", "enum", "nvarchar"), "string"),
}
_INTERVAL_UNITS: Final = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_CLOCK_UNITS: Final = ("day", "hour", "minute", "second")
_SPANS: Final = frozenset({"year to month", *(f"{first} to {last}" for first, last in combinations(_CLOCK_UNITS, 2))})
_COLLATION: Final = re.compile(
    r"(utf8_(binary|lcase)|unicode|[a-z]{2,3}(_[a-z]{4})?(_[a-z]{3})?)(_([ca][si]|rtrim))*", re.ASCII | re.IGNORECASE
)
"""Names of collations: those of Spark, and locales (`de`, `sr_Latn_SRB`), of which Spark knows which there are."""

_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def parse_columns(cursor: Cursor) -> tuple[Column, ...]:
    """Read ``(name type [NOT NULL] [COMMENT 'text'], ...)``. A stream cannot promise NOT NULL, so it is ignored."""
    cursor.expect_symbol("(")
    columns: list[Column] = []
    while True:
        answer = foreign.between_columns(cursor.token, cursor.ahead(1))
        if answer is not None:
            raise cursor.error(answer)
        name = cursor.name("the name of a column")
        if cursor.at_word("AS"):
            raise cursor.error(foreign.computed_column(name.value))
        if any(folded(column.name) == folded(name.value) for column in columns):
            cursor.report(f"column '{name.value}' is declared twice; Spark does not tell upper from lower case", name)
        columns.append(Column(name=name.value, type=parse_type(cursor)))
        cursor.take_word("NOT", "NULL")
        _skip_comment(cursor)
        if not cursor.take_symbol(","):
            break
    answer = foreign.after_type(cursor.token)
    if answer is not None:
        raise cursor.error(answer)
    cursor.expect_symbol(")", " or ',' after the type of a column")
    return tuple(columns)


def parse_type(cursor: Cursor) -> str:
    """Read a type."""
    token = cursor.name("a type")
    word = token.value.lower()
    if word == "timestamp" and cursor.take_word("WITHOUT", "TIME", "ZONE"):
        return "timestamp_ntz"
    if word in _SIMPLE:
        return _SIMPLE[word] + _collation(cursor, word)
    if word in _DECIMALS:
        return _decimal(cursor, token)
    if word == "array":
        return f"array<{_parameters(cursor, token, 1)[0]}>"
    if word == "map":
        return "map<{},{}>".format(*_parameters(cursor, token, 2))
    if word == "struct":
        return _struct(cursor)
    if word == "interval":
        return _interval(cursor)
    if word == "time":
        return _time(cursor, token)
    raise cursor.error(_unknown_type(token.value), token)


def struct_fields(type_: str) -> tuple[Column, ...] | None:
    """Return the fields of a struct type; None for any other type, and where a field's name lacks quotes."""
    if not type_.startswith("struct<") or type_ == "struct<>":
        return () if type_ == "struct<>" else None
    source = SourceText(text=type_)
    try:
        cursor = Cursor(source, type_, tokenize(source, type_, 0, len(type_)), len(type_))
        cursor.advance()
        cursor.advance()
        return _fields(cursor)
    except SqlError:
        return None


def _skip_comment(cursor: Cursor) -> None:
    if cursor.take_word("COMMENT"):
        cursor.string("the text of the comment")


def _collation(cursor: Cursor, word: str) -> str:
    if word != "string" or not cursor.take_word("COLLATE"):
        return ""
    token = cursor.name("a collation")
    if not _COLLATION.fullmatch(token.value):
        names = ("UTF8_BINARY", "UTF8_LCASE", "UNICODE", "UNICODE_CI", "UNICODE_CI_AI")
        cursor.report(f"'{token.value}' is not a collation of Spark{did_you_mean(token.value, names)}", token)
    return f" collate {token.value.upper()}"


def _time(cursor: Cursor, token: Token) -> str:
    digits = _numbers(cursor, 1)[0] if cursor.at_symbol("(") else 6
    if digits > 6:
        cursor.report(f"time({digits}) is finer than a microsecond, which Spark has not; write TIME(6)", token)
    return f"time({digits})"


def _decimal(cursor: Cursor, token: Token) -> str:
    precision, scale = 10, 0
    if cursor.at_symbol("("):
        precision, scale = (*_numbers(cursor, 2), 0)[:2]
    if not 1 <= precision <= 38 or scale > precision:
        message = f"decimal({precision},{scale}) is impossible; use 1 to 38 digits, at most all of them after the point"
        cursor.report(message, token)
    return f"decimal({precision},{scale})"


def _numbers(cursor: Cursor, at_most: int) -> list[int]:
    cursor.expect_symbol("(")
    numbers: list[int] = []
    while True:
        token = cursor.token
        if token is None or token.kind != "number" or not token.value.isdigit():
            raise cursor.expected("a whole number")
        numbers.append(int(cursor.advance().value))
        if len(numbers) == at_most or not cursor.take_symbol(","):
            break
    cursor.expect_symbol(")")
    return numbers


def _parameters(cursor: Cursor, token: Token, count: int) -> list[str]:
    cursor.expect_symbol(
        "<", f" after {token.value}: write for example {'array<int>' if count == 1 else 'map<string,int>'}"
    )
    types = [parse_type(cursor)]
    while len(types) < count:
        cursor.expect_symbol(",")
        types.append(parse_type(cursor))
    _close(cursor)
    return types


def _close(cursor: Cursor) -> None:
    if not cursor.take_angle():
        raise cursor.expected("'>'")


def _struct(cursor: Cursor) -> str:
    if cursor.take_symbol("<>"):
        return "struct<>"
    cursor.expect_symbol("<", " after STRUCT: write for example struct<city: string>")
    fields = _fields(cursor)
    shown = ",".join(
        f"{field.name if _PLAIN.fullmatch(field.name) else backquoted(field.name)}:{field.type}" for field in fields
    )
    return f"struct<{shown}>"


def _fields(cursor: Cursor) -> tuple[Column, ...]:
    fields: list[Column] = []
    while True:
        name = cursor.name("the name of a field").value
        cursor.take_symbol(":")
        fields.append(Column(name=name, type=parse_type(cursor)))
        cursor.take_word("NOT", "NULL")
        _skip_comment(cursor)
        if not cursor.take_symbol(","):
            break
    _close(cursor)
    return tuple(fields)


def _interval(cursor: Cursor) -> str:
    if not cursor.at_word(*_INTERVAL_UNITS):
        return "interval"
    token = cursor.advance()
    first = token.value.lower()
    if not cursor.take_word("TO"):
        return f"interval {first}"
    last = cursor.name("a unit of time").value.lower()
    if f"{first} to {last}" not in _SPANS:
        spans = "YEAR TO MONTH, or two of DAY, HOUR, MINUTE, SECOND, the longer one first, as in DAY TO SECOND"
        cursor.report(f"there is no interval {first} to {last}; use {spans}", token)
    return f"interval {first} to {last}"


def _unknown_type(name: str) -> str:
    lower = name.lower()
    if lower in ("char", "varchar", "character"):
        return f"Spark cannot read a source with type {name}; declare the column as STRING"
    if lower in _FOREIGN:
        return f"'{name}' is not a type of Spark; use {_FOREIGN[lower].upper()}"
    known = (*_SIMPLE, *_DECIMALS, "array", "map", "struct", "interval", "time")
    return f"'{name}' is not a type of Spark{did_you_mean(lower, known)}"
