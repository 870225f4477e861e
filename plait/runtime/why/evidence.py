"""What the sources have, read once more, each row with the batch that took it; and which rows were late by that.

Topics are `plait.runtime.why.topics`, Delta tables `plait.runtime.why.delta_tables`. Spark's log of a file source says
which entry named a file, and its offset log up to which entry each batch read. Of batches that the offset log has
forgotten (it keeps the last hundred) only that they are over is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from plait.errors import OptionError
from plait.query.model import Connector, Source, Stream, Table
from plait.runtime.admission.stream_files import entries_of_files
from plait.runtime.checkpoint.arrivals import entry_of_offset
from plait.runtime.checkpoint.offsets import offsets_by_batch
from plait.runtime.inputs.opening import OpenSource, open_source, visible
from plait.runtime.why.delta_tables import batches_of_files
from plait.runtime.why.row_frames import BATCH, Bars, relation_tau
from plait.runtime.why.topics import read_topics
from plait.sources import format_of, spark_name
from plait.spelling import backquoted, folded
from plait.sql.lexis.names import doubled
from plait.state.model import TABLE_BATCH

_FILE: Final = re.compile(r"^file:/*")
_AS_IT_IS: Final = (
    "table {} is looked at as it is now; results have the rows it had when their newest member arrived (REFRESH)"
)
_GONE: Final = "of stream {} records are deleted that were read, and nothing is known of those: {}"
_PATHS: Final = StructType([StructField("path", StringType()), StructField(BATCH, LongType())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The rows of a source, each with the batch that took it (`BATCH`): of a table with the one before all, and NULL
    where none has yet. `note`: what may have been otherwise.
    """

    rows: DataFrame
    note: str | None = None


def read_again(spark: SparkSession, source: Source, checkpoint: str) -> Evidence:
    """Return what a source has. Raises OptionError for one that cannot be read once more, or of which nobody can tell
    which batch took what.
    """
    connector = source.connector
    if isinstance(source, Stream) and source.derived is not None:
        raise OptionError(
            f"'{source.name}' is the groups of query '{source.name}', which no source delivers; ask why there is no "
            f"row of that query instead: --query {source.name}"
        )
    if connector is None:
        raise _unreadable(source, "a DataFrame of the program's")
    if not isinstance(source, Stream):
        opened = _opened(spark, source, connector)
        rows = visible(opened).selectExpr("*", f"CAST({TABLE_BATCH} AS BIGINT) AS {BATCH}")
        return Evidence(rows=rows, note=None if source.refresh_us is None else _AS_IT_IS.format(source.name))
    if folded(connector.format) == "kafka":
        rows, gone = read_topics(spark, source, connector, checkpoint)
        return Evidence(rows=rows, note=None if gone is None else _GONE.format(source.name, gone))
    if format_of(connector.format).has_log:
        path = tuple((name, value) for name, value in connector.options if folded(name) == "path" or "." in name)
        opened = _opened(spark, source, replace(connector, options=path))
        batches = batches_of_files(source.name, connector, checkpoint)
        return Evidence(rows=_taken(spark, opened, batches, "regexp_extract(x.read_from_file, '[^/]*$', 0)", "JOIN"))
    if not format_of(connector.format).reads_files:
        raise _unreadable(source, f"'{connector.format}', which nobody keeps")
    batches = _batches(source.name, checkpoint)
    key = "regexp_replace(x.read_from_file, '^file:/*', 'file:/')"
    return Evidence(rows=_taken(spark, _opened(spark, source, connector), batches, key, "LEFT JOIN"))


def _unreadable(source: Source, what: str) -> OptionError:
    return OptionError(
        f"'{source.name}' is {what}; what has become of a row is told by reading its source once more, which is "
        "possible for files, topics of Kafka and Delta tables"
    )


def _opened(spark: SparkSession, source: Source, connector: Connector) -> OpenSource:
    """Return a source as a table, without what is none of its rows."""
    opened = open_source(spark, Table(name=source.name, schema=source.schema, connector=connector))
    if opened.corrupt_column is None:
        return replace(opened, source=source)
    return replace(opened, source=source, frame=opened.frame.where(f"`{opened.corrupt_column}` IS NULL"))


def _taken(
    spark: SparkSession, opened: OpenSource, batches: Mapping[str, int | None], key: str, join: str
) -> DataFrame:
    """Return rows with the batch that took their file; `key`: by which `batches` knows the file, as SQL."""
    names = [backquoted(column.name) for column in opened.source.schema or ()]
    files = pa.table(
        [pa.array(list(batches), pa.string()), pa.array(list(batches.values()), pa.int64())], names=["path", BATCH]
    )
    return spark.sql(
        f"SELECT {', '.join(f'x.{doubled(name)}' for name in names)}, b.{BATCH} FROM {{rows}} x {join} {{batches}} b "
        f"ON {key} = b.path",
        rows=opened.frame.selectExpr(*names, "input_file_name() AS read_from_file"),
        batches=spark.createDataFrame(files, _PATHS),
    )


def _batches(stream: str, checkpoint: str) -> dict[str, int | None]:
    """Return which batch took each file of a stream."""
    taken = batches_of_entries(offsets_by_batch(checkpoint), spark_name(stream))
    first = min(taken.values(), default=0)
    entries = entries_of_files(checkpoint, stream)
    return {
        _FILE.sub("file:/", path): taken.get(entry, first if entry < min(taken, default=0) else None)
        for path, entry in entries.items()
    }


def batches_of_entries(offsets: Mapping[int, Mapping[str, str]], name: str) -> dict[int, int]:
    """Return by which batch each entry of a source's log was read, as far as the `offsets` of batches tell.

    >>> offsets = {4: {"s": '{"logOffset":1}'}, 5: {"s": '{"logOffset":1}'}, 6: {"s": '{"logOffset":3}'}}
    >>> batches_of_entries(offsets, "s")
    {1: 4, 2: 6, 3: 6}
    """
    found: dict[int, int] = {}
    before: int | None = None
    for batch in sorted(offsets):
        now = entry_of_offset(offsets[batch].get(name))
        if now is None:
            continue
        first = (0 if batch == 0 else now) if before is None else before + 1
        found.update((entry, batch) for entry in range(first, now + 1))
        before = max(now, -1 if before is None else before)
    return found


def bars_of(spark: SparkSession, streams: Iterable[Stream], rows: Mapping[str, DataFrame]) -> dict[str, Bars]:
    """Return of each stream that takes part before which event time the rows of each batch were late. A stream counts
    as awake at all times.
    """
    taking_part = tuple(streams)
    newest = {stream.name: _newest(spark, stream, rows[stream.name]) for stream in taking_part}
    bars = watermarks({stream.name: (newest[stream.name], stream.delay_us) for stream in taking_part})
    return dict.fromkeys(newest, bars)


def watermarks(streams: Mapping[str, tuple[Mapping[int, int], int]]) -> Bars:
    """Return the watermark of each batch in which some stream sent rows, and of the one after the last. `streams`: the
    largest event time of each batch, and the delay.

    >>> watermarks({"a": ({0: 100, 2: 300}, 10), "b": ({0: 200, 1: 50}, 0)})
    {1: 90, 2: 90, 3: 200}
    """
    batches = sorted({batch for newest, _ in streams.values() for batch in newest})
    so_far: dict[str, int] = {}
    bars: dict[int, int] = {}
    bar: int | None = None
    for batch, following in zip(batches, [*batches[1:], batches[-1] + 1] if batches else [], strict=True):
        for name, (newest, delay) in streams.items():
            if batch in newest:
                so_far[name] = max(so_far.get(name, newest[batch] - delay), newest[batch] - delay)
        if len(so_far) == len(streams):
            mark = min(so_far.values())
            bar = mark if bar is None else max(bar, mark)
            bars[following] = bar
    return bars


def _newest(spark: SparkSession, stream: Stream, rows: DataFrame) -> dict[int, int]:
    """Return the largest event time of each batch."""
    timed = rows.selectExpr(f"{relation_tau(stream)} AS tau", BATCH)
    text = f"SELECT {BATCH} AS batch, max(tau) AS tau FROM {{rows}} x WHERE {BATCH} IS NOT NULL GROUP BY {BATCH}"
    found = spark.sql(text, rows=timed).toArrow().to_pylist()
    return {each["batch"]: each["tau"] for each in found if each["tau"] is not None}


__all__ = ["Evidence", "bars_of", "batches_of_entries", "read_again", "watermarks"]
