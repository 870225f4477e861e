"""What the columns of a bucket are, and the names that say so.

Buckets and manifests know columns by name alone, so that a bucket written for one plan serves another that wants the
same. A name therefore says everything: what kind of column it is, the type, and the expression it is computed from.
`stored_column` is the one place that reads a name back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from typing_extensions import assert_never

from plait.query.types import is_calendar

ColumnKind: TypeAlias = Literal["raw", "key", "ordered key", "value", "selected", "time", "bits"]
"""The user's own column; a key as int64, hashed or a number, or as the int64 of its order; the value of an expression;
whether a selection holds; event time; a word of query-set bits.
"""

BY_SIZE: Final = "#o "
"""Begins the names of keys that would be hashes if they were not compared by size (`KeyColumn.by_size`)."""

SELECTED: Final = "#s "
"""Begins the names of columns that tell whether a selection holds (`Selection.column`)."""

TAU: Final = "#tau"
"""The column of event time, int64 microseconds since the epoch."""

BITS: Final = "#bits"
"""Begins the names of query-set words."""

_OTHERS: Final = ("#until", "#row", "#i", "#newest", "#high", "#sent", "#serves")
"""What else operators, buckets and probe tasks call columns of theirs."""

_HASHED, _VALUE = "#k ", "#v "
_KINDS: Final[tuple[tuple[str, ColumnKind], ...]] = (
    (_HASHED, "key"),
    (BY_SIZE, "ordered key"),
    (_VALUE, "value"),
    (SELECTED, "selected"),
)
_LONG_TYPE = re.compile(r"interval \w+( to \w+)?|\S+ collate \S+")
"""Types of several words, as Spark writes them."""

_BARE = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """A column of a bucket. `text`: the expression it is computed from as Spark SQL, the selection, or the name of a
    raw column, of event time or of a word of bits. `type`: what the expression is cast to, None where there is none.
    """

    kind: ColumnKind
    text: str
    type: str | None = None

    @property
    def name(self) -> str:
        """The column's name in buckets."""
        match self.kind:
            case "raw" | "time" | "bits":
                return self.text
            case "key":
                return f"{_HASHED}{self.type} {self.text}"
            case "ordered key":
                return f"{BY_SIZE}{self.type} {self.text}"
            case "value":
                return f"{_VALUE}{self.type} {self.text}"
            case "selected":
                return SELECTED + self.text
            case _:
                assert_never(self.kind)

    @property
    def stored_type(self) -> str | None:
        """The Spark type of what is in the bucket, None for a raw column, whose source knows it."""
        match self.kind:
            case "raw":
                return None
            case "key" | "ordered key" | "time" | "bits":
                return "bigint"
            case "value":
                return "int" if self.type is not None and is_calendar(self.type) else self.type
            case "selected":
                return "boolean"
            case _:
                assert_never(self.kind)

    @property
    def value(self) -> StoredColumn:
        """The real value of the expression behind a key."""
        return StoredColumn(kind="value", text=self.text, type=self.type)

    @property
    def source_column(self) -> str | None:
        """The user's column that this one holds or is a key of, None if it is computed from an expression.

        >>> stored_column("#k bigint `a``b`").source_column, stored_column("#k string lower(`a`)").source_column
        ('a`b', None)
        """
        if self.kind == "raw":
            return self.text
        bare = _BARE.fullmatch(self.text) if self.type is not None else None
        return None if bare is None else bare.group(1).replace("``", "`")


def stored_column(name: str) -> StoredColumn:
    """Return what the column of this name is.

    >>> stored_column("#v interval day to second `a` - `b`").type
    'interval day to second'
    """
    if name == TAU:
        return StoredColumn(kind="time", text=name)
    if name.startswith(BITS):
        return StoredColumn(kind="bits", text=name)
    prefix, kind = next((each for each in _KINDS if name.startswith(each[0])), ("", None))
    if kind is None:
        return StoredColumn(kind="raw", text=name)
    rest = name.removeprefix(prefix)
    if kind == "selected":
        return StoredColumn(kind=kind, text=rest)
    end = _end_of_type(rest)
    return StoredColumn(kind=kind, type=rest[:end], text=rest[end + 1 :])


def name_problem(name: str) -> str | None:
    """Say why a user's column cannot be called so, because Plait would take it for one of its own; None if it can.

    >>> [name_problem(name) is None for name in ("#tau", "#bits2", "#k bigint `a`", "#id", "tau")]
    [False, False, False, True, True]
    """
    if stored_column(name).kind == "raw" and name not in _OTHERS:
        return None
    return f"column '{name}' has a name that Plait uses itself; give it another one"


def _end_of_type(text: str) -> int:
    """Return where the type at the start of `text` ends: at the first space outside ``<...>`` that is no part of it."""
    long = _LONG_TYPE.match(text)
    if long is not None:
        return long.end()
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == " " and depth == 0:
            return place
    return len(text)


__all__ = ["BITS", "BY_SIZE", "SELECTED", "TAU", "ColumnKind", "StoredColumn", "name_problem", "stored_column"]
