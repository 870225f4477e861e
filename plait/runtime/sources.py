"""Open streams and tables in Spark, and say clearly why one cannot be opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from plait.errors import SourceError
from plait.query.model import Column, Source, Stream
from plait.sources import format_of

CORRUPT = "_corrupt_record"
_UNQUALIFIED = re.compile(r"[^0-9A-Za-z_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSource:
    """A source and its DataFrame. `corrupt_column`: where Spark puts the text of a malformed record, if it does."""

    source: Source
    frame: DataFrame
    corrupt_column: str | None = None


def spark_name(stream: str) -> str:
    """Return the name of a stream in Spark's offset log, which takes letters, digits and underscores only."""
    return _UNQUALIFIED.sub(lambda match: f"_{ord(match.group()):x}_", stream)


def open_source(spark: SparkSession, source: Source, *, files: list[str] | None = None) -> OpenSource:
    """Return the source as Spark reads it. Malformed text records are kept as such rather than read as NULLs.

    `files`: read these instead of the source's path.
    """
    connector = source.connector
    if connector is None:
        raise SourceError(
            f"'{source.name}' has neither a DataFrame nor a format: pass one to Engine.stream or Engine.table"
        )
    reader = spark.readStream.name(spark_name(source.name)) if isinstance(source, Stream) else spark.read
    options, known = dict(connector.options), format_of(connector.format)
    corrupt = None
    if known.keeps_malformed and options.get("mode", "PERMISSIVE").upper() == "PERMISSIVE":
        corrupt = options.setdefault("columnNameOfCorruptRecord", CORRUPT)
    if source.schema is not None and known.takes_columns:
        columns = [*source.schema]
        if corrupt is not None and corrupt not in {column.name for column in columns}:
            columns.append(Column(name=corrupt, type="string"))
        reader = reader.schema(schema_ddl(tuple(columns)))
    try:
        if isinstance(source, Stream) and source.schema is None and known.has_columns_in_files:
            # Spark reads the columns of a table, but not of a stream, from the files that are there already.
            reader = reader.schema(spark.read.format(connector.format).load(options.get("path")).schema)
        frame = reader.format(connector.format).options(**options).load(files)
    except PySparkException as error:
        raise _source_error(source, error) from error
    if source.schema is None or corrupt not in frame.columns:
        corrupt = None
    return OpenSource(source=source, frame=frame, corrupt_column=corrupt)


def schema_ddl(columns: tuple[Column, ...]) -> str:
    """Return a schema as Spark DDL."""
    return ", ".join(f"`{column.name.replace('`', '``')}` {column.type}" for column in columns)


def schema_of(frame: DataFrame) -> tuple[Column, ...]:
    """Return a DataFrame's columns, without the one for malformed records."""
    return tuple(
        Column(name=field.name, type=field.dataType.simpleString().lower())
        for field in frame.schema.fields
        if field.name != CORRUPT
    )


def attempt(source: Source, action: Callable[[], DataFrame]) -> DataFrame:
    """Return what `action` gives, or raise SourceError about `source`."""
    try:
        return action()
    except PySparkException as error:
        raise _source_error(source, error) from error


def _source_error(source: Source, error: Exception) -> SourceError:
    kind = "stream" if isinstance(source, Stream) else "table"
    text = str(error).split("\n", 1)[0].rstrip(". ")
    return SourceError(f"{kind} '{source.name}' cannot be read: {text}. Check its format, path, options and schema.")
