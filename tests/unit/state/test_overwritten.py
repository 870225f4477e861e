"""Files of a bucket that change under a process that has them mapped: found out before anything comes of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plait.errors import CheckpointError
from plait.state.buckets import OpenBucket, close_others, open_bucket
from plait.state.compaction import Merge, merge_buckets
from plait.state.model import Bucket
from plait.state.naming import index_path
from plait.state.storage import Storage
from tests.unit.state.builders import A, B, written

ROWS = {A: [1, 2, 3], B: [30, 20, 10], "#tau": [5, 6, 7], "id": [1, 2, 3]}


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Storage, Bucket]:
    return written(tmp_path, ROWS, name=f"b-{tmp_path.name}")


def flip(path: Path) -> None:
    """Turn bits of the data over, in place; the time of the change is set, lest two fall into one tick."""
    content = bytearray(path.read_bytes())
    place = content.index(np.int64(20).tobytes())
    content[place] ^= 0x7F
    with path.open("r+b") as file:
        file.write(content)
    stamp = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(stamp, stamp))


def test_damage_is_found_when_a_bucket_is_opened(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    flip(tmp_path / bucket.path)
    with pytest.raises(CheckpointError, match="is damaged: expected xxh3"):
        open_bucket(storage, bucket)


def test_damage_done_after_it_was_opened_is_found_at_the_next_use(
    stored: tuple[Storage, Bucket], tmp_path: Path
) -> None:
    storage, bucket = stored
    assert open_bucket(storage, bucket).int64(B).tolist() == [30, 20, 10]
    flip(tmp_path / bucket.path)
    with pytest.raises(CheckpointError, match="is damaged: expected xxh3"):
        open_bucket(storage, bucket)


USES: dict[str, Callable[[OpenBucket], object]] = {
    "probing": lambda opened: opened.release(),
    "building an index": lambda opened: opened.index((B,)),
    "starting from it": lambda opened: opened.require_untouched(),
}


@pytest.mark.parametrize("use", USES)
def test_damage_done_while_it_is_used_ends_the_use(use: str, stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    opened = open_bucket(storage, bucket)
    flip(tmp_path / bucket.path)
    with pytest.raises(CheckpointError, match="was written to while it was being read"):
        USES[use](opened)
    assert not (tmp_path / index_path(bucket.path, (B,))).exists()


def test_a_bucket_that_was_damaged_and_mended_serves_again_with_nothing_left_of_the_damage(
    stored: tuple[Storage, Bucket], tmp_path: Path
) -> None:
    storage, bucket = stored
    open_bucket(storage, bucket)
    flip(tmp_path / bucket.path)
    _mend(tmp_path / bucket.path)
    again = open_bucket(storage, bucket)
    assert again.index((B,)).key.tolist() == [10, 20, 30]
    again.release()


def _mend(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(np.int64(20 ^ 0x7F).tobytes())] ^= 0x7F
    path.with_suffix(".backup").write_bytes(content)
    path.with_suffix(".backup").replace(path)


def test_a_damaged_index_is_built_again(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    open_bucket(storage, bucket).index((B,))
    close_others(storage, ())
    flip(tmp_path / index_path(bucket.path, (B,)))
    assert open_bucket(storage, bucket).index((B,)).key.tolist() == [10, 20, 30]


def test_an_index_damaged_while_it_is_mapped_ends_the_use(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    OpenBucket(storage, bucket).index((B,))
    opened = OpenBucket(storage, bucket)
    opened.index((B,))
    flip(tmp_path / index_path(bucket.path, (B,)))
    with pytest.raises(CheckpointError, match="was written to while it was being read"):
        opened.release()


def test_an_index_that_another_worker_writes_too_is_no_damage(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    OpenBucket(storage, bucket).index((B,))
    opened = OpenBucket(storage, bucket)
    opened.index((B,))
    path = tmp_path / index_path(bucket.path, (B,))
    path.with_suffix(".other").write_bytes(path.read_bytes())
    path.with_suffix(".other").replace(path)
    opened.release()


def test_a_bucket_that_was_deleted_stays_readable(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    opened = open_bucket(storage, bucket)
    (tmp_path / bucket.path).unlink()
    assert open_bucket(storage, bucket) is opened
    opened.release()


def test_a_damaged_bucket_is_not_merged(stored: tuple[Storage, Bucket], tmp_path: Path) -> None:
    storage, bucket = stored
    open_bucket(storage, bucket)
    flip(tmp_path / bucket.path)
    with pytest.raises(CheckpointError, match="is damaged"):
        merge_buckets(storage, Merge(buckets=(bucket,)), ((A,),), "merged")
