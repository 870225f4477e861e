"""``OPTIONS (key 'value', ...)``: reading them, and telling Plait's own from the connector's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from plait.errors import OptionError
from plait.query.model import KEEPS, PLACEMENTS, DeclaredStatistics, Keep, Options, Placement
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.durations import idle_us
from plait.sql.lexis.names import folded
from plait.sql.lexis.tokens import Token
from plait.sql.script.paths import absolute

_DISTINCT = "distinct."
_PATHS = ("path", "basepath", "sourcearchivedir", "rowvalidationxsdpath")
_STREAM_ONLY = ("rate", "idle", "deadletter", "keep", "placement")
_Choice = TypeVar("_Choice", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One option as written; `at` is its value."""

    name: str
    value: str
    at: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """A source's options, sorted out: `connector` goes to Spark, the rest is Plait's own."""

    connector: Options = ()
    declared: DeclaredStatistics = field(default_factory=DeclaredStatistics)
    idle_us: int | None = None
    dead_letter: str | None = None
    keep: Keep = "needed"
    placement: Placement = "keys"


def read_entries(cursor: Cursor) -> tuple[Entry, ...]:
    """Read ``(key 'value', key = 5, 'dotted.key' true)``."""
    cursor.expect_symbol("(", " after OPTIONS")
    entries: list[Entry] = []
    while not cursor.at_symbol(")"):
        name, at = _name(cursor)
        cursor.take_symbol("=")
        entry = Entry(name=name, value=_value(cursor, name), at=at)
        if any(folded(known.name) == folded(name) for known in entries):
            cursor.report(f"option '{name}' is given twice; keep one", at)
        entries.append(entry)
        if not cursor.take_symbol(","):
            break
    cursor.expect_symbol(")", " or ',' after the value of an option")
    return tuple(entries)


def source_options(cursor: Cursor, entries: Sequence[Entry], base: str, *, is_stream: bool) -> SourceOptions:
    """Sort out the options of a stream or table; what is wrong with Plait's own is reported to the cursor."""
    own = {folded(entry.name): entry for entry in entries if _is_own(entry.name)}
    for name, entry in own.items():
        if not is_stream and name in _STREAM_ONLY:
            cursor.report(
                f"option '{entry.name}' is for streams; a table does not arrive; remove it", entry.at, OptionError
            )
    distinct = tuple(
        (entry.name[len(_DISTINCT) :], count)
        for name, entry in own.items()
        if name.startswith(_DISTINCT) and (count := _count(cursor, entry)) is not None
    )
    dead_letter = own.get("deadletter")
    return SourceOptions(
        connector=plain_options([entry for entry in entries if not _is_own(entry.name)], base),
        declared=DeclaredStatistics(
            rate_rows_per_s=_count(cursor, own.get("rate")), rows=_count(cursor, own.get("rows")), distinct=distinct
        ),
        idle_us=_idle(cursor, own.get("idle")),
        dead_letter=absolute(dead_letter.value, base) if dead_letter else None,
        keep=_one_of(cursor, own.get("keep"), KEEPS),
        placement=_one_of(cursor, own.get("placement"), PLACEMENTS),
    )


def plain_options(entries: Sequence[Entry], base: str) -> Options:
    """Return options as Spark takes them, paths absolute."""
    return tuple(
        (entry.name, absolute(entry.value, base) if folded(entry.name) in _PATHS and entry.value else entry.value)
        for entry in entries
    )


def _is_own(name: str) -> bool:
    return folded(name) in ("rows", *_STREAM_ONLY) or folded(name).startswith(_DISTINCT)


def _name(cursor: Cursor) -> tuple[str, Token]:
    if cursor.token is not None and cursor.token.kind == "string":
        return cursor.string("the name of an option", joined=False)
    first = cursor.name("the name of an option")
    name = first.value
    while cursor.take_symbol("."):
        name += "." + cursor.name("the rest of the name of an option").value
    return name, first


def _value(cursor: Cursor, name: str) -> str:
    token = cursor.token
    if token is not None and token.kind == "string":
        return cursor.string("a value")[0]
    if token is not None and (token.kind == "number" or token.keyword in ("TRUE", "FALSE")):
        return cursor.advance().value
    raise cursor.expected(f"a value for option '{name}' in quotes, a number, true or false")


def _count(cursor: Cursor, entry: Entry | None) -> float | None:
    if entry is None:
        return None
    try:
        number = float(entry.value)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and number > 0:
        return number
    cursor.report(f"option '{entry.name}' is '{entry.value}'; expected a number above zero", entry.at, OptionError)
    return None


def _idle(cursor: Cursor, entry: Entry | None) -> int | None:
    if entry is None:
        return None
    try:
        return idle_us(entry.value)
    except OptionError as problem:
        cursor.report(f"option '{entry.name}': {problem.message}", entry.at, OptionError)
        return None


def _one_of(cursor: Cursor, entry: Entry | None, values: tuple[_Choice, ...]) -> _Choice:
    """Return the value of an option, the first of `values` where it is not given."""
    if entry is None:
        return values[0]
    chosen = next((value for value in values if value == entry.value.lower()), None)
    if chosen is None:
        expected = " or ".join(values)
        cursor.report(f"option '{entry.name}' is '{entry.value}'; expected {expected}", entry.at, OptionError)
    return chosen or values[0]
