from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plait.state import garbage
from plait.state.buckets import OpenBucket
from plait.state.garbage import collect, plan_path
from plait.state.gathered import write_gathered
from plait.state.manifest import ManifestLog, manifest_path
from plait.state.model import Bucket, MadeGroups, Manifest, Undelivered
from plait.state.storage import Storage
from tests.unit.state.builders import A, B, written


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path))


def bucket(storage: Storage, name: str) -> Bucket:
    return written(storage.uri, {"id": [1], A: [1], B: [1], "#tau": [1]}, indexes=((A,), (B,)), name=name)[1]


def commit(storage: Storage, batch: int, *buckets: Bucket) -> Manifest:
    manifest = Manifest(batch=batch, watermark_us=None, plan="p", buckets=buckets)
    ManifestLog(storage).commit(manifest)
    return manifest


def age(storage: Storage, relative: str, seconds: float) -> None:
    """Make a file older than it is."""
    path = Path(storage.uri, relative)
    now = path.stat().st_mtime
    os.utime(path, (now - seconds, now - seconds))


def age_all(storage: Storage, seconds: float) -> None:
    for file in storage.list("stores", recursive=True):
        age(storage, file.path, seconds)


def stored(storage: Storage) -> set[str]:
    return {Path(file.path).name.split(".")[0] for file in storage.list("stores", recursive=True)}


def test_what_no_manifest_names_is_deleted_with_its_indexes(storage: Storage) -> None:
    kept, lost = bucket(storage, "kept"), bucket(storage, "lost")
    OpenBucket(storage, lost).index((A, B))
    age_all(storage, 60)
    manifest = commit(storage, 0, kept)
    assert collect(storage, [manifest]) == 3
    assert stored(storage) == {"kept"}
    assert len(storage.list("stores", recursive=True)) == 2
    assert collect(storage, [manifest]) == 0


def test_groups_that_the_next_batch_takes_in_are_kept(storage: Storage) -> None:
    rows = pa.record_batch({"until": pa.array([5], pa.timestamp("us"))})
    named, lost = (write_gathered(storage, "groups/q", name, rows, "until") for name in ("named", "lost"))
    for file in (named, lost):
        age(storage, file.path, 60)
    made = MadeGroups(stream="q", identity="1", files=(named,))
    manifest = Manifest(batch=0, watermark_us=None, plan="p", made=(made,))
    ManifestLog(storage).commit(manifest)
    assert collect(storage, [manifest]) == 1
    assert [file.path for file in storage.list("groups", recursive=True)] == [named.path]


def test_what_an_older_manifest_names_is_kept(storage: Storage) -> None:
    old, new = bucket(storage, "old"), bucket(storage, "new")
    age_all(storage, 60)
    manifests = [commit(storage, 0, old), commit(storage, 1, new)]
    assert collect(storage, manifests) == 0
    assert collect(storage, manifests[1:]) == 2
    assert stored(storage) == {"new"}


def test_files_of_attempts_in_flight_are_kept(storage: Storage) -> None:
    manifests = [commit(storage, batch) for batch in range(3)]
    for batch, seconds in ((0, 30), (1, 20), (2, 10)):
        age(storage, manifest_path(batch), seconds)
    bucket(storage, "running")  # began after manifest 0
    age_all(storage, 25)
    bucket(storage, "crashed")  # of a process that died long before
    for file in storage.list("stores", recursive=True):
        if "crashed" in file.path:
            age(storage, file.path, 3600)
    collect(storage, manifests)
    assert stored(storage) == {"running"}
    collect(storage, manifests[1:])
    assert stored(storage) == set()


def test_temporary_files_of_dead_writers_are_deleted(storage: Storage) -> None:
    storage.write_file("stores/s/0/.tmp-dead-0-0.arrow", b"half")
    age_all(storage, 60)
    assert collect(storage, [commit(storage, 0)]) == 1


def test_results_a_sink_still_waits_for_are_kept(storage: Storage) -> None:
    for name in ("waiting.v1.arrow", "waiting.v2.arrow"):
        storage.write_file(f"{garbage.SPOOL}/3/{name}", b"")
        age(storage, f"{garbage.SPOOL}/3/{name}", 60)
    waiting = Undelivered(query="q", batch=3, paths=(f"{garbage.SPOOL}/3/waiting.v1.arrow",), rows=1, reason="down")
    manifest = replace(Manifest(batch=3, watermark_us=None, plan="p"), undelivered=(waiting,))
    ManifestLog(storage).commit(manifest)
    assert collect(storage, [manifest]) == 1
    assert storage.exists(waiting.paths[0])


def test_nothing_else_in_the_checkpoint_is_touched(storage: Storage) -> None:
    for name in ("catalog", "spark/offsets/0", "storesx/0.arrow", "manifests/note"):
        storage.write_file(name, b"")
        age(storage, name, 3600)
    assert collect(storage, [commit(storage, 0)]) == 0
    assert all(storage.exists(name) for name in ("catalog", "spark/offsets/0", "storesx/0.arrow", "manifests/note"))


def test_without_the_manifests_in_the_log_nothing_is_deleted(storage: Storage) -> None:
    bucket(storage, "lost")
    age_all(storage, 60)
    assert collect(storage, []) == 0
    assert collect(storage, [Manifest(batch=0, watermark_us=None, plan="p")]) == 0
    assert stored(storage) == {"lost"}


def test_plans_that_no_manifest_names_are_deleted(storage: Storage) -> None:
    for name in ("1-old", "2-mine", "3-next"):
        storage.write_file(plan_path(name), b"{}")
        age(storage, plan_path(name), 60)
    manifest = Manifest(batch=0, watermark_us=None, plan="2-mine")
    ManifestLog(storage).commit(manifest)
    storage.write_file(plan_path("4-written-since"), b"{}")
    assert collect(storage, [manifest]) == 2
    assert [file.path for file in storage.list("plans")] == [plan_path("2-mine"), plan_path("4-written-since")]
