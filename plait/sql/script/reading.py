"""Scripts: from text to statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from plait.errors import PlacedError, SqlError
from plait.query.model import SinkSpec
from plait.sql.lexis import foreign
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_columns
from plait.sql.lexis.durations import window_us
from plait.sql.lexis.names import did_you_mean, folded, naming_problem
from plait.sql.lexis.text import SourceText, scan, unclosed_error
from plait.sql.lexis.tokens import Token, tokenize
from plait.sql.script.entries import plain_options, read_entries
from plait.sql.script.source_clauses import (
    CLAUSES,
    SourceClauses,
    duration,
    entry_places,
    format_name,
    require_options_before_parenthesis,
    rest_as_select,
)
from plait.sql.statements import (
    CreateQuery,
    CreateStream,
    CreateTable,
    CreateView,
    DropQuery,
    SetOption,
    Statement,
    WindowOverride,
)

_STATEMENTS = "CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE QUERY, DROP QUERY or SET"
_CREATED = ("STREAM", "TABLE", "VIEW", "QUERY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A statement as far as it could be read, and what is wrong with it. `name`: what it creates, if known."""

    statement: Statement | None
    problems: tuple[PlacedError, ...] = ()
    name: str | None = None


def parse_script(text: str, *, file: str | None = None, base: str = ".") -> tuple[Statement, ...]:
    """Read every statement. Relative paths are relative to `base`. Raises the first SqlError or OptionError."""
    readings = read_script(text, file=file, base=base)
    for reading in readings:
        for problem in reading.problems:
            raise problem
    return tuple(reading.statement for reading in readings if reading.statement is not None)


def read_script(text: str, *, file: str | None = None, base: str = ".") -> tuple[Reading, ...]:
    """Read every statement, broken ones too."""
    source = SourceText(text=text.removeprefix("\ufeff"), file=file)
    scanned = scan(source.text)
    readings: list[Reading] = []
    for start, end in scanned.statements:
        unclosed = scanned.unclosed if scanned.unclosed is not None and start <= scanned.unclosed < end else None
        readings.extend(_read(source, scanned.masked, start, end, unclosed, base))
    if scanned.unclosed is not None and not any(start <= scanned.unclosed < end for start, end in scanned.statements):
        readings.append(Reading(statement=None, problems=(unclosed_error(source, scanned.unclosed),)))
    return tuple(readings)


def _read(source: SourceText, masked: str, start: int, end: int, unclosed: int | None, base: str) -> Iterator[Reading]:
    """Read what stands between two semicolons: a statement, or several where one is missing."""
    if unclosed is not None:
        yield Reading(statement=None, problems=(unclosed_error(source, unclosed),))
        return
    try:
        tokens = tokenize(source, masked, start, end)
    except SqlError as problem:
        yield Reading(statement=None, problems=(problem,))
        return
    begins = [0, *(index for index in range(1, len(tokens)) if _begins_statement(tokens, index)), len(tokens)]
    for first, last in pairwise(begins):
        is_last = last == len(tokens)
        reading = _read_one(Cursor(source, masked, tokens[first:last], end if is_last else tokens[last].start), base)
        if not is_last:
            word = tokens[last].keyword
            missing: SqlError = source.error(f"expected ';' before {word}: it ends each statement", tokens[last].start)
            reading = replace(reading, problems=(*reading.problems, missing))
        yield reading


def _begins_statement(tokens: Sequence[Token], index: int) -> bool:
    words = [token.keyword for token in tokens[index : index + 2]]
    match words:
        case ["CREATE", "STREAM" | "TABLE" | "VIEW" | "QUERY"] | ["DROP", "QUERY"]:
            return True
        case ["SET", "PLAIT" | "SPARK"]:
            return index + 2 < len(tokens) and tokens[index + 2].is_symbol(".")
        case _:
            return False


def _read_one(cursor: Cursor, base: str) -> Reading:
    reader = _StatementReader(cursor, base)
    try:
        statement = reader.statement()
    except SqlError as problem:
        return Reading(statement=None, problems=(*cursor.problems, problem), name=reader.name)
    return Reading(statement=statement, problems=tuple(cursor.problems), name=reader.name)


class _StatementReader:
    """The grammar of one statement."""

    def __init__(self, cursor: Cursor, base: str) -> None:
        self.cursor, self.base = cursor, base
        self.name: str | None = None
        self._line, self._column = cursor.source.place(cursor.offset)

    def statement(self) -> Statement:
        cursor = self.cursor
        if cursor.take_word("SET"):
            return self._set()
        if cursor.take_word("DROP"):
            return self._drop()
        if not cursor.take_word("CREATE"):
            raise self._no_statement()
        if cursor.at_word("OR"):
            raise cursor.error("OR REPLACE is not supported; change the statement, and a run applies the difference")
        kind = cursor.token
        self._refuse_foreign(foreign.created(kind.keyword) if kind else None)
        if not cursor.at_word(*_CREATED):
            hint = did_you_mean(kind.value, _CREATED) if kind else ""
            raise cursor.error(f"expected STREAM, TABLE, VIEW or QUERY after CREATE, found {cursor.found()}{hint}")
        what = cursor.advance().keyword
        if cursor.at_word("IF"):
            raise cursor.error("IF NOT EXISTS is not supported; a script says what there is, so leave it out")
        self._read_name(what.lower())
        if what == "QUERY":
            return self._create_query()
        if what == "VIEW":
            return self._create_view()
        return self._create_source(is_stream=what == "STREAM")

    def _no_statement(self) -> SqlError:
        token = self.cursor.token
        self._refuse_foreign(foreign.statement(token.keyword) if token else None)
        if self.cursor.at_word("SELECT", "WITH", "FROM"):
            hint = "; give it a name and a sink: CREATE QUERY name INTO parquet OPTIONS (path 'out') AS SELECT ..."
        elif self.cursor.at_word("USING", "INTO", "AS", *CLAUSES):
            hint = "; it belongs to the statement before: leave out the ';' in front of it"
        else:
            hint = did_you_mean(token.value, ("CREATE", "DROP", "SET")) if token else ""
            hint = hint if hint.startswith("; did") else ""
        return self.cursor.error(f"expected {_STATEMENTS}, found {self.cursor.found()}{hint}")

    def _refuse_foreign(self, answer: str | None) -> None:
        if answer is not None:
            raise self.cursor.error(answer)

    def _read_name(self, what: str) -> None:
        token = self.cursor.name(f"the name of the {what}")
        if self.cursor.at_symbol("."):
            raise self.cursor.error(f"the name of a {what} has one part only; leave out the '.' and what precedes it")
        self.name = token.value
        problem = naming_problem(what, token.value)
        if problem:
            self.cursor.report(problem, token)

    def _create_source(self, *, is_stream: bool) -> CreateStream | CreateTable:
        cursor, clauses = self.cursor, SourceClauses(self.cursor, self.base)
        what = "CREATE STREAM" if is_stream else "CREATE TABLE"
        if cursor.at_symbol("("):
            clauses.schema = parse_columns(cursor)
        if cursor.at_word("AS"):
            raise cursor.error(
                f"expected USING and a format before AS SELECT: {what} {self.name} USING parquet OPTIONS (path 'in') "
                "AS SELECT ... FROM source"
            )
        self._refuse_foreign(foreign.source_clause(cursor.token.keyword) if cursor.token else None)
        cursor.expect_word("USING", " and a format" if clauses.schema else ", a format, or columns in parentheses")
        clauses.read_format()
        require_options_before_parenthesis(cursor)
        while cursor.token is not None:
            clauses.read_clause(is_stream=is_stream)
        if is_stream and clauses.time is None:
            raise cursor.error(
                "CREATE STREAM needs TIMESTAMP BY and the column that says when a row happened: TIMESTAMP BY column"
            )
        return clauses.statement(self.name or "", self._line, self._column, is_stream=is_stream)

    def _create_query(self) -> CreateQuery:
        cursor, places = self.cursor, {}
        cursor.expect_word("INTO", " and a sink: CREATE QUERY name INTO parquet OPTIONS (path 'out') AS SELECT ...")
        places["sink"] = cursor.source.place(cursor.offset)
        format_ = format_name(cursor, "a sink")
        require_options_before_parenthesis(cursor)
        entries = read_entries(cursor) if cursor.take_word("OPTIONS") else ()
        places.update(entry_places(cursor, entries))
        windows = _windows(cursor) if cursor.take_word("WINDOW") else ()
        cursor.expect_word("AS", " and the SELECT" if windows else ", OPTIONS or WINDOW")
        select = rest_as_select(cursor)
        return CreateQuery(
            name=self.name or "",
            sink=SinkSpec(format=format_, options=plain_options(entries, self.base)),
            windows=windows,
            select=select.text,
            select_line=select.line,
            select_column=select.column,
            line=self._line,
            column=self._column,
            places=tuple(places.items()),
        )

    def _create_view(self) -> CreateView:
        cursor = self.cursor
        if cursor.at_symbol("("):
            raise cursor.error("the columns of a view are named in its SELECT list: write expression AS name there")
        if cursor.at_word("INTO"):
            raise cursor.error("a view writes nothing, so it has no sink; leave INTO out, or write CREATE QUERY")
        windows = _windows(cursor) if cursor.take_word("WINDOW") else ()
        cursor.expect_word("AS", " and the SELECT: CREATE VIEW name AS SELECT ...")
        select = rest_as_select(cursor)
        return CreateView(
            name=self.name or "",
            windows=windows,
            select=select.text,
            select_line=select.line,
            select_column=select.column,
            line=self._line,
            column=self._column,
        )

    def _drop(self) -> DropQuery:
        cursor = self.cursor
        if cursor.at_word("VIEW"):
            raise cursor.error("DROP VIEW is not needed: a view that no query reads costs nothing; leave it out")
        if cursor.at_word("STREAM", "TABLE"):
            raise cursor.error(
                f"DROP {cursor.found()[1:-1].upper()} is not needed; drop the queries that use it: DROP QUERY name"
            )
        cursor.expect_word("QUERY", " after DROP")
        if cursor.at_word("IF"):
            raise cursor.error("IF EXISTS is not supported; leave the statement out if there is no such query")
        self._read_name("query")
        if cursor.token is not None:
            raise cursor.expected("';' after the name of the query")
        return DropQuery(name=self.name or "", line=self._line, column=self._column)

    def _set(self) -> SetOption:
        cursor, name = self.cursor, []
        while cursor.token is not None and not cursor.at_symbol("="):
            name.append(cursor.advance())
        if not name:
            raise cursor.expected("the name of an option: SET plait.strategy = greedy")
        cursor.expect_symbol("=", f" and a value after SET {cursor.raw(name)}")
        value = cursor.rest()
        if not value:
            raise cursor.expected(f"a value for {cursor.raw(name)}")
        quoted = cursor.string("a value")[0] if value[0].kind == "string" else None
        if cursor.token is not None:
            quoted = None
        shown = cursor.raw(name).replace("`", "")
        return SetOption(
            name=shown, value=cursor.raw(value) if quoted is None else quoted, line=self._line, column=self._column
        )


def _windows(cursor: Cursor) -> tuple[WindowOverride, ...]:
    cursor.expect_symbol("(", " after WINDOW: WINDOW (o INTERVAL 10 SECONDS, l UNBOUNDED)")
    windows: list[WindowOverride] = []
    while True:
        alias = cursor.name("the alias of a relation")
        if any(folded(known.alias) == folded(alias.value) for known in windows):
            cursor.report(f"the window of '{alias.value}' is given twice; keep one", alias)
        line, column = cursor.source.place(alias.start)
        windows.append(
            WindowOverride(alias=alias.value, window_us=duration(cursor, window_us), line=line, column=column)
        )
        if not cursor.take_symbol(","):
            break
    cursor.expect_symbol(")", " or ',' after a window")
    return tuple(windows)
