"""What the columns of a source may be called, and which types files of its format can have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from plait.query.model import Column
from plait.sources.formats import FORMATS, columns_of_format, format_of
from plait.spelling import folded

_FIELDS: Final = re.compile(r"struct<|[,:]|[<>()]|`(?:[^`]|``)*`|[^<>(),:`]+")
_VOIDLESS: Final = ("csv", "orc", "parquet")
_JSON_KEY: Final = re.compile(r"\bmap<(?!string\b)")


def declared_problem(format_: str, options: Iterable[tuple[str, str]], schema: Sequence[Column]) -> str | None:
    """Say why Spark does not read these declared columns of a format that says itself which it has, or None."""
    given = tuple(options)
    columns, known = columns_of_format(format_, given), format_of(format_)
    if known.keeps_malformed:
        return _corrupt_problem(given, schema)
    if known.has_log:
        return f"a table of {known.name} says itself which columns it has; leave the declaration of columns out"
    if columns is None:
        return None
    if len(columns) == 1 and known.takes_columns:
        only = columns[0]
        if len(schema) == 1 and schema[0].type.partition(" ")[0] == only.type:
            return None
        advice = f"declare ({only.name} {only.type.upper()})"
        return f"{known.name} has one column, of type {only.type.upper()}; {advice}, and take it apart in queries"
    shown = ", ".join(f"{column.name} {column.type.upper()}" for column in columns)
    types = {folded(column.name): column.type for column in columns}
    for column in schema:
        if types.get(folded(column.name)) != column.type:
            return (
                f"{known.name} has no column {column.name} {column.type.upper()}; it always has {shown}: leave the "
                "declaration of columns out"
            )
    if known.takes_columns and len(schema) < len(columns):
        return f"{known.name} always has {shown}: leave the declaration of columns out, or declare all of them"
    return None


def _corrupt_problem(options: Sequence[tuple[str, str]], schema: Sequence[Column]) -> str | None:
    names = [value for name, value in options if folded(name) == "columnnameofcorruptrecord"] or ["_corrupt_record"]
    for column in schema:
        if folded(column.name) == folded(names[0]) and column.type.partition(" ")[0] != "string":
            return (
                f"column '{column.name}' is to hold the text of records that cannot be read, and has type "
                f"{column.type}; declare it as STRING, or name another one with columnNameOfCorruptRecord"
            )
    return None


def column_problem(format_: str, column: Column) -> str | None:
    """Say why a format cannot have this column, or None."""
    if folded(format_) not in FORMATS:
        return None
    about = f"column '{column.name}' has type {column.type}"
    twice = _field_twice(column.type)
    if twice is not None:
        return f"{about}, in which two fields are called '{twice}'; Spark does not tell upper from lower case"
    nested = column.type.partition("<")[0]
    if format_of(format_).is_flat and nested in ("array", "map", "struct"):
        example = f"split({column.name}, ' ')" if nested == "array" else f"from_json({column.name}, '{column.type}')"
        return (
            f"{about}, which {format_} cannot hold; declare it as STRING, and take it apart in queries, as in {example}"
        )
    if column.type == "interval" and format_of(format_).reads_files:
        return f"{about}, which {format_} cannot hold; declare it as STRING, or as INTERVAL DAY TO SECOND"
    if column.type == "void" and folded(format_) in _VOIDLESS:
        return f"{about}, which {format_} cannot hold; leave it out, or declare the type that it has in the files"
    if folded(format_) == "json" and _JSON_KEY.search(column.type):
        return f"{about}, but JSON has texts for keys, so that no record could be read; declare MAP<STRING, ...>"
    return None


def _field_twice(type_: str) -> str | None:
    """Return the name that two fields of one struct in this type share, None if all differ."""
    structs: list[set[str] | None] = []
    before = ""
    for piece in _FIELDS.findall(type_):
        if piece in ("struct<", "<", "("):
            structs.append(set() if piece == "struct<" else None)
        elif piece in (">", ")"):
            structs.pop()
        elif piece == ":" and structs and structs[-1] is not None:
            if folded(before) in structs[-1]:
                return before.strip("`")
            structs[-1].add(folded(before))
        before = piece
    return None
