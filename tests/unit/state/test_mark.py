"""A process that does not see what the driver wrote is told apart before it touches anything."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from plait.errors import CheckpointError, PlaitError
from plait.state import mark
from plait.state.mark import leave_mark, require_mark, sees_mark
from plait.state.storage import Storage


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test begin as a fresh process does."""
    monkeypatch.setattr(mark, "_seen", set())


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path / "checkpoint" / "plait"))


def test_a_process_that_shares_the_directory_sees_the_mark(storage: Storage) -> None:
    marked = leave_mark(storage, "1")
    require_mark(pickle.loads(pickle.dumps(marked)), "1")


def test_a_copy_of_the_directory_from_before_is_told_apart(storage: Storage, tmp_path: Path) -> None:
    leave_mark(storage, "1")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    marked = leave_mark(storage, "1")
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "copy").rename(tmp_path / "checkpoint")
    assert not sees_mark(marked, "1")
    with pytest.raises(CheckpointError, match=r"checkpoint \S+/checkpoint is not shared: .*network file system"):
        require_mark(marked, "1")


def test_a_run_that_was_replaced_by_another_is_told(storage: Storage) -> None:
    first = leave_mark(storage, "1")
    second = leave_mark(storage, "1")
    require_mark(second, "1")
    with pytest.raises(CheckpointError, match="another run has been started on it"):
        require_mark(first, "1")


def test_a_worker_of_another_version_is_refused(storage: Storage) -> None:
    marked = leave_mark(storage, "2.0")
    with pytest.raises(PlaitError, match=r"the driver runs Plait 2\.0, the worker on .* has Plait 1\.0: install"):
        require_mark(marked, "1.0")


def test_what_was_seen_once_is_not_looked_for_again(storage: Storage, tmp_path: Path) -> None:
    marked = leave_mark(storage, "1")
    require_mark(marked, "1")
    shutil.rmtree(tmp_path / "checkpoint")
    require_mark(marked, "1")


def test_a_storage_without_a_mark_is_taken_on_trust(storage: Storage) -> None:
    require_mark(storage, "1")
