"""Which batch took a record of a topic, by Spark's logs: each batch has read a range of offsets of every partition.

The note that Spark makes when it first reads a topic says where that was; its offset log, how far each of the last
hundred batches went. Of records before the first of these it is only known that some batch has read them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plait.errors import OptionError, PlaitError
from plait.runtime.checkpoint.partition_offsets import Offsets, partition_offsets
from plait.sources import spark_name
from plait.state.storage import Storage

UNREAD: int = -2
"""Stands for the batch of records before the first one that was read: they are no rows of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets of a partition from `first` up to and without `until` that were read by a batch."""

    topic: str
    partition: int
    first: int
    until: int
    batch: int


def first_offsets(checkpoint: str, stream: str) -> Offsets:
    """Return where Spark began to read each partition of a stream. Raises OptionError if it has read nothing yet."""
    path = posixpath.join("sources", spark_name(stream), "0")
    storage = Storage.open(posixpath.join(checkpoint, "spark"))
    try:
        content = storage.read_bytes(path) if storage.exists(path) else b""
    except (PlaitError, OSError):
        content = b""
    found = partition_offsets(content[content.find(b"{") :].decode(errors="replace"))
    if not found:
        raise OptionError(f"no batch has begun to read stream '{stream}' yet; ask again once one has")
    return found


def offset_ranges(first: Offsets, ends: Mapping[int, Offsets]) -> Iterator[OffsetRange]:
    """Yield which batch has read which offsets. `ends`: where each batch came to, as far as that is known.

    >>> ends = {7: {("t", 0): 20}, 8: {("t", 0): 20, ("t", 1): 5}}
    >>> [(each.partition, each.first, each.until, each.batch) for each in offset_ranges({("t", 0): 10}, ends)]
    [(0, 0, 10, -2), (0, 10, 20, 7), (1, 0, 5, 8)]
    """
    for (topic, partition), next_ in sorted(first.items()):
        if next_:
            yield OffsetRange(topic=topic, partition=partition, first=0, until=next_, batch=UNREAD)
    so_far = dict(first)
    for batch in sorted(ends):
        for (topic, partition), next_ in sorted(ends[batch].items()):
            before = so_far.get((topic, partition), 0)  # a partition that was added is read from its beginning
            if next_ > before:
                yield OffsetRange(topic=topic, partition=partition, first=before, until=next_, batch=batch)
            so_far[topic, partition] = max(before, next_)


def gone(first: Offsets, read: Offsets, least: Offsets) -> str | None:
    """Say which records that were read are not there any more, None if all are. `read`: how far each partition was;
    `least`: the first offset that is there of each that has records.

    >>> gone({("t", 0): 10, ("t", 1): 0}, {("t", 0): 20, ("t", 1): 5}, {("t", 0): 15, ("t", 1): 0})
    't-0 before offset 15'
    """
    texts = []
    for (topic, partition), until in sorted(read.items()):
        there = least.get((topic, partition), until)
        if there > first.get((topic, partition), 0):
            texts.append(f"{topic}-{partition} before offset {there}")
    return ", ".join(texts) or None


__all__ = ["UNREAD", "OffsetRange", "first_offsets", "gone", "offset_ranges"]
