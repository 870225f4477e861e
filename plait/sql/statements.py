"""The statements of a script, read but not yet bound to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from plait.query.model import SinkSpec, Stream, Table

Places: TypeAlias = tuple[tuple[str, tuple[int, int]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOverride:
    """``WINDOW (o INTERVAL 10 SECONDS)`` in a query: the window of relation `alias`, None for unbounded."""

    alias: str
    window_us: int | None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSelect:
    """The text of a SELECT, which starts at (`line`, `column`) of the file."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream:
    """`places`: line and column of the parts errors may point at, by name (``time``, ``option path``, ...). `select`:
    what its rows are made of; the stream's schema is then that of what is read.
    """

    stream: Stream
    line: int
    column: int
    places: Places = ()
    select: WrittenSelect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """`places` and `select` as in `CreateStream`."""

    table: Table
    line: int
    column: int
    places: Places = ()
    select: WrittenSelect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateQuery:
    """`select` is the text of the SELECT, which starts at (`select_line`, `select_column`) of the file."""

    name: str
    sink: SinkSpec
    windows: tuple[WindowOverride, ...]
    select: str
    select_line: int
    select_column: int
    line: int
    column: int
    places: Places = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """`select` and where it starts as in `CreateQuery`."""

    name: str
    windows: tuple[WindowOverride, ...]
    select: str
    select_line: int
    select_column: int
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropQuery:
    """Stop a query, and forget it."""

    name: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """``SET name = value``."""

    name: str
    value: str
    line: int
    column: int


Statement: TypeAlias = CreateStream | CreateTable | CreateView | CreateQuery | DropQuery | SetOption


def place_of(statement: CreateStream | CreateTable | CreateQuery, part: str) -> tuple[int, int]:
    """Return where a part of the statement is, the statement's own place if it has no such part."""
    return dict(statement.places).get(part, (statement.line, statement.column))
