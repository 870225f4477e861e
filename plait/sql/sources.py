"""Streams and tables of a script: can they be read, and do they have the columns they need?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from plait.errors import OptionError, PlacedError, SourceError, SqlError
from plait.query.model import Column, Connector, Source, Stream
from plait.sources import format_of, format_problem, reader_option_problem
from plait.sql.names import did_you_mean, folded
from plait.sql.paths import input_problem, output_problem
from plait.sql.schemas import UnreadableFileError, known_schema
from plait.sql.statements import CreateStream, CreateTable, place_of

SchemaOf: TypeAlias = Callable[[Source], tuple[Column, ...]]
_TIME_TYPES: Final = ("timestamp", "timestamp_ntz", "date")


class SourceCheck:
    """Checks one source. `source` comes out with its schema, if known, and its time column spelled as there."""

    def __init__(
        self,
        statement: CreateStream | CreateTable,
        *,
        file: str | None,
        schema_of: SchemaOf | None = None,
        may_infer: bool = False,
    ) -> None:
        self.problems: list[PlacedError] = []
        self.source: Source = statement.stream if isinstance(statement, CreateStream) else statement.table
        self._statement, self._file = statement, file
        self._schema_of, self._may_infer = schema_of, may_infer
        self._is_stream = isinstance(statement, CreateStream)

    def run(self) -> None:
        """Look at format, path, schema and the columns options name."""
        connector = self.source.connector
        if connector is not None:
            self._check_format(connector)
        if isinstance(self.source, Stream) and self.source.dead_letter is not None:
            self._report(output_problem(self.source.dead_letter), "option deadletter", OptionError)
        if connector is not None and self.source.schema is None and not self.problems:
            self._find_schema(connector)
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
        for name, value in connector.options:
            problem = reader_option_problem(connector.format, name, value, is_stream=self._is_stream)
            self._report(problem, f"option {folded(name)}", OptionError)
        if not known.reads_files:
            return
        path = next((value for name, value in connector.options if folded(name) == "path"), None)
        if not path:
            message = f"{connector.format} needs the path of what to read; add OPTIONS (path 'directory')"
            self._report(message, "option path", OptionError)
        else:
            self._report(input_problem(path), "option path", SourceError)
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
        names = [column.name for column in schema]
        for key, _ in self.source.declared.distinct:
            if not any(folded(name) == folded(key) for name in names):
                message = f"option 'distinct.{key}' names no column{did_you_mean(key, names)}"
                self._report(message, f"option {folded(f'distinct.{key}')}", OptionError)
        if not isinstance(self.source, Stream):
            return
        stream = self.source
        time = next((column for column in schema if folded(column.name) == folded(stream.time)), None)
        if time is None:
            message = f"TIMESTAMP BY names '{stream.time}', which is no column{did_you_mean(stream.time, names)}"
            self._report(message, "time")
        elif time.type not in _TIME_TYPES:
            message = f"the time column '{time.name}' has type {time.type}; store it as a TIMESTAMP, or declare it so"
            self._report(message, "time")
        else:
            self.source = replace(stream, time=time.name)
