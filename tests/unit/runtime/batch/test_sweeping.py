"""Old manifests and garbage go beside the batches."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plait.runtime.batch import sweeping
from plait.runtime.batch.sweeping import Sweeper
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest
from plait.state.storage import Storage


@pytest.fixture
def log(tmp_path: Path) -> ManifestLog:
    return ManifestLog(Storage.open(str(tmp_path)))


def commit(log: ManifestLog, batch: int) -> None:
    log.commit(Manifest(batch=batch, watermark_us=None, plan="p", buckets=()))


def test_the_next_batch_commits_while_a_checkpoint_is_swept(
    log: ManifestLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, going_on = threading.Event(), threading.Event()

    def reach(point: str) -> None:
        begun.set()
        assert going_on.wait(10)

    monkeypatch.setattr(sweeping, "reach", reach)
    for batch in range(12):
        commit(log, batch)
    sweeper = Sweeper(Storage.open(str(tmp_path)))
    sweeper.start()
    assert begun.wait(10)
    commit(log, 12)
    sweeper.start()  # under way already, so nothing more happens
    going_on.set()
    sweeper.close()
    assert log.batches() == tuple(range(2, 13))
    latest = log.latest()
    assert latest is not None
    assert latest.batch == 12


def test_files_that_cannot_be_read_or_deleted_stop_no_batch(
    log: ManifestLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for batch in range(3):
        commit(log, batch)
    (tmp_path / "manifests" / "1.json").write_text("not a manifest")
    sweeper = Sweeper(Storage.open(str(tmp_path)))
    sweeper.start()
    sweeper.close()
    assert "tried again later" in caplog.text
    assert log.batches() == (0, 1, 2)
