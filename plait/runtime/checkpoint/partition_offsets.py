"""What Spark's offset log says of the partitions of topics: how far behind a stream is, and which records it missed.

An offset of a Kafka source is a JSON object: for each topic, for each of its partitions, the offset of the next record
to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from pyspark.sql.streaming import StreamingQuery

from plait.query.model import Source
from plait.runtime.checkpoint.offsets import offsets_at
from plait.sources import spark_name
from plait.spelling import folded

Offsets: TypeAlias = Mapping[tuple[str, int], int]
"""The next offset of each partition of each topic."""


def partition_offsets(text: str | None) -> Offsets:
    """Return what an offset says of partitions; nothing of an offset of another kind.

    >>> partition_offsets('{"orders": {"0": 17}}')
    {('orders', 0): 17}
    """
    try:
        told = json.loads(text or "")
        return {(topic, int(number)): int(next_) for topic, of in told.items() for number, next_ in of.items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def behind(read: Offsets, latest: Offsets) -> dict[str, int]:
    """Return how many records each partition holds that are not read yet.

    >>> behind({("orders", 0): 17}, {("orders", 0): 20, ("orders", 1): 5})
    {'orders-0': 3, 'orders-1': 5}
    """
    return {f"{topic}-{number}": max(end - read.get((topic, number), 0), 0) for (topic, number), end in latest.items()}


def lag_of(query: StreamingQuery | None, checkpoint: str, streams: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return how far each stream of a topic is behind, by partition, as of the last batch. Nothing before the first
    batch, and of streams that have no names in Spark's logs.
    """
    progress: Any = None
    with suppress(Exception):  # of a JVM that is gone the run itself tells
        progress = None if query is None else query.lastProgress
    if progress is None:
        return {}
    # What is told while nothing is read has the number of the batch to come, which may have begun meanwhile.
    logged = [offsets_at(checkpoint, progress.batchId - back) for back in (0, 1)]
    # Spark tells of its sources in no order that could be relied on: they are known by where they have come to.
    told = [
        (partition_offsets(source.endOffset), partition_offsets(source.latestOffset)) for source in progress.sources
    ]
    found: dict[str, dict[str, int]] = {}
    for stream in streams:
        places = [partition_offsets(offsets.get(spark_name(stream))) for offsets in logged]
        latest = next(
            ((place, last) for place in places for end, last in told if place and end == place and last), None
        )
        if latest is not None:
            found[stream] = behind(*latest)
    return found


def goes_on_without(source: Source) -> bool:
    """Tell whether a stream goes on where records are gone, and it can be told how many: of all that it reads it makes
    a row.
    """
    connector = source.connector
    if connector is None or (connector.making is not None and connector.making.condition is not None):
        return False
    settings = {folded(name): value.strip().lower() for name, value in connector.options}
    return settings.get("failondataloss") == "false"


def passed_over(rows: int, before: str | None, now: str | None) -> int:
    """Return how many of a batch's offsets held no record; 0 where nobody can tell. `rows` were read from offset
    `before` to `now`, as Spark has them.

    >>> passed_over(3, '{"orders": {"0": 10}}', '{"orders": {"0": 15}}')
    2
    """
    was, has = partition_offsets(before), partition_offsets(now)
    if not was or not has.keys() <= was.keys():
        return 0  # where a partition began is not in the log
    return max(sum(next_ - was[partition] for partition, next_ in has.items()) - rows, 0)


__all__ = ["behind", "goes_on_without", "lag_of", "partition_offsets", "passed_over"]
