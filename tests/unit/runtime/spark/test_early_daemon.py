"""What Python workers need is loaded before Spark asks for it, by a process that Spark's own stands for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import plait
from plait.runtime.spark import early_daemon
from plait.runtime.spark.early_daemon import PLACE, started_early

ROOT = str(Path(plait.__file__).parents[1])
PATIENCE_S = 30


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_daemon, "_first", threading.Lock())
    monkeypatch.setattr(early_daemon, "_HEAD_START_S", 0.0)
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture
def place(_alone: None) -> Iterator[str]:
    """Where an early process waits; it ends with the test."""
    with started_early():
        told = os.environ[PLACE]
    yield told
    assert _soon(lambda: not _waiting(told)), "the early process outlives everybody"


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A directory whose path is short enough for a socket, which pytest's own need not be."""
    with tempfile.TemporaryDirectory(prefix="plait-") as directory:
        yield Path(directory)


def _waiting(place: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def _soon(holds: object) -> bool:
    assert callable(holds)
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def spark_starts(place: str, sockets: Path) -> subprocess.Popen[bytes]:
    """Start what Spark starts, as it does."""
    environment = {
        **os.environ,
        PLACE: place,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(sockets),
    }
    command = [sys.executable, "-m", "plait.runtime.spark.daemon", "pyspark.worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def worker_of(daemon: subprocess.Popen[bytes]) -> tuple[int, socket.socket]:
    """Ask for a worker as Spark does: read where (what it told of its sockets), connect, read its process number."""
    assert daemon.stdout is not None
    length = int.from_bytes(daemon.stdout.read(4), "big")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(daemon.stdout.read(length).decode())
    return int.from_bytes(connection.recv(4), "big"), connection


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def end(daemon: subprocess.Popen[bytes]) -> None:
    """Let go of the process as Spark does."""
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    daemon.stdin.close()
    daemon.stdout.close()
    daemon.wait(PATIENCE_S)


pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")


def test_workers_are_forked_from_the_early_process_with_what_spark_told_its_own(place: str, sockets: Path) -> None:
    daemon = spark_starts(place, sockets)
    worker, connection = worker_of(daemon)
    with connection:
        assert [parent(worker)] == _waiting(place)[:1]
        assert Path(f"/proc/{parent(worker)}/cwd").resolve() == Path.cwd()
        assert daemon.poll() is None
        assert not Path(place).parent.exists()
    end(daemon)


def test_another_process_of_spark_loads_by_itself(place: str, sockets: Path) -> None:
    first = spark_starts(place, sockets)
    _, taken = worker_of(first)
    second = spark_starts(place, sockets)
    worker, connection = worker_of(second)
    with connection, taken:
        assert parent(worker) == second.pid
    end(second)
    end(first)


def test_it_ends_with_spark_also_where_the_process_that_stands_for_it_is_killed(place: str, sockets: Path) -> None:
    daemon = spark_starts(place, sockets)
    worker_of(daemon)[1].close()
    daemon.kill()
    end(daemon)  # the fixture waits for the early one


PROGRAM = """
import os, sys, time
from plait.runtime.spark import early_daemon
early_daemon._HEAD_START_S, early_daemon._PLENTY_OF_CORES = float(sys.argv[1]), 1 << 16
with early_daemon.started_early():
    print(os.environ[early_daemon.PLACE], flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.mark.parametrize("head_start_s", [0.0, 1e6])
def test_it_ends_with_the_program_if_spark_never_comes(head_start_s: float) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(head_start_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    place = program.stdout.readline().strip()
    assert _soon(lambda: len(_waiting(place)) == 1)
    program.stdin.close()
    program.wait(PATIENCE_S)
    program.stdout.close()
    assert _soon(lambda: not _waiting(place))
    assert _soon(lambda: not Path(place).parent.exists())


@pytest.mark.usefixtures("_alone")
def test_nothing_is_left_where_the_path_of_a_socket_would_be_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with started_early():
        assert PLACE not in os.environ
    assert not list(deep.iterdir())


@pytest.mark.usefixtures("_alone")
def test_only_the_first_start_of_a_program_has_one() -> None:
    assert early_daemon._first.acquire(blocking=False)
    with started_early():
        assert PLACE not in os.environ


EARLY = """
import json, os, socket, sys
from pathlib import Path
from plait.runtime.spark.early_daemon import wait_for_spark
place, head_start_s = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(place)
listener.listen(1)
if wait_for_spark(listener.detach(), place, float(head_start_s), lambda: print("loaded", flush=True)):
    told = {"arguments": sys.argv, "environment": dict(os.environ), "directory": os.getcwd(), "path": sys.path}
    print(json.dumps(told), flush=True)
"""
SPARKS = """
import sys
from plait.runtime.spark.early_daemon import handed_over
sys.path.append("/of/spark")
sys.exit(0 if handed_over() else 1)
"""


@contextmanager
def waits(place: Path, head_start_s: float) -> Iterator[subprocess.Popen[str]]:
    """Start an early process that says when it has loaded and what it was told."""
    started = subprocess.Popen(
        [sys.executable, "-c", EARLY, str(place), str(head_start_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT, "OF_THE_PROGRAM": "1"},
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def directory_of_a_place() -> Path:
    """A directory for a socket, which who waits there deletes."""
    return Path(tempfile.mkdtemp(prefix="plait-"))


def test_it_gets_arguments_environment_directory_and_path_of_the_process_it_stands_for(tmp_path: Path) -> None:
    place = directory_of_a_place() / "socket"
    with waits(place, 0.0) as early:
        assert early.stdout is not None
        assert early.stdout.readline() == "loaded\n"
        environment = {PLACE: str(place), "PYTHONPATH": ROOT, "OF_SPARK": "1"}
        given = subprocess.run(
            [sys.executable, "-c", SPARKS, "pyspark.worker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        early.wait(PATIENCE_S)
    assert given.returncode == 0, "it was not told that it is stood for"
    told = json.loads(given.stdout)
    assert told["arguments"] == ["-c", "pyspark.worker"]
    assert told["directory"] == str(tmp_path)
    assert "/of/spark" in told["path"]
    kept = {name: value for name, value in told["environment"].items() if name in {PLACE, "OF_SPARK", "OF_THE_PROGRAM"}}
    assert kept == {"OF_SPARK": "1"}


def test_it_ends_with_the_program_once_it_has_loaded() -> None:
    place = directory_of_a_place() / "socket"
    with waits(place, 0.0) as early:
        assert early.stdout is not None
        assert early.stdin is not None
        assert early.stdout.readline() == "loaded\n"
        early.stdin.close()
        assert early.wait(PATIENCE_S) == 0
    assert not place.parent.exists()


def test_it_loads_nothing_where_the_program_ends_within_its_head_start() -> None:
    place = directory_of_a_place() / "socket"
    with waits(place, 1e6) as early:
        assert early.stdout is not None
        assert early.stdin is not None
        assert _soon(place.exists)
        early.stdin.close()
        assert early.stdout.read() == ""
        assert early.wait(PATIENCE_S) == 0
