"""Which disk is full."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from plait.runtime.batch.full_places import full_places
from plait.runtime.batch.run_errors import explained


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory below which nothing is left."""
    directory, usage = tmp_path / "full", shutil.disk_usage
    directory.mkdir()

    def disk_usage(path: Path) -> SimpleNamespace:
        free = 0 if directory in (path, *path.parents) else 1 << 30
        return SimpleNamespace(free=free if usage(path) else 0)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    return directory


def test_only_full_places_are_named_also_those_that_are_not_there_yet(full: Path, tmp_path: Path) -> None:
    paths = [str(full / "not" / "yet"), f"file://{full}", str(tmp_path / "roomy"), "s3://bucket/out"]
    assert full_places(paths) == (str(full / "not" / "yet"), str(full))


def test_places_for_temporary_files_are_looked_at_too(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(full))
    assert full_places([]) == (str(full),)


def test_a_run_that_a_full_disk_ends_says_which(full: Path, tmp_path: Path) -> None:
    error = RuntimeError("org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device")
    found = explained(error, (), str(tmp_path / "checkpoint"), (str(full / "letters"), str(tmp_path / "out")))
    assert str(found) == (
        f"no space left on the device of {full}/letters. Free some space, then start again: nothing committed is lost."
    )
