"""Batches that nothing is read for are Plait's and not Spark's, and tasks know how many there were."""

from __future__ import annotations

from pathlib import Path

from plait.state.batch_numbers import batch_number, note_unfed
from plait.state.model import Manifest
from plait.state.storage import Storage


def test_tasks_count_the_batches_that_spark_does_not_know(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    note_unfed(storage, 0)
    assert (batch_number(storage, 5), storage.list()) == (5, ())
    for unfed in (1, 3, 0):
        note_unfed(storage, unfed)
        assert batch_number(storage, 5) == 5 + unfed
    assert Manifest(batch=8, watermark_us=None, plan="p", unfed=3).spark_batch == 5
