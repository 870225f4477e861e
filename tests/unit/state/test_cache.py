"""Local copies of remote files: several processes, kills, and a bound that holds."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from plait.errors import CheckpointError
from plait.state import cache
from plait.state.storage import Storage

FILE_BYTES = 1000


class Slow(pafs.FileSystemHandler):
    """Files of `FILE_BYTES` bytes whose content says their name; reading takes its time and is counted on disk."""

    def __init__(self, log: Path, delay_s: float = 0.0) -> None:
        self._log, self._delay_s = log, delay_s

    def get_type_name(self) -> str:
        return "slow"

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [pafs.FileInfo(path, pafs.FileType.File, size=FILE_BYTES, mtime_ns=1) for path in paths]

    def open_input_stream(self, path: str) -> Any:
        import pyarrow as pa

        with self._log.open("a") as log:
            log.write(f"{path}\n")
        time.sleep(self._delay_s)
        return pa.PythonFile(pa.BufferReader(content(path)), mode="r")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _unused
    delete_file = move = copy_file = open_input_file = open_output_stream = open_append_stream = _unused

    def normalize_path(self, path: str) -> str:
        return path


def content(path: str) -> bytes:
    return path.encode().ljust(FILE_BYTES, b".")


def fetch(log: Path, path: str, delay_s: float = 0.0, limit: int | None = None) -> Path:
    return cache.fetch(pafs.PyFileSystem(Slow(log, delay_s)), path, "slow://", limit)


def fetched(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def held_bytes() -> int:
    return sum(path.stat().st_size for path in cache.directory().iterdir())


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "log"


def _fetch_all(log: Path, names: list[str], delay_s: float, limit: int) -> list[bool]:
    """Fetch and read; a copy may be evicted by another process before it is read, and then is fetched again."""
    right = []
    for name in names:
        while True:
            try:
                right.append(fetch(log, name, delay_s, limit).read_bytes() == content(name))
                break
            except FileNotFoundError:
                continue
    return right


def test_processes_that_want_the_same_file_fetch_it_once(log: Path) -> None:
    with get_context("spawn").Pool(3) as pool:
        read = pool.starmap(_fetch_all, [(log, ["f"], 0.2, 10_000)] * 3, chunksize=1)
    assert read == [[True]] * 3
    assert fetched(log) == ["f"]


def test_processes_together_stay_within_the_limit_and_read_whole_files(log: Path) -> None:
    most, is_over = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not is_over.is_set():
            sizes = []
            for path in cache.directory().glob("*"):
                try:
                    sizes.append(path.stat().st_size)
                except FileNotFoundError:
                    continue
            most = max(most, sum(sizes))

    cache.directory().mkdir()
    watcher = threading.Thread(target=watch)
    watcher.start()
    work = [(log, [f"{process}-{n}" for n in range(20)], 0.002, 6 * FILE_BYTES) for process in range(3)]
    with get_context("spawn").Pool(3) as pool:
        read = pool.starmap(_fetch_all, work, chunksize=1)
    is_over.set()
    watcher.join()
    assert all(all(right) for right in read)
    assert held_bytes() <= 6 * FILE_BYTES
    # A look at the files one after the other may count one that goes and its successor.
    assert most <= 10 * FILE_BYTES


def test_a_killed_fetch_leaves_no_half_file_and_its_room_is_free_again(log: Path) -> None:
    process = get_context("spawn").Process(target=fetch, args=(log, "f", 60.0, 10_000))
    process.start()
    deadline = time.monotonic() + 20
    while not fetched(log) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert held_bytes() == FILE_BYTES, "the room is taken before the file is there"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    fetch(log, "g", limit=10_000)
    assert held_bytes() == FILE_BYTES
    assert fetch(log, "f").read_bytes() == content("f")


def test_a_file_that_is_being_fetched_is_counted_and_not_evicted(log: Path) -> None:
    slow = threading.Thread(target=fetch, args=(log, "slow", 0.5, 2 * FILE_BYTES))
    slow.start()
    while not fetched(log):
        time.sleep(0.005)
    first = fetch(log, "a", limit=2 * FILE_BYTES)
    second = fetch(log, "b", limit=2 * FILE_BYTES)
    assert (first.exists(), second.exists()) == (False, True)
    slow.join()
    assert fetched(log) == ["slow", "a", "b"]
    assert fetch(log, "slow").read_bytes() == content("slow")
    assert fetched(log) == ["slow", "a", "b"]


def test_a_fetch_that_fails_leaves_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(cache.shutil, "copyfileobj", fail)
        with pytest.raises(OSError, match="connection lost"):
            fetch(log, "f")
    assert held_bytes() == 0
    assert fetch(log, "f").read_bytes() == content("f")


def test_the_runs_limit_holds_unless_the_machine_has_its_own(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        fetch(log, name, limit=2 * FILE_BYTES)
    assert held_bytes() == 2 * FILE_BYTES
    monkeypatch.setenv("PLAIT_CACHE_BYTES", str(3 * FILE_BYTES))
    for name in "efgh":
        fetch(log, name, limit=2 * FILE_BYTES)
    assert held_bytes() == 3 * FILE_BYTES


def test_a_file_larger_than_the_limit_is_read_all_the_same(log: Path) -> None:
    assert fetch(log, "f", limit=10).read_bytes() == content("f")
    assert fetch(log, "g", limit=10).read_bytes() == content("g")
    assert held_bytes() == FILE_BYTES


def test_a_storages_limit_travels_with_it(tmp_path: Path) -> None:
    remote = Storage(f"mock:///{tmp_path.name}", cache_bytes=2500)
    for n in range(5):
        remote.write_file(f"f{n}", bytes(FILE_BYTES))
        remote.local_copy(f"f{n}")
    assert held_bytes() == 2 * FILE_BYTES
    with pytest.raises(CheckpointError, match="no such file"):
        remote.local_copy("nothing")
