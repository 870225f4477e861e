"""The one streaming query under all of Plait's: all sources in, ingest reports out."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import StreamingQuery

from plait.operators.ingest.deriving import Derivation
from plait.operators.ingest.placed_rows import are_sent, sending_of
from plait.operators.ingest.projection import IngestSpec
from plait.plan.key_groups import Generation
from plait.runtime.inputs.loading import select_ingest
from plait.runtime.inputs.opening import OpenSource, reading
from plait.runtime.spark.session import NAMED_SOURCES, has_named_sources
from plait.runtime.spark.tasks import REPORT, stream_ingest
from plait.state.storage import Storage


def ingest_frame(
    opened: OpenSource,
    spec: IngestSpec,
    how: Derivation | None,
    storage: Storage,
    *,
    slots: int,
    shuffle: bool,
    chunk_rows: int,
    changes: str,
    generation: Generation | None,
) -> DataFrame:
    """Return the reports of the tasks that take in one stream; `spec`, `how`, `changes` and `generation` as in
    `stream_ingest`. Rows that no access has a table for are shuffled by the store's partitioning.
    """

    with reading(opened.source):
        frame = select_ingest(opened.frame, spec)
        store = spec.stores[0][0]
        is_sent = generation is not None and are_sent(spec, generation)
        if generation is not None and is_sent:
            frame = sent_frame(frame, spec, generation)
        elif shuffle and store.partition_by:
            numbers = {name: f"c{number}" for number, (name, _) in enumerate(spec.projection)}
            repeated = dict(spec.aliases)
            keys = ", ".join(numbers[repeated.get(name, name)] for name in store.partition_by)
            place = f"CAST(pmod(xxhash64({keys}), {store.parallelism}) AS INT)"
            frame = frame.repartitionById(store.parallelism, expr(place))
        else:
            frame = frame.coalesce(slots)
        used = generation if is_sent else None
        return frame.mapInArrow(stream_ingest(spec, how, storage, chunk_rows, changes, used), REPORT)


def sent_frame(frame: DataFrame, spec: IngestSpec, generation: Generation) -> DataFrame:
    """Return rows once for each partition that they are sent to, in that partition, with what tasks are told."""
    sending, chosen = sending_of(spec, generation), [f"c{number}" for number, _ in enumerate(spec.projection)]
    frame = frame.selectExpr("*", *(f"{sql} AS {name}" for name, sql in sending.found))
    frame = frame.selectExpr("*", f"{sending.home} AS home")
    if sending.told is None:  # a row has no other place than its home
        return frame.repartitionById(sending.partitions, expr("home")).select(*chosen)
    frame = frame.selectExpr("*", f"explode({sending.places}) AS place")
    frame = frame.selectExpr(*chosen, f"{sending.told} AS sent", "place")
    return frame.repartitionById(sending.partitions, expr("place")).select(*chosen, "sent")


def start_query(
    spark: SparkSession,
    frames: list[DataFrame],
    *,
    checkpoint: str,
    trigger: str | None,
    process: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    """Start the streaming query over all sources. `trigger` None: all that is available now, then end."""
    frame = reduce(lambda united, frame: united.union(frame), frames)
    writer = frame.writeStream.queryName("plait").option("checkpointLocation", checkpoint).foreachBatch(process)
    writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
    if has_named_sources(spark):
        for name, value in NAMED_SOURCES.items():
            spark.conf.set(name, value)
    return writer.start()


__all__ = ["ingest_frame", "sent_frame", "start_query"]
