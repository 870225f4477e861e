"""Open streams and tables in Spark, and say clearly why one cannot be opened."""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import StructType

from plait.arguments import shown
from plait.errors import OptionError, SourceError
from plait.filesystems import absolute_path
from plait.query.model import Column, Connector, Source, Stream
from plait.runtime.inputs.making import made_rows
from plait.runtime.inputs.unreadable import unreadable
from plait.runtime.spark.session import has_named_sources
from plait.sinks.overlaps import Place, owner_of
from plait.sources import (
    declared_problem,
    format_of,
    format_problem,
    reader_option_problems,
    spark_name,
)
from plait.sources.values import CORRUPT as CORRUPT
from plait.spelling import folded
from plait.sql.script.source_files import checks_header, files_problem

_CALLED = re.compile(r"An error occurred while calling [\w.]+\.\n: [\w.$]+:")
_FILE_SOURCE = re.compile(r"\bFileSource\[(?:file:/*(?=/))?(.*)\], \[")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSource:
    """A source and its DataFrame. `corrupt_column`: where Spark puts the text of a malformed record, if it does.
    `again`: what makes another one of the same columns, of a table that a program reads by itself.
    """

    source: Source
    frame: DataFrame
    corrupt_column: str | None = None
    again: Callable[[], DataFrame] | None = None


def open_source(spark: SparkSession, source: Source, *, files: list[str] | None = None) -> OpenSource:
    """Return the source as Spark reads it. Malformed text records are kept as such rather than read as NULLs.

    `files`: read these instead of the source's path.
    """
    connector = source.connector
    if connector is None:
        raise SourceError(
            f"'{source.name}' has neither a DataFrame nor a format: pass one to Engine.stream or Engine.table"
        )
    reader = _stream_reader(spark, source) if isinstance(source, Stream) else spark.read
    options, known = dict(connector.options), format_of(connector.format)
    corrupt, declared = None, delivered_columns(source)
    if known.keeps_malformed and _keeps_malformed(source, connector):
        corrupt = option_of(connector, "columnNameOfCorruptRecord") or CORRUPT
        options = {name: value for name, value in options.items() if folded(name) != "mode"}
        options["columnNameOfCorruptRecord"] = corrupt
    if declared is not None and checks_header(connector):
        # Spark's default is to read by position, whatever the header says; columns in another order are then swapped.
        options["enforceSchema"] = "false"
    if declared is not None and known.takes_columns:
        columns = [*declared]
        if corrupt is not None and folded(corrupt) not in {folded(column.name) for column in columns}:
            columns.append(Column(name=corrupt, type="string"))
    elif isinstance(source, Stream) and declared is None and known.columns is not None and known.takes_columns:
        columns = [*known.columns]
    else:
        columns = []
    try:
        if columns:
            reader = reader.schema(schema_ddl(tuple(columns)))
        if isinstance(source, Stream) and declared is None and known.has_columns_in_files:
            # Spark reads the columns of a table, but not of a stream, from the files that are there already.
            reader = reader.schema(spark.read.format(connector.format).load(option_of(connector, "path")).schema)
        frame = reader.format(connector.format).options(**options).load(files)
    except (PySparkException, Py4JJavaError) as error:  # a connector that is missing is no error of pyspark's
        raise _source_error(source, error) from error
    if declared is None or corrupt not in frame.columns:
        corrupt = None
    with reading(source):
        frame, corrupt = made_rows(frame, connector, corrupt, keeps_bad=isinstance(source, Stream))
    return OpenSource(source=source, frame=frame, corrupt_column=corrupt)


def delivered_columns(source: Source) -> tuple[Column, ...] | None:
    """Return the columns that a source is declared to deliver, before anything is made of them; None if it says so
    itself.
    """
    connector = source.connector
    if connector is None or connector.making is None:
        return source.schema if connector is None or connector.decoding is None else None
    return connector.making.delivered if connector.decoding is None else None


def reopened(spark: SparkSession, opened: OpenSource, option: str, value: str) -> OpenSource:
    """Return a source opened with one option more; as it is if it is a program's own DataFrame."""
    source, connector = opened.source, opened.source.connector
    if connector is None:
        return opened
    more = replace(connector, options=(*connector.options, (option, value)))
    # What Spark has found out about the columns need not be found out again; some connectors take no columns.
    schema = source.schema if format_of(connector.format).reads_files else None
    return replace(opened, frame=open_source(spark, replace(source, connector=more, schema=schema)).frame)


def opened_again(spark: SparkSession, opened: OpenSource) -> OpenSource:
    """Return a table as it is now. Raises SourceError if it cannot be read, or has lost columns."""
    with reading(opened.source):
        now = open_source(spark, opened.source) if opened.again is None else replace(opened, frame=opened.again())
    found = set(schema_of(now.frame))
    for column in schema_of(opened.frame):
        if column not in found:
            raise SourceError(
                f"table '{opened.source.name}' has no column '{column.name}' of type {column.type} any more"
            )
    return now


def _stream_reader(spark: SparkSession, stream: Stream) -> DataStreamReader:
    """Return a reader that gives the stream its name in Spark's offset log, if streams of this session have names: a
    session wants either all of them named, or none.
    """
    return spark.readStream.name(spark_name(stream.name)) if has_named_sources(spark) else spark.readStream


def _keeps_malformed(source: Source, connector: Connector) -> bool:
    """Tell whether malformed records are read as such. A stream joins none of them anyhow, so with DROPMALFORMED too:
    Spark would drop them uncounted, and none would come to the folder for dead letters.
    """
    mode = (option_of(connector, "mode") or "PERMISSIVE").strip().upper()
    is_told = isinstance(source, Stream) and delivered_columns(source) is not None
    return mode == "PERMISSIVE" or (mode == "DROPMALFORMED" and is_told)


def read_by(stream: str, format: str | None, options: Mapping[str, str]) -> Connector:
    """Return how a stream is read that a program declares, paths made absolute. Raises OptionError for what cannot be
    read so.
    """
    if format is None:
        raise OptionError(
            f"stream '{stream}': expected a DataFrame, or a format and its options, as in "
            f"Engine.stream('{stream}', format='parquet', options={{'path': 'in/{stream}'}}, ...); found neither"
        )
    problems = [format_problem(format, is_stream=True)]
    problems += [
        problem for _, problem in reader_option_problems(format, options.items(), is_stream=True, has_columns=False)
    ]
    if format_of(format).has_path and "path" not in map(folded, options):
        problems.append(f"{format} needs the path of what to read; add options={{'path': 'directory'}}")
    for problem in filter(None, problems):
        raise OptionError(f"stream '{stream}': {problem}")
    absolute = {name: absolute_path(value) if folded(name) == "path" else value for name, value in options.items()}
    return Connector(format=format, options=tuple(absolute.items()))


def refuse_misfit(stream: Stream, connector: Connector) -> None:
    """Raise OptionError or SourceError if the declared columns are not those of the format, or of the files there."""
    if stream.schema is None:
        return
    problem = declared_problem(connector.format, connector.options, stream.schema)
    if problem is not None:
        raise OptionError(f"stream '{stream.name}': {problem}")
    problem = files_problem(connector, stream.schema)
    if problem is not None:
        raise SourceError(f"stream '{stream.name}': {problem}")


def schema_columns(schema: str | StructType) -> tuple[Column, ...]:
    """Return the columns of a schema as Spark takes it. Raises OptionError for anything else."""
    if not isinstance(schema, str | StructType):
        raise OptionError(f"schema is {shown(schema)}; expected Spark DDL such as 'id BIGINT, ts TIMESTAMP'")
    try:
        fields = (StructType.fromDDL(schema) if isinstance(schema, str) else schema).fields
    except PySparkException as error:
        raise OptionError(f"'{schema}' is no schema: {str(error).splitlines()[0]}") from error
    return tuple(Column(name=field.name, type=field.dataType.simpleString()) for field in fields)


def option_of(connector: Connector, name: str) -> str | None:
    """Return an option of a source; names of options do not mind case."""
    return next((value for given, value in connector.options if folded(given) == folded(name)), None)


def schema_ddl(columns: tuple[Column, ...]) -> str:
    """Return a schema as Spark DDL."""
    return ", ".join(f"`{column.name.replace('`', '``')}` {column.type}" for column in columns)


def schema_of(frame: DataFrame, hidden: Collection[str | None] = (CORRUPT,)) -> tuple[Column, ...]:
    """Return a DataFrame's columns, without the hidden ones: those for malformed records."""
    return tuple(
        Column(name=field.name, type=field.dataType.simpleString().lower())
        for field in frame.schema.fields
        if field.name not in hidden
    )


def visible_schema(opened: OpenSource) -> tuple[Column, ...]:
    """Return the columns that queries see: not the one for malformed records, unless the user declared it."""
    declared = {column.name for column in opened.source.schema or ()}
    return schema_of(opened.frame, {CORRUPT, opened.corrupt_column} - declared)


def visible(opened: OpenSource) -> DataFrame:
    """Return the frame with the columns that queries see."""
    names = [column.name for column in opened.source.schema or ()]
    return opened.frame.select(*(f"`{name.replace('`', '``')}`" for name in names))


def places_read(source: Source, frame: DataFrame) -> tuple[Place, ...]:
    """Return the directories that a DataFrame of the user's reads, as far as Spark tells: of a stream its plan does."""
    if frame.isStreaming:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            frame.explain("extended")
        paths = {match[1] for match in _FILE_SOURCE.finditer(shown.getvalue())}
    else:
        paths = {posixpath.dirname(path) for path in frame.inputFiles()}
    return tuple(Place(owner=owner_of(source), role="source", path=path) for path in sorted(paths))


@contextlib.contextmanager
def reading(source: Source) -> Iterator[None]:
    """Raise SourceError about `source` for what Spark says of reading it."""
    try:
        yield
    except PySparkException as error:
        raise _source_error(source, error) from error


def _source_error(source: Source, error: Exception) -> SourceError:
    kind = "stream" if isinstance(source, Stream) else "table"
    problem = unreadable(str(error))
    if problem is not None:
        return SourceError(f"{kind} '{source.name}' cannot be read: {problem}.")
    text = _first_sentence(str(error))
    return SourceError(f"{kind} '{source.name}' cannot be read: {text}. Check its format, path, options and schema.")


def _first_sentence(text: str) -> str:
    """Return what Spark says first, without the class of the JVM's error and that it came of a call."""
    called = _CALLED.match(text)
    return text[called.end() if called else 0 :].strip().split("\n", 1)[0].rstrip(". ")
