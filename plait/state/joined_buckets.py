"""Several buckets of a store read as one, in memory, for as long as somebody probes them.

A lookup takes some ten microseconds however few rows it looks among, and each use of a bucket asks the file system
whether it has been touched. Where hundreds of steps probe a store of dozens of small buckets that is all the time there
is; so small ones are copied into one, whose indexes are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from plait.state.buckets import OpenBucket, build_index, one_batch, open_bucket, rows_of_all
from plait.state.indexes import Index
from plait.state.model import Bucket
from plait.state.storage import Storage


class JoinedBucket(OpenBucket):
    """The rows of several buckets, which have one layout and sort key. Whether their files have been touched is seen
    when they are opened, and once more by `require_untouched`.
    """

    is_copied: ClassVar[bool] = True

    def __init__(self, storage: Storage, bucket: Bucket, buckets: Sequence[Bucket]) -> None:
        self.storage, self.bucket = storage, bucket
        self._parts = [open_bucket(storage, each) for each in buckets]
        tables = [pa.Table.from_batches([self._rows_of(part)]) for part in self._parts]
        self.batch = self._as_read(one_batch(rows_of_all(tables)))
        self._indexes, self._views = {}, {}
        self.read_otherwise = ()

    def _rows_of(self, part: OpenBucket) -> pa.RecordBatch:
        """Return what is taken of a part."""
        return part.batch

    def _as_read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return what is read of the rows of all."""
        return rows

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has written to the files."""
        return all(part.is_untouched for part in self._parts)

    def require_untouched(self) -> None:
        """Raise `CheckpointError` if somebody has written to the files since they were opened."""
        for part in self._parts:
            part.require_untouched()

    def release(self) -> None:
        """End a use: the copy stays as it is."""

    def _load_index(self, keys: tuple[str, ...]) -> Index:
        return build_index(self.batch, keys, self.bucket.layout.has_tau)


def description(buckets: Sequence[Bucket]) -> Bucket:
    """Return what is known of buckets of one store, layout and sort key as if they were one, which has no file."""
    taus = [each.tau_min for each in buckets if each.tau_min is not None]
    newest = [each.tau_max for each in buckets if each.tau_max is not None]
    untils = [each.until_us for each in buckets]
    return replace(
        buckets[0],
        path=" + ".join(each.path for each in buckets),
        rows=sum(each.rows for each in buckets),
        bytes=sum(each.bytes for each in buckets),
        batch_min=min(each.batch_min for each in buckets),
        batch_max=max(each.batch_max for each in buckets),
        tau_min=min(taus, default=None),
        tau_max=max(newest, default=None),
        until_us=None if None in untils else max(until for until in untils if until is not None),
        checksum="",
    )


__all__ = ["JoinedBucket", "description"]
