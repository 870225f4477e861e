"""The clauses of CREATE STREAM and CREATE TABLE, and how formats and durations are written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from plait.errors import OptionError, SqlError
from plait.query.model import Column, Connector, Stream, Table
from plait.query.origin import Decoding
from plait.sql.lexis import foreign
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.durations import delay_us, refresh_us, window_us
from plait.sql.lexis.names import did_you_mean, folded
from plait.sql.lexis.tokens import Token
from plait.sql.script.decoding import decoded_with, read_decoding
from plait.sql.script.entries import Entry, read_entries, source_options
from plait.sql.script.event_time import read_event_time
from plait.sql.statements import CreateStream, CreateTable, Places, WrittenSelect

CLAUSES: Final = ("OPTIONS", "TIMESTAMP", "WINDOW", "DELAY", "REFRESH", "FORMAT", "AS")
_OF_TABLES: Final = ("OPTIONS", "REFRESH", "FORMAT", "AS")
_FOR_TABLE: Final = "OPTIONS, REFRESH, FORMAT or AS SELECT"
_PLACES: Final = {"FORMAT": "decoding", "AS": "select"}
"""What the places of these clauses are called: ``format`` is that of the format behind USING."""


class SourceClauses:
    """The clauses of CREATE STREAM and CREATE TABLE after the name, in any order, each at most once; AS SELECT is the
    last one. Paths in them are relative to `base`.
    """

    def __init__(self, cursor: Cursor, base: str) -> None:
        self._cursor, self._base = cursor, base
        self.seen: dict[str, tuple[int, int]] = {}
        self.schema: tuple[Column, ...] | None = None
        self.format = ""
        self.entries: tuple[Entry, ...] = ()
        self.time: str | None = None
        self.window_us: int | None = None
        self.delay_us = 0
        self.refresh_us: int | None = None
        self.decoding: Decoding | None = None
        self.select: WrittenSelect | None = None

    def read_format(self) -> None:
        """Read the format behind USING."""
        self.seen["format"] = self._cursor.source.place(self._cursor.offset)
        self.format = format_name(self._cursor, "a format")

    def read_clause(self, *, is_stream: bool) -> None:
        """Read the clause that comes next. Raises SqlError for anything else."""
        cursor, token = self._cursor, self._cursor.token
        if token is None or token.keyword not in CLAUSES:
            raise self._no_clause(is_stream=is_stream)
        if not is_stream and token.keyword not in _OF_TABLES:
            raise cursor.error(f"a table has no {token.keyword}; use CREATE STREAM for what arrives over time")
        if is_stream and token.keyword == "REFRESH":
            raise cursor.error("a stream has no REFRESH: what arrives is read as it comes; use CREATE TABLE")
        name = _PLACES.get(token.keyword, token.keyword.lower())
        if name in self.seen:
            raise cursor.error(f"{token.keyword} is given twice; keep one")
        cursor.advance()
        self.seen[name] = cursor.source.place(token.start)
        match token.keyword:
            case "OPTIONS":
                self.entries = read_entries(cursor)
            case "TIMESTAMP":
                cursor.expect_word("BY", " after TIMESTAMP")
                self.seen["time"] = cursor.source.place(cursor.offset)
                self.time = read_event_time(cursor)
            case "WINDOW":
                self.window_us = duration(cursor, window_us)
            case "DELAY":
                self.delay_us = duration(cursor, delay_us) or 0
            case "REFRESH":
                self.refresh_us = duration(cursor, refresh_us)
            case "FORMAT":
                self.decoding = read_decoding(cursor, self._base)
            case _:
                self.select = _select(cursor)

    def statement(self, name: str, line: int, column: int, *, is_stream: bool) -> CreateStream | CreateTable:
        """Return the statement that these clauses belong to, which begins at a line and column."""
        options = source_options(self._cursor, self.entries, self._base, is_stream=is_stream)
        delivered, decoding = decoded_with(self.format, options.connector, self.decoding)
        connector = Connector(format=self.format, options=delivered, decoding=decoding)
        places = (*self.seen.items(), *entry_places(self._cursor, self.entries))
        if not is_stream:
            table = Table(
                name=name,
                schema=self.schema,
                declared=options.declared,
                connector=connector,
                refresh_us=self.refresh_us,
            )
            return CreateTable(table=table, places=places, select=self.select, line=line, column=column)
        stream = Stream(
            name=name,
            time=self.time or "",
            schema=self.schema,
            window_us=self.window_us,
            delay_us=self.delay_us,
            idle_us=options.idle_us,
            dead_letter=options.dead_letter,
            keep=options.keep,
            placement=options.placement,
            declared=options.declared,
            connector=connector,
        )
        return CreateStream(stream=stream, places=places, select=self.select, line=line, column=column)

    def _no_clause(self, *, is_stream: bool) -> SqlError:
        cursor, token = self._cursor, self._cursor.token
        if cursor.at_symbol(","):
            return cursor.error("clauses stand one after the other without a comma; leave it out")
        answer = foreign.source_clause(token.keyword) if token else None
        if answer is not None:
            return cursor.error(answer)
        expected = "OPTIONS, TIMESTAMP BY, WINDOW, DELAY, FORMAT or AS SELECT" if is_stream else _FOR_TABLE
        hint = did_you_mean(token.value, expected.replace(" or ", ", ").split(", ")) if token else ""
        return cursor.error(f"expected {expected}, found {cursor.found()}{hint if hint.startswith('; did') else ''}")


def _select(cursor: Cursor) -> WrittenSelect:
    if not cursor.at_word("SELECT"):
        raise cursor.expected("SELECT after AS: AS SELECT expressions FROM source [WHERE ...]")
    written = rest_as_select(cursor)
    for _ in cursor.rest():
        cursor.advance()
    return written


def rest_as_select(cursor: Cursor) -> WrittenSelect:
    """Return all that is left of a statement as the text of a SELECT, with its place. Raises SqlError if that is
    nothing.
    """
    rest = cursor.rest()
    if not rest:
        raise cursor.expected("a SELECT")
    line, column = cursor.source.place(rest[0].start)
    return WrittenSelect(text=cursor.source.text[rest[0].start : rest[-1].end], line=line, column=column)


def entry_places(cursor: Cursor, entries: tuple[Entry, ...]) -> Places:
    """Return where options are, by name."""
    return tuple((f"option {folded(entry.name)}", cursor.source.place(entry.at.start)) for entry in entries)


def format_name(cursor: Cursor, what: str) -> str:
    """Read ``parquet``, ``com.example.Source`` or ``rate-micro-batch``: names joined by dots or hyphens."""
    name = cursor.name(what).value
    while cursor.at_symbol(".", "-"):
        name += cursor.advance().value + cursor.name(f"the rest of {what}").value
    return name


def require_options_before_parenthesis(cursor: Cursor) -> None:
    """Refuse options without the word before them. Raises SqlError."""
    if cursor.at_symbol("("):
        raise cursor.error("expected OPTIONS before '(': OPTIONS (path 'directory')")


def duration(cursor: Cursor, meaning: Callable[[str], int | None]) -> int | None:
    """Read INTERVAL and what follows, or UNBOUNDED; what is wrong with the value is reported."""
    start = cursor.token
    if cursor.take_word("UNBOUNDED"):
        text = "unbounded"
    elif cursor.take_word("INTERVAL"):
        text = _interval(cursor)
    else:
        hint = ""
        if start is not None and start.kind in ("number", "string"):
            hint = "; write INTERVAL before it"
        elif start is not None and did_you_mean(start.value, ("INTERVAL", "UNBOUNDED")).startswith("; did"):
            hint = did_you_mean(start.value, ("INTERVAL", "UNBOUNDED"))
        raise cursor.error(f"expected INTERVAL and a length, or UNBOUNDED, found {cursor.found()}{hint}")
    try:
        return meaning(text)
    except OptionError as problem:
        cursor.report(problem.message, start)
        return None


def _interval(cursor: Cursor) -> str:
    parts: list[Token] = []
    while cursor.token is not None:
        token = cursor.token
        number = token.kind in ("number", "string") or token.is_symbol("-", "+")
        if not (number or _is_unit(token, parts)):
            break
        parts.append(cursor.advance())
    if not parts:
        raise cursor.expected("a length after INTERVAL: INTERVAL 30 SECONDS")
    return " ".join(part.value for part in parts)


def _is_unit(token: Token, before: Sequence[Token]) -> bool:
    """Tell whether a word belongs to the length read so far: one behind a number, or TO and what follows it. Any other
    begins what comes next, misspelt or not.
    """
    if token.kind != "word" or not before or token.keyword in CLAUSES:
        return False
    last = before[-1]
    is_number = last.kind == "number" or (last.kind == "string" and not any(map(str.isalpha, last.value)))
    return is_number or token.keyword == "TO" or last.keyword == "TO"
