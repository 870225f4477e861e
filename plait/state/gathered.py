"""Files of joined rows that wait for their windows of event time to be over: written once, read, merged, deleted."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import CheckpointError
from plait.state.model import GatheredRows
from plait.state.naming import GROUPS, encoded
from plait.state.storage import Storage


def folder_of(query: str) -> str:
    """Return where the rows of a query wait."""
    return f"{GROUPS}/{encoded(query)}"


def write_gathered(storage: Storage, folder: str, name: str, rows: pa.RecordBatch, time: str) -> GatheredRows:
    """Write joined rows, at least one; `time`: the column of their event time."""
    path = posixpath.join(folder, f"{name}.arrow")
    taus = microseconds(rows.column(time))
    bounds = pc.min_max(taus).as_py()

    def write(sink: IO[bytes]) -> None:
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_batch(rows)

    written = storage.write_file(path, write)
    return GatheredRows(
        path=path,
        rows=rows.num_rows,
        bytes=written.bytes,
        tau_min=bounds["min"],
        tau_max=bounds["max"],
        checksum=written.checksum,
    )


def read_gathered(storage: Storage, files: Iterable[GatheredRows]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these files, each mapped into memory while it is looked at."""
    for file in files:
        with storage.open_mapped(file.path) as mapped, pa.ipc.open_file(mapped) as reader:
            for part in range(reader.num_record_batches):
                yield reader.get_batch(part)


def require_gathered(storage: Storage, files: Iterable[GatheredRows]) -> None:
    """Raise CheckpointError unless these files of a local storage are there, as long as they were written."""
    for file in files if storage.is_local else ():
        with storage.open_mapped(file.path) as mapped:
            found = mapped.size()
        if found != file.bytes:
            raise CheckpointError(
                f"{storage.name(file.path)} has {found} bytes, expected {file.bytes}: the rows of open windows are "
                "damaged. Restore the checkpoint from a backup, or start over with a new one."
            )


def microseconds(times: pa.Array) -> pa.Array:
    """Return event times as microseconds since the epoch."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("us"))
    return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())


__all__ = ["folder_of", "microseconds", "read_gathered", "require_gathered", "write_gathered"]
