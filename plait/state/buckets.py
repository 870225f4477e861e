"""Buckets: immutable, sorted, memory-mapped pieces of a store partition.

A bucket file is one Arrow record batch, uncompressed, sorted by (key of the first index, τ); rows with NULL in that
key come last, in τ order. Without an index it is sorted by τ. A composite sort key is kept as one more column,
`COMBINED`, NULL where a part is. Further indexes of all but small ones are files beside it (`plait.state.indexes`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import CheckpointError, InvalidPlanError
from plait.kernels.compiled import Int32s, Int64s
from plait.kernels.hashing import combine
from plait.kernels.ordering import sort_order
from plait.state import indexes as index_files
from plait.state.indexes import Index
from plait.state.model import Bucket, Layout
from plait.state.naming import bucket_path, index_path
from plait.state.paging import release
from plait.state.storage import Storage, checksum_of, explaining

TAU = "#tau"
COMBINED = "#i"
_OPEN_LIMIT = 4096
_RELEASED_BYTES = 32 << 20
_SWEEP_EVERY, _SWEEP_COPIES_EVERY = 128, 16


def write_bucket(
    storage: Storage,
    *,
    store: str,
    partition: int,
    name: str,
    table: pa.Table,
    layout: Layout,
    indexes: tuple[tuple[str, ...], ...],
    batch_min: int,
    batch_max: int,
    partition_by: tuple[str, ...] = (),
    parallelism: int = 1,
) -> Bucket:
    """Sort the rows of `table`, write them and all `indexes`, and return the bucket's description.

    `table` has the columns the layout names, `TAU` if it has τ and ``#bits`` if it has several selections. `name` must
    be new within the store partition (it carries batch and attempt).
    """
    sort_key = indexes[0] if indexes else ()
    batch = _sorted(one_batch(table), sort_key, layout.has_tau)
    path = bucket_path(store, partition, name)

    def write(sink: object) -> None:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    written = storage.write_file(path, write)
    for keys in dict.fromkeys(indexes[1:] if batch.num_rows >= index_files.FEWEST_ROWS else ()):
        index_files.write(storage, path, keys, build_index(batch, keys, layout.has_tau))
    tau = int64_view(batch, TAU) if layout.has_tau and batch.num_rows else None
    return Bucket(
        store=store,
        partition=partition,
        path=path,
        rows=batch.num_rows,
        bytes=written.bytes,
        batch_min=batch_min,
        batch_max=batch_max,
        tau_min=None if tau is None else int(tau.min()),
        tau_max=None if tau is None else int(tau.max()),
        sort_key=sort_key,
        layout=layout,
        checksum=written.checksum,
        partition_by=partition_by,
        parallelism=parallelism,
    )


class OpenBucket:
    """A bucket mapped into memory. Its arrays are read-only views of the file and keep the mapping alive.

    What is mapped is what the file holds **now**: whoever overwrites the file changes the arrays. So the checksum is
    compared when a bucket is opened, and whether the file has been touched since, before and after it is used. Nothing
    that is derived from it (an index, a merged bucket) outlives a change, and no result of it is committed.
    `read_otherwise`: itself under other layouts, if it is read so.
    """

    is_copied: ClassVar[bool] = False
    """Whether what is read lies in memory, where nothing that is written to files meanwhile reaches it."""

    def __init__(self, storage: Storage, bucket: Bucket) -> None:
        self.storage, self.bucket = storage, bucket
        self._stamps: dict[Path, Stamp] = {}
        self._path = storage.local_copy(bucket.path)
        self._stamp(self._path)
        self.batch = _map(storage, bucket)
        self._indexes: dict[tuple[str, ...], Index] = {}
        self._views: dict[str, Int64s] = {}
        self.read_otherwise: tuple[OpenBucket, ...] = ()

    def _stamp(self, path: Path) -> None:
        stamp = stamp_of(path, is_copy=not self.storage.is_local)
        if stamp is not None:
            self._stamps[path] = stamp

    def _now(self, path: Path) -> Stamp | None:
        return stamp_of(path, is_copy=not self.storage.is_local)

    @property
    def is_untouched(self) -> bool:
        """Whether the files are those that were opened, and nobody has written to them; one that was deleted stays as
        it was.
        """
        return all(self._now(path) in (stamp, None) for path, stamp in self._stamps.items())

    def require_untouched(self) -> None:
        """Raise `CheckpointError` if somebody has written to the files since they were opened.

        An index may have been replaced by another worker, which has built the same; what is mapped stays as it was.
        """
        for path, stamp in self._stamps.items():
            now = self._now(path)
            is_replaced = path != self._path and now is not None and now[0] != stamp[0]
            if now not in (stamp, None) and not is_replaced:
                raise damaged(self.storage, self.bucket, f"{path.name} was written to while it was being read")

    @property
    def is_on_disk(self) -> bool:
        """Whether the mapped file still has a name; one that was deleted stays readable but keeps its disk space."""
        return self._path.exists()

    def int64(self, name: str) -> Int64s:
        """Return an int64 column without a copy. Where the column is NULL the value means nothing: ask an index,
        which leaves NULLs out.
        """
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = int64_view(self.batch, name)
        return view

    def index(self, keys: tuple[str, ...]) -> Index:
        """Return the index by `keys`; one that is missing is built, and written beside the bucket where that is
        allowed.
        """
        index = self._indexes.get(keys)
        if index is None:
            index = self._indexes[keys] = self._load_index(keys)
        return index

    def release(self) -> None:
        """End a use of the bucket: raise `CheckpointError` if it was written to meanwhile. The claim on its pages is
        given up where it is large enough to matter; everything stays readable.
        """
        self.require_untouched()
        if self.bucket.bytes < _RELEASED_BYTES:
            return
        buffers = (buffer for column in self.batch.columns for buffer in column.buffers() if buffer is not None)
        release(((buffer.address, buffer.size) for buffer in buffers), self.bucket.bytes)

    def take(self, rows: Int32s, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns of these rows (int32[n], any order, repeats allowed)."""
        return self.batch.select(list(columns)).take(pa.array(rows))

    def _load_index(self, keys: tuple[str, ...]) -> Index:
        if not set(keys) <= set(self.bucket.layout.keys) or not keys:
            raise InvalidPlanError(
                f"Bucket {self.bucket.path} has keys {self.bucket.layout.keys}; a step probes it by {keys}"
            )
        has_tau = self.bucket.layout.has_tau
        if keys == self.bucket.sort_key:
            return _sort_index(self.batch, keys, has_tau)
        if self.bucket.rows < index_files.FEWEST_ROWS:
            made = build_index(self.batch, keys, has_tau)
            self.require_untouched()
            return made
        path = index_path(self.bucket.path, keys)
        stamps = dict(self._stamps)
        if self.storage.exists(path):
            self._stamp(self.storage.local_copy(path))
        index = index_files.read(self.storage, self.bucket, keys)
        if index is None:
            self._stamps = stamps
            index = build_index(self.batch, keys, has_tau)
            self.require_untouched()
            index_files.write_if_possible(self.storage, self.bucket.path, keys, index)
        return index


class _OpenBuckets:
    """The buckets this process has open, least recently used first.

    A file that was deleted keeps its disk space while it is mapped, so now and then those are closed: more often where
    they are local copies, whose space is counted as free once they are deleted.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: OrderedDict[tuple[str, str, str], OpenBucket] = OrderedDict()
        self._opened = 0

    def get(self, storage: Storage, bucket: Bucket) -> OpenBucket:
        key = (storage.uri, bucket.path, bucket.checksum)
        with self._lock:
            cached = self._open.get(key)
            if cached is not None and cached.is_untouched:
                self._open.move_to_end(key)
                return cached
            self._open.pop(key, None)
        opened = OpenBucket(storage, bucket)
        with self._lock:
            opened = self._open.setdefault(key, opened)
            self._open.move_to_end(key)
            self._opened += 1
            if self._opened % (_SWEEP_EVERY if storage.is_local else _SWEEP_COPIES_EVERY) == 0:
                self._close_deleted()
            while len(self._open) > _OPEN_LIMIT:
                self._open.popitem(last=False)
        return opened

    def close_others(self, storage: Storage, buckets: Iterable[Bucket]) -> None:
        live = {bucket.path for bucket in buckets}
        with self._lock:
            for key in [key for key in self._open if key[0] == storage.uri and key[1] not in live]:
                del self._open[key]

    def _close_deleted(self) -> None:
        for key in [key for key, opened in self._open.items() if not opened.is_on_disk]:
            del self._open[key]


_OPEN = _OpenBuckets()


def open_bucket(storage: Storage, bucket: Bucket) -> OpenBucket:
    """Return the bucket mapped into memory, from this process's cache if it is open already.

    No file descriptor stays open: a mapping does not need one.
    """
    return _OPEN.get(storage, bucket)


def close_others(storage: Storage, buckets: Iterable[Bucket]) -> None:
    """Close all buckets of `storage` but these, so that the disk space of deleted ones can be reused."""
    _OPEN.close_others(storage, buckets)


def verify(storage: Storage, bucket: Bucket) -> None:
    """Read the whole bucket file and raise `CheckpointError` unless size and checksum are what the manifest says.

    Indexes hold nothing the bucket does not: a damaged one is deleted, to be built again.
    """
    with storage.open_mapped(bucket.path) as file:
        content = file.read_buffer()
        found = checksum_of(content) if content.size == bucket.bytes else f"{content.size} bytes"
    expected = bucket.checksum if content.size == bucket.bytes else f"{bucket.bytes} bytes"
    if found != expected:
        raise damaged(storage, bucket, f"expected {expected}, found {found}")
    index_files.discard_damaged(storage, bucket)


def damaged(storage: Storage, bucket: Bucket, reason: str) -> CheckpointError:
    """Return the error for a bucket whose file is not what was written."""
    return CheckpointError(
        f"Bucket {storage.name(bucket.path)} of store {bucket.store} is damaged: {reason}. Restore the checkpoint from "
        "a backup, or start over with a new checkpoint directory (state is rebuilt from what the sources still hold)."
    )


def int64_view(batch: pa.RecordBatch, name: str) -> Int64s:
    """Return an int64 (or 64-bit time) column's values without a copy; NULLs have a meaningless value."""
    column = batch.column(name)
    if not pa.types.is_primitive(column.type) or column.type.bit_width != 64:
        raise InvalidPlanError(f"Column {name} is of type {column.type}; expected a 64-bit integer")
    values = column.buffers()[1]
    if values is None:
        return np.zeros(len(column), np.int64)
    return np.frombuffer(values, np.int64, len(column), column.offset * 8)


def build_index(batch: pa.RecordBatch, keys: tuple[str, ...], has_tau: bool) -> Index:
    """Sort the rows of `batch` that have no NULL among `keys` by (key, τ)."""
    key, present = _combined(batch, keys)
    tau = int64_view(batch, TAU) if has_tau else None
    if present is None:
        row = sort_order(key, tau)
    else:
        row = np.flatnonzero(present).astype(np.int32)
        row = row[sort_order(key[row], None if tau is None else tau[row])]
    return Index(key=key[row], tau=None if tau is None else tau[row], row=row)


def _sort_index(batch: pa.RecordBatch, keys: tuple[str, ...], has_tau: bool) -> Index:
    name = keys[0] if len(keys) == 1 else COMBINED
    rows = batch.num_rows - batch.column(name).null_count
    return Index(
        key=int64_view(batch, name)[:rows],
        tau=int64_view(batch, TAU)[:rows] if has_tau else None,
        row=None,
    )


def _combined(batch: pa.RecordBatch, keys: tuple[str, ...]) -> tuple[Int64s, NDArray[np.bool_] | None]:
    """Return the combined key of each row, and which rows have no NULL among `keys` (None: all)."""
    present = None
    for name in keys:
        column = batch.column(name)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            present = valid if present is None else present & valid
    return combine([int64_view(batch, name) for name in keys]), present


def _sorted(batch: pa.RecordBatch, sort_key: tuple[str, ...], has_tau: bool) -> pa.RecordBatch:
    """Return the rows by (key, τ), NULL keys last, and the combined key as a column if it is composite."""
    tau = int64_view(batch, TAU) if has_tau else None
    if not sort_key:
        if tau is None:
            return batch
        order = sort_order(tau, None)
    else:
        key, present = _combined(batch, sort_key)
        if len(sort_key) > 1:
            mask = None if present is None else ~present
            batch = batch.append_column(COMBINED, pa.array(key, pa.int64(), mask=mask))
        order = _order_with_nulls(key, tau, present)
    if bool((order[1:] > order[:-1]).all()):
        return batch
    return batch.take(pa.array(order))


def _order_with_nulls(key: Int64s, tau: Int64s | None, present: NDArray[np.bool_] | None) -> Int32s:
    """Return the order of rows by (key, τ), those not `present` last, by τ."""
    if present is None:
        return sort_order(key, tau)
    with_key, without = np.flatnonzero(present), np.flatnonzero(~present)
    with_key = with_key[sort_order(key[with_key], None if tau is None else tau[with_key])]
    if tau is not None:
        without = without[sort_order(tau[without], None)]
    return np.concatenate((with_key, without)).astype(np.int32)


def rows_of_all(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables with the same columns, in any order. What may be NULL can differ, and what the time
    zone is called, where a later start has used another of its names.
    """
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:
        schema = pa.schema([(field.name, field.type) for field in tables[0].schema])
        return pa.concat_tables([table.select(schema.names).cast(schema) for table in tables])


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the table as one record batch."""
    batches = table.replace_schema_metadata(None).combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema.remove_metadata())
    if len(batches) > 1:
        raise CheckpointError(
            f"{table.num_rows} rows of {table.nbytes} bytes do not fit one bucket: text columns hold 2 GiB at most. "
            "Read fewer rows per batch (plait.batch_rows), or raise the parallelism."
        )
    return batches[0]


Stamp: TypeAlias = tuple[int, int, int]
"""Inode, size and time of the last change of a file."""


def stamp_of(path: Path, *, is_copy: bool) -> Stamp | None:
    """Return what tells whether a file was written to; None if there is none. A local copy of a remote file is touched
    whenever it is used, so its time says nothing.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, 0 if is_copy else status.st_mtime_ns


def _map(storage: Storage, bucket: Bucket) -> pa.RecordBatch:
    with explaining(storage.name(bucket.path), "read"), storage.open_mapped(bucket.path) as file:
        if file.size() != bucket.bytes:
            raise damaged(storage, bucket, f"expected {bucket.bytes} bytes, found {file.size()}")
        found = checksum_of(file.read_buffer())
        if found != bucket.checksum:
            raise damaged(storage, bucket, f"expected {bucket.checksum}, found {found}")
        file.seek(0)
        batch = pa.ipc.open_file(file).get_batch(0)
    if batch.num_rows != bucket.rows:
        raise damaged(storage, bucket, f"expected {bucket.rows} rows, found {batch.num_rows}")
    return batch
