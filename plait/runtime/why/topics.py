"""The records of a stream of Kafka, read once more, each with the batch that took it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from plait.query.model import Connector, Source
from plait.query.origin import Making
from plait.runtime.checkpoint.offsets import offsets_by_batch
from plait.runtime.checkpoint.partition_offsets import Offsets, partition_offsets
from plait.runtime.inputs.making import made_rows
from plait.runtime.inputs.opening import reading
from plait.runtime.why.offset_ranges import UNREAD, OffsetRange, first_offsets, gone, offset_ranges
from plait.runtime.why.row_frames import BATCH
from plait.sources import spark_name
from plait.spelling import backquoted, folded

_OF_STREAMS: Final = (
    "startingoffsets",
    "startingoffsetsbytimestamp",
    "startingtimestamp",
    "startingoffsetsbytimestampstrategy",
    "endingoffsets",
    "endingoffsetsbytimestamp",
    "endingtimestamp",
    "maxoffsetspertrigger",
    "minoffsetspertrigger",
    "maxtriggerdelay",
    "failondataloss",
)
"""Options that say which records a stream takes when: here all are read that are there."""

_RANGES: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("first", LongType()),
        StructField("until", LongType()),
        StructField("batch", LongType()),
    ]
)


def read_topics(
    spark: SparkSession, source: Source, connector: Connector, checkpoint: str
) -> tuple[DataFrame, str | None]:
    """Return the rows of a stream, each with the batch that took it (`BATCH`), and which records are not there any
    more. Raises OptionError if nothing was read yet.
    """
    first = first_offsets(checkpoint, source.name)
    name = spark_name(source.name)
    ends = {batch: partition_offsets(told.get(name)) for batch, told in offsets_by_batch(checkpoint).items()}
    options = {key: value for key, value in connector.options if folded(key) not in _OF_STREAMS}
    with reading(source):
        reader = spark.read.format("kafka").options(**options).options(failOnDataLoss="false")
        records = reader.load()
        least = _least(spark, records)
    ranges = tuple(offset_ranges(first, ends))
    taken = _with_batches(spark, records, ranges)
    rows, corrupt = made_rows(taken, carrying(source, connector), None, keeps_bad=False)
    if corrupt is not None:
        rows = rows.where(f"{backquoted(corrupt)} IS NULL").drop(corrupt)
    return rows, gone(first, _read(ranges), least)


def carrying(source: Source, connector: Connector) -> Connector:
    """Return a connector whose rows have the batch of their record as one column more.

    >>> from plait.query.model import Column, Stream
    >>> stream = Stream(name="s", time="ts", schema=(Column(name="ts", type="timestamp"),))
    >>> carrying(stream, Connector(format="kafka")).making.items
    (('ts', '`ts`'), ('taken_by_batch', 'taken_by_batch'))
    """
    making = connector.making
    if making is None:
        items = tuple((column.name, backquoted(column.name)) for column in source.schema or ())
        making = Making(delivered=(), items=items)
    return replace(connector, making=replace(making, items=(*making.items, (BATCH, BATCH))))


def _least(spark: SparkSession, records: DataFrame) -> Offsets:
    text = "SELECT topic, partition, min(offset) AS least FROM {records} r GROUP BY topic, partition"
    found = spark.sql(text, records=records).toArrow().to_pylist()
    return {(each["topic"], each["partition"]): each["least"] for each in found}


def _read(ranges: tuple[OffsetRange, ...]) -> Offsets:
    """Return how far each partition was read."""
    read: dict[tuple[str, int], int] = {}
    for each in ranges:
        if each.batch != UNREAD:
            read[each.topic, each.partition] = max(each.until, read.get((each.topic, each.partition), 0))
    return read


def _with_batches(spark: SparkSession, records: DataFrame, ranges: tuple[OffsetRange, ...]) -> DataFrame:
    columns = {
        "topic": pa.array([each.topic for each in ranges], pa.string()),
        "partition": pa.array([each.partition for each in ranges], pa.int32()),
        "first": pa.array([each.first for each in ranges], pa.int64()),
        "until": pa.array([each.until for each in ranges], pa.int64()),
        "batch": pa.array([each.batch for each in ranges], pa.int64()),
    }
    taken = spark.createDataFrame(pa.table(columns), _RANGES)
    return spark.sql(
        f"SELECT r.*, t.batch AS {BATCH} FROM {{records}} r LEFT JOIN {{taken}} t ON r.topic = t.topic "
        "AND r.partition = t.partition AND r.offset >= t.first AND r.offset < t.until "
        f"WHERE t.batch IS NULL OR t.batch <> {UNREAD}",
        records=records,
        taken=taken,
    )


__all__ = ["carrying", "read_topics"]
