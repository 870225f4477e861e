"""Each stored file is summed up once a process, unless somebody has written to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import CheckpointError
from plait.state import trust as trusted
from plait.state.buckets import verify
from plait.state.model import Bucket
from plait.state.storage import Storage
from plait.state.trust import trust, verify_all
from tests.unit.state.test_buckets import sample


@pytest.fixture
def summed_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def counted(storage: Storage, bucket: Bucket) -> None:
        names.append(bucket.path.rpartition("/")[2])
        verify(storage, bucket)

    monkeypatch.setattr(trusted, "verify", counted)
    return names


def damage(storage: Storage, bucket: Bucket) -> None:
    path = Path(storage.uri, bucket.path)
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def test_a_second_start_sums_up_only_what_is_new(tmp_path: Path, summed_up: list[str]) -> None:
    storage, first = sample(tmp_path, name="1")
    verify_all(storage, [first])
    second = sample(tmp_path, name="2")[1]
    verify_all(storage, [first, second])
    assert [name.partition(".")[0] for name in summed_up] == ["1", "2"]


def test_what_this_process_has_committed_is_not_summed_up(tmp_path: Path, summed_up: list[str]) -> None:
    storage, bucket = sample(tmp_path)
    trust(storage, [bucket])
    verify_all(storage, [bucket])
    assert summed_up == []


def test_a_file_that_was_written_to_since_is_noticed(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    verify_all(storage, [bucket])
    damage(storage, bucket)
    trust(storage, [bucket])
    with pytest.raises(CheckpointError, match="is damaged"):
        verify_all(storage, [bucket])


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    verify_all(storage, [bucket])
    storage.delete(bucket.path)
    with pytest.raises(CheckpointError):
        verify_all(storage, [bucket])


def test_what_is_no_longer_stored_is_forgotten(tmp_path: Path, summed_up: list[str]) -> None:
    storage, bucket = sample(tmp_path)
    trust(storage, [bucket])
    trust(storage, [])
    verify_all(storage, [bucket])
    assert len(summed_up) == 1
