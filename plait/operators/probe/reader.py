"""Open buckets under the layouts that the plan in force wants of them (`plait.operators.ingest.readings`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from plait.operators.column_names import SERVES
from plait.operators.ingest.readings import Reading, Readings, read_as
from plait.state.buckets import COMBINED, OpenBucket, open_bucket
from plait.state.joined_buckets import JoinedBucket
from plait.state.model import Bucket
from plait.state.storage import Storage

FEW_ROWS: Final = 50_000
"""A bucket of so few rows is read under the layout of the plan also where it has all of it and more, because buckets of
one layout can be read together."""

_WAYS: Final = 2
"""In so many ways a bucket is kept in memory as it was read last."""


def seen(bucket: Bucket, readings: Readings) -> Bucket:
    """Return a bucket with the layout that it is read under."""
    reading = readings.get(bucket.store)
    if reading is None or bucket.layout == reading.layout or not reading.serves(bucket.layout):
        return bucket
    if bucket.rows > FEW_ROWS and not reading.adds_to(bucket.layout):
        return bucket
    is_sorted = set(bucket.sort_key) <= set(reading.layout.keys)
    return replace(bucket, layout=reading.layout, sort_key=bucket.sort_key if is_sorted else ())


@dataclass(slots=True)
class Reader:
    """Opens the buckets of a checkpoint. Ask for those that it has `seen`. `_stored`: what these are in truth, by store
    and path: where every query has a store of its own, several have the same files.
    """

    storage: Storage
    readings: Readings = field(default_factory=dict)
    _stored: dict[tuple[str, str], Bucket] = field(default_factory=dict)

    def seen(self, bucket: Bucket) -> Bucket:
        """Return a bucket with the layout that it is read under."""
        read = seen(bucket, self.readings)
        if read is not bucket:
            self._stored[bucket.store, bucket.path] = bucket
        return read

    def all_seen(self, buckets: Iterable[Bucket]) -> tuple[Bucket, ...]:
        """Return buckets with the layouts that they are read under."""
        return tuple(map(self.seen, buckets))

    def kind(self, bucket: Bucket) -> Hashable:
        """Return what buckets that may be read as one have in common. One that was stored under the layout by which
        others are read need not have all that these are read from.
        """
        reading = self.readings.get(bucket.store)
        could_be = reading is not None and bucket.layout == reading.layout and reading.serves(bucket.layout)
        is_read = could_be or (bucket.store, bucket.path) in self._stored
        return bucket.layout, None if is_read else bucket.sort_key

    def open(self, bucket: Bucket) -> OpenBucket:
        """Return a bucket mapped into memory."""
        stored = self._stored.get((bucket.store, bucket.path))
        if stored is None:
            return open_bucket(self.storage, bucket)
        return _read(open_bucket(self.storage, stored), bucket, self.readings[bucket.store])

    def open_joined(self, one: Bucket, buckets: Sequence[Bucket]) -> JoinedBucket:
        """Return buckets of one kind, read as one."""
        stored = [self._stored.get((bucket.store, bucket.path), bucket) for bucket in buckets]
        alike = {(each.layout, each.sort_key) for each in stored}
        if alike == {(one.layout, one.sort_key)}:
            return JoinedBucket(self.storage, one, stored)
        return _JoinedReading(self.storage, one, stored, self.readings[one.store])


class _ReadBucket(OpenBucket):
    """A bucket under another layout than it has. Files of indexes lie beside it as beside any other."""

    def __init__(self, opened: OpenBucket, bucket: Bucket, reading: Reading) -> None:
        self.storage, self.bucket, self.reading, self._opened = opened.storage, bucket, reading, opened
        self._stamps, self._path = dict(opened._stamps), opened._path
        batch = read_as(reading, opened.batch)
        for name in (COMBINED, SERVES):
            if name in opened.batch.schema.names:
                batch = batch.append_column(name, opened.batch.column(name))
        self.batch = batch
        self._indexes, self._views = {}, {}
        self.read_otherwise = ()

    def release(self) -> None:
        """End a use of the bucket. Only the pages of the file may be given up: what was computed is nowhere else."""
        self.require_untouched()
        self._opened.release()


def _read(opened: OpenBucket, bucket: Bucket, reading: Reading) -> OpenBucket:
    """Return an open bucket as it is read, once for as long as it is read so. Beside what a plan reads, a query that
    gets the results of the past may read the same bucket in its own way.
    """
    for known in opened.read_otherwise:
        if isinstance(known, _ReadBucket) and known.reading is reading:
            return known
    made = _ReadBucket(opened, bucket, reading)
    opened.read_otherwise = (made, *opened.read_otherwise[: _WAYS - 1])
    return made


class _JoinedReading(JoinedBucket):
    """Buckets of several layouts as one: what they lack is computed once for all."""

    def __init__(self, storage: Storage, bucket: Bucket, buckets: Sequence[Bucket], reading: Reading) -> None:
        self._reading = reading
        super().__init__(storage, bucket, buckets)

    def _rows_of(self, part: OpenBucket) -> pa.RecordBatch:
        return part.batch.select(list(self._reading.columns))

    def _as_read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return read_as(self._reading, rows)


__all__ = ["FEW_ROWS", "Reader", "seen"]
