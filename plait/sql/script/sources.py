"""Streams and tables of a script: can they be read, and do they have the columns they need?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from plait.errors import OptionError, PlacedError, SourceError, SqlError
from plait.plan.columns import name_problem
from plait.query.model import Column, Connector, Source, Stream
from plait.sinks.overlaps import archive_places
from plait.sources import column_problem, declared_problem, format_of, format_problem, reader_option_problems
from plait.sql.lexis.names import did_you_mean, folded
from plait.sql.lexis.text import SourceText
from plait.sql.script.event_time import bind_event_time
from plait.sql.script.paths import UnreadableFileError, input_problem, output_problem
from plait.sql.script.source_files import files_problem, known_schema
from plait.sql.statements import CreateStream, CreateTable, place_of

SchemaOf: TypeAlias = Callable[[Source], tuple[Column, ...]]


class SourceCheck:
    """Checks one source. `source` comes out with its schema, if known, and its time column spelled as there."""

    def __init__(
        self,
        statement: CreateStream | CreateTable,
        *,
        file: str | None,
        schema_of: SchemaOf | None = None,
        may_infer: bool = False,
        old_patterns: bool = False,
    ) -> None:
        self.problems: list[PlacedError] = []
        self.source: Source = statement.stream if isinstance(statement, CreateStream) else statement.table
        self._statement, self._file = statement, file
        self._schema_of, self._may_infer = schema_of, may_infer
        self._old_patterns = old_patterns
        self._is_stream = isinstance(statement, CreateStream)

    def run(self) -> None:
        """Look at format, path, schema and the columns options name."""
        connector = self.source.connector
        if connector is not None:
            self._check_format(connector)
        if isinstance(self.source, Stream) and self.source.dead_letter is not None:
            self._report(output_problem(self.source.dead_letter), "option deadletter", OptionError)
        for place in archive_places(self.source):
            self._report(output_problem(place.path), "option sourcearchivedir", OptionError)
        if connector is not None and not self.problems:
            self._report(files_problem(connector, self.source.schema), "option path", SourceError)
        if connector is not None and self.source.schema is None and not self.problems:
            self._find_schema(connector)
        if connector is not None:
            for column in self.source.schema or ():
                self._report(column_problem(connector.format, column), "format")
        if self.source.schema is not None:
            self._check_columns(self.source.schema)

    def _report(self, message: str | None, part: str, kind: type[PlacedError] = SqlError) -> None:
        if message is not None:
            line, column = place_of(self._statement, part)
            what = "stream" if self._is_stream else "table"
            text = f"{what} '{self.source.name}': {message}"
            self.problems.append(kind(text, line=line, column=column, file=self._file))

    def _check_format(self, connector: Connector) -> None:
        known = format_of(connector.format)
        self._report(format_problem(connector.format, is_stream=self._is_stream), "format")
        for name, problem in reader_option_problems(
            connector.format,
            connector.options,
            is_stream=self._is_stream,
            has_columns=self.source.schema is not None,
        ):
            if self._old_patterns and name is not None and folded(name).endswith("format"):
                continue  # the script sets Spark's formatter of old times, which has letters of its own
            self._report(problem, "format" if name is None else f"option {folded(name)}", OptionError)
        if self.source.schema is not None:
            self._report(declared_problem(connector.format, connector.options, self.source.schema), "format")
        if not known.reads_files:
            return
        path = next((value for name, value in connector.options if folded(name) == "path"), None)
        if not path:
            message = f"{connector.format} needs the path of what to read; add OPTIONS (path 'directory')"
            self._report(message, "option path", OptionError)
        else:
            self._report(input_problem(path, is_stream=self._is_stream), "option path", SourceError)
        if self._is_stream and known.declares_for_stream and self.source.schema is None and not self._may_infer:
            columns = f"CREATE STREAM {self.source.name} (id BIGINT, ...) USING {connector.format}"
            self._report(
                f"Spark reads a stream of {known.name} only with its columns declared; write {columns}", "format"
            )

    def _find_schema(self, connector: Connector) -> None:
        try:
            if self._schema_of is not None:
                schema: tuple[Column, ...] | None = self._schema_of(self.source)
            else:
                schema = known_schema(connector, is_stream=self._is_stream)
        except UnreadableFileError as problem:
            self._report(str(problem), "option path", SourceError)
        except SourceError as problem:
            line, column = place_of(self._statement, "option path")
            self.problems.append(SourceError(problem.message, line=line, column=column, file=self._file))
        else:
            self.source = replace(self.source, schema=schema)

    def _check_columns(self, schema: tuple[Column, ...]) -> None:
        for each in schema:
            self._report(name_problem(each.name), "format")
        names = {folded(column.name): column.name for column in schema}
        for key, _ in self.source.declared.distinct:
            if folded(key) not in names:
                message = f"option 'distinct.{key}' names no column{did_you_mean(key, names.values())}"
                self._report(message, f"option {folded(f'distinct.{key}')}", OptionError)
        distinct = tuple((names.get(folded(key), key), count) for key, count in self.source.declared.distinct)
        self.source = replace(self.source, declared=replace(self.source.declared, distinct=distinct))
        if not isinstance(self.source, Stream):
            return
        line, column = place_of(self._statement, "time")
        text = SourceText(text=self.source.time, file=self._file, line=line, column=column)
        try:
            self.source = bind_event_time(self.source, text)
        except SqlError as problem:
            self.problems.append(_about(self.source, problem))


def _about(stream: Stream, problem: SqlError) -> SqlError:
    message = f"stream '{stream.name}': {problem.message}"
    return type(problem)(message, line=problem.line, column=problem.column, file=problem.file)


def statistics_problem(source: Source) -> str | None:
    """Say what is wrong with the declared statistics of a source whose columns are known, or None."""
    declared = source.declared
    for name, value in (("rate", declared.rate_rows_per_s), ("rows", declared.rows), *declared.distinct):
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
            return f"{name} is {value}; expected a number above zero"
    names = [column.name for column in source.schema or ()]
    for key, _ in declared.distinct:
        if folded(key) not in map(folded, names):
            return f"distinct names '{key}', which is no column{did_you_mean(key, names)}"
    return None
