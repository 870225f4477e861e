"""Plait's number of a batch, and Spark's: a batch that nothing is read for is none of Spark's.

The manifest counts those (`Manifest.unfed`). Tasks, which learn Spark's number from Spark, find the count in a file. It
is written after the manifest, before Spark's next batch begins, and at every start as the last manifest says.
"""

from __future__ import annotations

from typing import Final

from plait.state.storage import Storage

_PATH: Final = "unfed"


def note_unfed(storage: Storage, unfed: int) -> None:
    """Let tasks know how many batches nothing was read for."""
    if unfed or storage.exists(_PATH):
        storage.write_file(_PATH, str(unfed).encode())


def batch_number(storage: Storage, spark_batch: int) -> int:
    """Return the number of a batch that Spark calls `spark_batch`."""
    unfed = int(storage.read_bytes(_PATH)) if storage.exists(_PATH) else 0
    return spark_batch + unfed


__all__ = ["batch_number", "note_unfed"]
