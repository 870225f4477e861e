from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import CheckpointError, OptionError
from plait.state import cache, storage
from plait.state.storage import TEMPORARY, Storage, checksum_of


@pytest.fixture(params=["directory", "file uri", "arrow file system", "fsspec"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    match request.param:
        case "directory":
            yield Storage.open(str(tmp_path / "check point"))
        case "file uri":
            yield Storage.open((tmp_path / "check point").as_uri())
        case "arrow file system":
            yield Storage.open(f"mock:///{tmp_path.name}")
        case _:
            pytest.importorskip("fsspec")
            yield Storage.open(f"memory://{tmp_path.name}/plait")


def names(place: Storage, folder: str = "") -> list[str]:
    return [file.path for file in place.list(folder, recursive=True)]


def test_what_is_written_is_read(place: Storage) -> None:
    written = place.write_file("a/b/c", b"hello")
    assert (written.bytes, written.checksum) == (5, checksum_of(b"hello"))
    assert place.read_bytes("a/b/c") == b"hello"
    with place.open_mapped("a/b/c") as file:
        assert file.read() == b"hello"
    assert names(place) == ["a/b/c"]
    assert names(place, "a/b") == ["a/b/c"]
    assert place.list("a/b")[0].bytes == 5


def test_a_writer_gets_a_file_and_its_content_is_checksummed(place: Storage) -> None:
    batch = pa.record_batch({"x": list(range(1000)), "s": ["text"] * 1000})

    def write(sink: object) -> None:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    written = place.write_file("f", write)
    content = place.read_bytes("f")
    assert (len(content), checksum_of(content)) == (written.bytes, written.checksum)
    assert pa.ipc.open_file(content).get_batch(0) == batch


def test_writing_again_replaces(place: Storage) -> None:
    place.write_file("f", b"first")
    place.write_file("f", b"second", durable=True)
    assert place.read_bytes("f") == b"second"


def test_a_writer_that_fails_leaves_nothing(place: Storage) -> None:
    def fail(sink: object) -> None:
        raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        place.write_file("d/f", fail)
    assert names(place) == []


def test_creating_never_replaces(place: Storage) -> None:
    assert place.create_file("d/f", b"first")
    assert not place.create_file("d/f", b"second")
    assert place.read_bytes("d/f") == b"first"
    assert names(place) == ["d/f"]


def test_deleting_twice_is_no_error(place: Storage) -> None:
    place.write_file("f", b"")
    place.delete("f")
    place.delete("f")
    assert not place.exists("f")


def test_a_folder_that_is_not_there_is_empty(place: Storage) -> None:
    assert place.list("nowhere") == ()


def test_a_missing_file_is_named_with_what_to_do(place: Storage) -> None:
    for read in (place.read_bytes, place.open_mapped):
        with pytest.raises(CheckpointError, match=r"stores/x\.arrow: there is no such file.*backup"):
            read("stores/x.arrow")


def test_storage_travels_to_other_processes(place: Storage) -> None:
    place.write_file("f", b"hello")
    assert pickle.loads(pickle.dumps(place)).read_bytes("f") == b"hello"


def test_a_relative_path_means_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Storage.open("ckpt")
    monkeypatch.chdir("/")
    place.write_file("f", b"")
    assert (tmp_path / "ckpt" / "f").exists()


def test_an_unknown_kind_of_address_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"Cannot open the checkpoint nosuch://x.*local directory"):
        Storage.open("nosuch://x/y")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "no space left.*Free some space"),
        (errno.EDQUOT, "no space left"),
        (errno.EACCES, "permission denied.*read and write"),
        (errno.EROFS, "read-only"),
        (errno.EMFILE, "ulimit"),
        (errno.EIO, "reachable"),
    ],
)
def test_what_the_system_refuses_is_explained_and_leaves_nothing(
    code: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Storage.open(str(tmp_path))

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(CheckpointError, match=rf"Cannot write {tmp_path}/d/f: .*{remedy}"):
        place.write_file("d/f", b"x")
    assert names(place) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "open", lambda *_, **__: open("/dev/full", "wb", buffering=0), raising=False)  # noqa: SIM115
    with pytest.raises(CheckpointError, match="no space left"):
        Storage.open(str(tmp_path)).write_file("f", b"x" * 100)


def test_a_file_where_a_directory_should_be_is_explained(tmp_path: Path) -> None:
    (tmp_path / "stores").touch()
    with pytest.raises(CheckpointError, match="a file is where a directory is expected"):
        Storage.open(str(tmp_path)).write_file("stores/x", b"")


def test_a_file_created_between_look_and_rename_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Storage.open(str(tmp_path))
    place.write_file("f", b"first")
    monkeypatch.setattr(Storage, "exists", lambda *_: False)
    assert not place.create_file("f", b"second")
    assert place.read_bytes("f") == b"first"
    assert names(place) == ["f"]


def _create(uri: str, content: bytes) -> bool:
    return Storage.open(uri).create_file("race", content)


def test_only_one_of_several_processes_creates_a_file(tmp_path: Path) -> None:
    contents = [bytes([n]) * 10_000 for n in range(8)]
    with get_context("spawn").Pool(2) as pool:
        won = pool.starmap(_create, [(str(tmp_path), content) for content in contents], chunksize=1)
    assert won.count(True) == 1
    assert (tmp_path / "race").read_bytes() == contents[won.index(True)]
    assert [path.name for path in tmp_path.iterdir()] == ["race"]


def test_without_hard_links_creating_still_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    place = Storage.open(str(tmp_path))
    assert place.create_file("f", b"first")
    assert not place.create_file("f", b"second")
    assert names(place) == ["f"]


def test_temporary_names_are_hidden_and_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(Path(a).name), original(a, b)))
    Storage.open(str(tmp_path)).write_file("x" * 250, b"")
    assert seen[0].startswith(TEMPORARY)
    assert len(seen[0]) <= 255


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    return Storage.open(f"mock:///{tmp_path.name}-remote")


def cached_bytes() -> int:
    return sum(path.stat().st_size for path in cache.directory().iterdir())


def test_remote_copies_stay_within_the_limit_and_the_oldest_goes_first(
    remote: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE_BYTES", "3000")
    for n in range(5):
        remote.write_file(f"f{n}", bytes([n]) * 1000)
    copies = {}
    for n in (0, 1, 2):
        copies[n] = remote.local_copy(f"f{n}")
        os.utime(copies[n], (n, n))
    remote.local_copy("f0")  # used again: now 1 is the oldest
    copies[3] = remote.local_copy("f3")
    assert {n for n, path in copies.items() if path.exists()} == {0, 2, 3}
    assert cached_bytes() <= 3000


def test_a_copy_that_was_evicted_while_mapped_stays_readable(remote: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE_BYTES", "1000")
    remote.write_file("f", b"x" * 1000)
    remote.write_file("g", b"y" * 1000)
    with remote.open_mapped("f") as file:
        remote.local_copy("g")
        assert file.read() == b"x" * 1000


def test_a_file_begun_anew_is_not_mistaken_for_its_copy(remote: Storage) -> None:
    remote.write_file("f", b"old")
    remote.local_copy("f")
    remote.write_file("f", b"begun anew")
    with remote.open_mapped("f") as file:
        assert file.read() == b"begun anew"


def test_a_second_look_does_not_fetch_again(remote: Storage) -> None:
    remote.write_file("f", b"x")
    inode = remote.local_copy("f").stat().st_ino
    assert remote.local_copy("f").stat().st_ino == inode


def test_a_limit_that_is_no_number_is_refused(remote: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE_BYTES", "10 GB")
    remote.write_file("f", b"x")
    with pytest.raises(OptionError, match="PLAIT_CACHE_BYTES is '10 GB'; expected a number of bytes"):
        remote.local_copy("f")


def test_empty_directories_go_and_full_ones_stay(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write_file("results/1/kept.arrow", b"x")
    storage.write_file("results/2/gone.arrow", b"x")
    storage.delete("results/2/gone.arrow")
    storage.delete_empty("results")
    storage.delete_empty("nothing here")
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["1"]
