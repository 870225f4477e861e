"""Streams and tables of a script: can they be read, and do they have the columns they need?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from plait.errors import OptionError, PlacedError, SourceError, SqlError
from plait.plan.columns import name_problem
from plait.query.model import Column, Connector, Source, Stream
from plait.query.origin import Decoding, Options
from plait.sinks.overlaps import archive_places
from plait.sources import column_problem, declared_problem, format_of, format_problem, reader_option_problems
from plait.sources.values import VALUE
from plait.sql.expressions.scope import SchemaUnknownError
from plait.sql.lexis.names import did_you_mean, folded
from plait.sql.lexis.text import SourceText
from plait.sql.script.decoding import decoding_problem
from plait.sql.script.event_time import bind_event_time
from plait.sql.script.making import bind_making
from plait.sql.script.paths import UnreadableFileError, input_problem, output_problem
from plait.sql.script.source_files import files_problem, known_schema
from plait.sql.statements import CreateStream, CreateTable, place_of

SchemaOf: TypeAlias = Callable[[Source], tuple[Column, ...]]
_Columns: TypeAlias = "tuple[Column, ...] | None"

_DECODABLE: Final = ("binary", "string")


class SourceCheck:
    """Checks one source. `source` comes out with its schema, if known, and its time column spelled as there; until then
    its schema is that of what is read, which `_delivered` keeps.
    """

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
        self._delivered: tuple[Column, ...] = ()

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
        if connector is not None and (connector.decoding is not None or self._statement.select is not None):
            delivered, self.source = self.source.schema, replace(self.source, schema=None)
            if not self.problems:
                self._make(connector, delivered)
        if self.source.schema is not None:
            self._check_columns(self.source.schema)

    def _report(self, message: str | None, part: str, kind: type[PlacedError] = SqlError) -> None:
        if message is not None:
            line, column = place_of(self._statement, part)
            what = "stream" if self._is_stream else "table"
            text = f"{what} '{self.source.name}': {message}"
            self.problems.append(kind(text, line=line, column=column, file=self._file))

    def _check_format(self, connector: Connector) -> None:
        known, decoding = format_of(connector.format), connector.decoding
        if decoding is not None and self.source.schema is not None:
            message = f"FORMAT {decoding.format} says which columns there are; leave out the list before USING"
            self._report(message, "decoding")
            return
        self._report(format_problem(connector.format, is_stream=self._is_stream), "format")
        self._check_options(connector.format, connector.options, has_columns=self.source.schema is not None)
        if decoding is not None:
            self._check_options(decoding.format, decoding.options, has_columns=True)
        if self.source.schema is not None:
            self._report(declared_problem(connector.format, connector.options, self.source.schema), "format")
        if not known.has_path:
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

    def _check_options(self, format_: str, options: Options, *, has_columns: bool) -> None:
        problems = reader_option_problems(format_, options, is_stream=self._is_stream, has_columns=has_columns)
        for name, problem in problems:
            if self._old_patterns and name is not None and folded(name).endswith("format"):
                continue  # the script sets Spark's formatter of old times, which has letters of its own
            self._report(problem, "format" if name is None else f"option {folded(name)}", OptionError)

    def _find_schema(self, connector: Connector) -> None:
        try:
            if self._schema_of is not None:
                read = replace(self.source, connector=replace(connector, decoding=None))
                schema: tuple[Column, ...] | None = self._schema_of(read)
            else:
                schema = known_schema(connector, is_stream=self._is_stream)
        except UnreadableFileError as problem:
            self._report(str(problem), "option path", SourceError)
        except SourceError as problem:
            line, column = place_of(self._statement, "option path")
            self.problems.append(SourceError(problem.message, line=line, column=column, file=self._file))
        else:
            self.source = replace(self.source, schema=schema)

    def _make(self, connector: Connector, delivered: _Columns) -> None:
        """Find what FORMAT and AS SELECT make of what is read."""
        starred, select = delivered, self._statement.select
        if connector.decoding is not None:
            delivered, starred = self._decoded(connector, connector.decoding, delivered)
        self._delivered = delivered or ()
        if self.problems:
            return
        if select is None:
            self.source = replace(self.source, schema=starred)
        elif delivered is None or starred is None:
            message = "the columns that AS SELECT reads are not known before Spark is asked; declare them before USING"
            self._report(message, "select", SchemaUnknownError)
        else:
            made, problems = bind_making(select, delivered, starred=starred, file=self._file)
            self.problems += [_about(self.source, problem) for problem in problems]
            making = None if made is None else made.making
            schema = None if made is None else made.schema
            self.source = replace(self.source, schema=schema, connector=replace(connector, making=making))
        if self.source.schema is None and not self.problems and self._schema_of is not None:
            self.source = replace(self.source, schema=self._schema_of(self.source))

    def _decoded(self, connector: Connector, decoding: Decoding, delivered: _Columns) -> tuple[_Columns, _Columns]:
        """Return all columns there are once values are decoded, and those of the values, as far as they are known."""
        has_value = any(column.name == VALUE and column.type in _DECODABLE for column in delivered or ())
        self._report(decoding_problem(connector.format, decoding, has_value=has_value), "decoding")
        columns = decoding.columns
        if columns is None and self._schema_of is not None and not self.problems:
            columns = self._schema_of(self.source)
        for column in columns or ():
            self._report(column_problem(decoding.format, column), "decoding")
        if columns is None:
            return None, None
        names = {folded(column.name) for column in columns}
        others = (column for column in delivered or () if folded(column.name) not in names)
        return (*columns, *others), columns

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
        if folded(self.source.time) in {folded(each.name) for each in self._delivered} - names.keys():
            message = (
                f"the event time '{self.source.time}' is no column of the stream, only of what it is made of; add it: "
                f"AS SELECT *, {self.source.time} FROM source"
            )
            self._report(message, "time")
            return
        try:
            self.source = bind_event_time(self.source, text)
        except SqlError as problem:
            self.problems.append(_about(self.source, problem))


def _about(source: Source, problem: SqlError) -> SqlError:
    what = "stream" if isinstance(source, Stream) else "table"
    message = f"{what} '{source.name}': {problem.message}"
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
