"""Index files: the rows of a bucket by another key than it is sorted by.

An index file is one Arrow record batch of ``key``, ``tau`` (if the bucket has τ) and ``row``, sorted by (key, τ),
without the rows whose key is NULL. It derives from the bucket alone: one that is missing or damaged is built again,
and two builders write the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from plait.errors import CheckpointError
from plait.kernels.compiled import Int32s, Int64s
from plait.state.model import Bucket
from plait.state.naming import index_path, stem
from plait.state.storage import Storage, checksum_of

FEWEST_ROWS = 2_000
"""Of fewer rows an index is made sooner than read, by whoever looks something up, and so is never written."""

_CHECKSUM = b"plait.checksum"
_KEYS = b"plait.keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Rows by (key, τ): `key` int64[n] ascending, `tau` int64[n] ascending within a key or None, `row` int32[n], None
    for 0 … n-1. `derived`: what others have worked out of these rows, in this order, for as long as the bucket is open.
    """

    key: Int64s
    tau: Int64s | None
    row: Int32s | None
    derived: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)


def write(storage: Storage, bucket: str, keys: tuple[str, ...], index: Index) -> None:
    """Write an index of the bucket at path `bucket` beside it."""
    columns = {"key": index.key, "tau": index.tau, "row": index.row}
    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items() if values is not None})
    batch = batch.replace_schema_metadata({_KEYS: "\n".join(keys), _CHECKSUM: _checksum(batch)})

    def write_batch(sink: object) -> None:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    storage.write_file(index_path(bucket, keys), write_batch)


def write_if_possible(storage: Storage, bucket: str, keys: tuple[str, ...], index: Index) -> None:
    """Write an index; where the storage cannot be written it stays in this process's memory."""
    try:
        write(storage, bucket, keys, index)
    except CheckpointError:
        return


def read(storage: Storage, bucket: Bucket, keys: tuple[str, ...]) -> Index | None:
    """Map the index of `bucket` by `keys`; None if there is no sound one."""
    path = index_path(bucket.path, keys)
    if not storage.exists(path):
        return None
    batch = _map(storage, path)
    metadata = {} if batch is None else batch.schema.metadata or {}
    if batch is None or metadata.get(_KEYS) != "\n".join(keys).encode() or batch.num_rows > bucket.rows:
        return None
    if metadata.get(_CHECKSUM) != _checksum(batch).encode():
        return None
    return Index(
        key=_int64s(batch, "key"),
        tau=_int64s(batch, "tau") if bucket.layout.has_tau else None,
        row=_int32s(batch, "row"),
    )


def discard_damaged(storage: Storage, bucket: Bucket) -> None:
    """Delete the index files of `bucket` whose content does not have the checksum they carry."""
    folder = bucket.path.rpartition("/")[0]
    for file in storage.list(folder):
        if not file.path.endswith(".index") or stem(file.path) != stem(bucket.path):
            continue
        batch = _map(storage, file.path)
        if batch is None or (batch.schema.metadata or {}).get(_CHECKSUM) != _checksum(batch).encode():
            storage.delete(file.path)


def _map(storage: Storage, path: str) -> pa.RecordBatch | None:
    """Map the batch of an index file; None if the file is damaged or just gone."""
    try:
        with storage.open_mapped(path) as file:
            batch = pa.ipc.open_file(file).get_batch(0)
            batch.validate()
    except (CheckpointError, pa.ArrowException, OSError):
        return None
    return batch


def _checksum(batch: pa.RecordBatch) -> str:
    """Return a checksum of the columns' values."""
    return " ".join(checksum_of(column.buffers()[1] or b"") for column in batch.columns)


def _int64s(batch: pa.RecordBatch, name: str) -> Int64s:
    column = batch.column(name)
    return np.frombuffer(column.buffers()[1] or b"", np.int64, len(column), column.offset * 8)


def _int32s(batch: pa.RecordBatch, name: str) -> Int32s:
    column = batch.column(name)
    return np.frombuffer(column.buffers()[1] or b"", np.int32, len(column), column.offset * 4)
