"""``FORMAT json (columns)``: how it is written, and which of a source's options say how its values are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from plait.query.origin import Decoding, Options, ValueFormat
from plait.sources.values import avro_columns, is_value_option
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_columns
from plait.sql.lexis.names import did_you_mean, folded
from plait.sql.script.paths import absolute

_FORMATS: Final[tuple[ValueFormat, ...]] = ("json", "csv", "avro")


def read_decoding(cursor: Cursor, base: str) -> Decoding:
    """Read what follows FORMAT: ``json (id BIGINT, ...)``, ``csv (...)``, or ``avro ('schema or its file')``; the path
    of a file is relative to `base`. Raises SqlError.
    """
    token = cursor.name("json, csv or avro after FORMAT")
    format_ = next((each for each in _FORMATS if each == folded(token.value)), None)
    if format_ is None:
        raise cursor.error(f"there is no FORMAT {token.value}{did_you_mean(token.value, _FORMATS)}", token)
    if format_ == "avro":
        return _avro(cursor, base)
    if not cursor.at_symbol("("):
        raise cursor.expected(f"the columns of the values: FORMAT {format_} (id BIGINT, ts TIMESTAMP)")
    return Decoding(format=format_, columns=parse_columns(cursor))


def _avro(cursor: Cursor, base: str) -> Decoding:
    cursor.expect_symbol("(", " and the schema of the values, or its file: FORMAT avro ('orders.avsc')")
    if cursor.token is not None and cursor.token.kind in ("word", "quoted"):
        raise cursor.error(
            "values in Avro say nothing about their fields, so that a list of columns is not enough; give the schema "
            "they were written with, in quotes, or the name of its file: FORMAT avro ('orders.avsc')"
        )
    written, at = cursor.string("a schema in quotes")
    cursor.expect_symbol(")", " after the schema")
    text = written
    if not written.lstrip().startswith(("{", "[", '"')):
        try:
            text = Path(absolute(written, base)).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
            raise cursor.error(f"the schema '{written}' cannot be read: {reason}; correct its path", at) from problem
    try:
        columns = avro_columns(json.loads(text))
    except ValueError as problem:
        raise cursor.error(f"this is no schema of Avro: {problem}; give a record in Avro's JSON", at) from problem
    return Decoding(format="avro", columns=columns, schema=text)


def decoded_with(format_: str, options: Options, decoding: Decoding | None) -> tuple[Options, Decoding | None]:
    """Return the options that say how a source is read, and the decoding with those that say how its values are."""
    if decoding is None:
        return options, None
    of_values = tuple(pair for pair in options if is_value_option(decoding.format, pair[0], read_as=format_))
    return tuple(pair for pair in options if pair not in of_values), replace(decoding, options=of_values)


def decoding_problem(format_: str, decoding: Decoding, *, has_value: bool) -> str | None:
    """Say why the values of a format cannot be decoded, or None."""
    if has_value:
        return None
    return (
        f"FORMAT {decoding.format} decodes the column 'value' of what is read, and {format_} has none; read it with "
        f"USING {decoding.format}, or take columns apart with AS SELECT"
    )


__all__ = ["decoded_with", "decoding_problem", "read_decoding"]
