"""What the columns of a source may be called, and which types files of its format can have."""

from __future__ import annotations

import re
from typing import Final

from plait.query.model import Column
from plait.sources.formats import FORMATS, format_of
from plait.spelling import folded

_FIELDS: Final = re.compile(r"struct<|[,:]|[<>()]|`(?:[^`]|``)*`|[^<>(),:`]+")
_VOIDLESS: Final = ("csv", "orc", "parquet")
_JSON_KEY: Final = re.compile(r"\bmap<(?!string\b)")


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
