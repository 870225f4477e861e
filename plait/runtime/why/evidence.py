"""What the sources have, read once more, each row with the batch that took it; and which rows were late by that.

Spark's log of a file source says which entry named a file, and its offset log up to which entry each batch read. Of
batches that the offset log has forgotten (it keeps the last hundred) only that they are over is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from plait.errors import OptionError
from plait.query.model import Source, Stream, Table
from plait.runtime.admission.stream_files import entries_of_files
from plait.runtime.checkpoint.arrivals import entry_of_offset
from plait.runtime.checkpoint.offsets import offsets_by_batch
from plait.runtime.inputs.opening import open_source, visible
from plait.runtime.why.row_frames import BATCH, Bars, relation_tau
from plait.sources import format_of, spark_name
from plait.state.model import TABLE_BATCH

_FILE: Final = re.compile(r"^file:/*")
_PATHS: Final = StructType([StructField("path", StringType()), StructField(BATCH, LongType())])


def read_again(spark: SparkSession, source: Source, checkpoint: str) -> DataFrame:
    """Return the rows of a source, each with the batch that took it (`BATCH`): of a table with the one before all, and
    NULL where none has yet. Raises OptionError for a source that cannot be read once more.
    """
    connector = source.connector
    if isinstance(source, Stream) and source.derived is not None:
        raise OptionError(
            f"'{source.name}' is the groups of query '{source.name}', which no source delivers; ask why there is no "
            f"row of that query instead: --query {source.name}"
        )
    if connector is None or not format_of(connector.format).reads_files:
        what = "a DataFrame of the program's" if connector is None else f"'{connector.format}'"
        raise OptionError(
            f"'{source.name}' is {what}; what has become of a row is told by reading its source once more, which is "
            "possible for files"
        )
    static = Table(name=source.name, schema=source.schema, connector=connector)
    opened = open_source(spark, static)
    frame = opened.frame
    if opened.corrupt_column is not None:
        frame = frame.where(f"`{opened.corrupt_column}` IS NULL")
    if not isinstance(source, Stream):
        seen = visible(replace(opened, source=source, frame=frame))
        return seen.selectExpr("*", f"CAST({TABLE_BATCH} AS BIGINT) AS {BATCH}")
    names = [f"`{column.name.replace('`', '``')}`" for column in source.schema or ()]
    named = frame.selectExpr(*names, "input_file_name() AS read_from_file")
    batches = spark.createDataFrame(_batches(source.name, checkpoint), _PATHS)
    return spark.sql(
        f"SELECT {', '.join(f'x.{name}' for name in names)}, b.{BATCH} FROM {{rows}} x LEFT JOIN {{batches}} b "
        "ON regexp_replace(x.read_from_file, '^file:/*', 'file:/') = b.path",
        rows=named,
        batches=batches,
    )


def _batches(stream: str, checkpoint: str) -> pa.Table:
    """Return which batch took each file of a stream."""
    taken = batches_of_entries(offsets_by_batch(checkpoint), spark_name(stream))
    first = min(taken.values(), default=0)
    entries = entries_of_files(checkpoint, stream)
    found = {
        path: taken.get(entry, first if entry < min(taken, default=0) else None) for path, entry in entries.items()
    }
    paths = pa.array([_FILE.sub("file:/", path) for path in found], pa.string())
    return pa.table([paths, pa.array(list(found.values()), pa.int64())], names=["path", BATCH])


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


__all__ = ["bars_of", "batches_of_entries", "read_again", "watermarks"]
