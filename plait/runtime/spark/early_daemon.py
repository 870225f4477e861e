"""Have the process that Spark forks its Python workers from load what they need while Spark's JVM still starts.

Spark starts that process with the first task that needs a worker, which is when everything else starts too; and loading
takes it a second. So Plait starts one of its own before the JVM, which loads and then waits at a socket. What Spark
starts later (`plait.runtime.spark.daemon`) hands its pipes, its arguments and its environment over, and from then on
only stands for the other, which ends when Spark closes the pipes. Where that cannot be done it loads by itself.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PLACE: Final = "PLAIT_EARLY_DAEMON"
"""The environment variable that tells Spark's process where the early one waits."""

_LOG = logging.getLogger(__name__)
_NOT_EARLY = "the process for Python workers could not be started early: %s"
_MODULE = "plait.runtime.spark.daemon"
_PIPES = (0, 1, 2)
_PLENTY_OF_CORES = 4
_HEAD_START_S = 0.8
"""With few cores the JVM gets them for itself first: it wants both of two cores for so long, and one of them later."""
_PATIENCE_MS = 60_000
_first = threading.Lock()
_MOST_BYTES = 1 << 20
_TAKEN = b"."
_AS_SPARK_SETS = {"PYTHONUNBUFFERED": "YES", "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
"""What an interpreter reads when it begins, as Spark sets it for its workers."""


@contextmanager
def started_early() -> Iterator[None]:
    """Start the process, and tell a JVM that is started meanwhile where it is, the first time. It ends with this
    program, if Spark has not taken it by then: a program has one JVM, which goes on after its session has stopped.
    """
    if not _first.acquire(blocking=False):
        yield
        return
    place = _started()
    if place is None:
        yield
        return
    os.environ[PLACE] = place
    try:
        yield
    finally:
        os.environ.pop(PLACE, None)


def _started() -> str | None:
    """Start the process and return where it waits; None if that cannot be. From here on it deletes that place, however
    soon and in whichever way this program ends.
    """
    try:
        place = str(Path(tempfile.mkdtemp(prefix="plait-daemon-")) / "socket")
    except OSError as error:
        _LOG.debug(_NOT_EARLY, error)
        return None
    try:
        with _listening(place) as listener:
            process = _process(listener, place)
    except OSError as error:  # no processes left, too long a path
        _LOG.debug(_NOT_EARLY, error)
        shutil.rmtree(Path(place).parent, ignore_errors=True)
        return None
    threading.Thread(target=_see_off, args=(process, place), name="plait-early-daemon", daemon=True).start()
    return place


def _see_off(process: subprocess.Popen[bytes], place: str) -> None:
    """Wait for the end of the process, so that nothing is left of it."""
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    shutil.rmtree(Path(place).parent, ignore_errors=True)


def _listening(place: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(place)
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener


def _process(listener: socket.socket, place: str) -> subprocess.Popen[bytes]:
    head_start_s = _HEAD_START_S if (os.cpu_count() or 1) < _PLENTY_OF_CORES else 0.0
    command = [sys.executable, "-m", _MODULE, "--early", str(listener.fileno()), place, str(head_start_s)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # closed when this program ends, which ends the process unless Spark has taken it
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # what is wrong, the first task will say
        env={**os.environ, **_AS_SPARK_SETS},
        pass_fds=(listener.fileno(),),
    )


def wait_for_spark(listener: int, place: str, head_start_s: float, load: Callable[[], None]) -> bool:
    """Be the early process: load, the JVM having had a head start, then wait for Spark's; tell whether this process
    stands in for it now, with its pipes, arguments and environment. False: the program that started this one has ended,
    or nobody came.
    """
    os.setpgid(0, 0)  # Ctrl-C in a terminal is for the program
    try:
        with socket.socket(fileno=listener) as waiting:
            if _program_ends(head_start_s):
                return False
            load()
            return _is_taken(waiting)
    finally:
        shutil.rmtree(Path(place).parent, ignore_errors=True)


def _program_ends(within_s: float) -> bool:
    """Tell whether the program ends within so many seconds; wait for these if not."""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def _is_taken(waiting: socket.socket) -> bool:
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(waiting, select.POLLIN)
    while ready := {descriptor for descriptor, _ in poller.poll(_PATIENCE_MS)}:
        if waiting.fileno() in ready and _take_over(waiting.accept()[0]):
            return True
        if 0 in ready:
            break
    return False


def _take_over(connection: socket.socket) -> bool:
    """Take what Spark's process sends. Its connection stays open for as long as this process lives."""
    data, pipes, _, _ = socket.recv_fds(connection, _MOST_BYTES, len(_PIPES))
    try:
        said = json.loads(data)
        connection.sendall(_TAKEN)
    except (OSError, ValueError):  # it has gone
        for pipe in pipes:
            os.close(pipe)
        connection.close()
        return False
    for pipe, standard in zip(pipes, _PIPES, strict=True):
        os.dup2(pipe, standard)
        os.close(pipe)
    os.chdir(said["directory"])
    os.environ.clear()
    os.environ.update(said["environment"])
    sys.argv[:] = said["arguments"]
    sys.path.extend(place for place in said["path"] if place not in sys.path)
    connection.detach()
    return True


def handed_over(environment: Mapping[str, str] = os.environ) -> bool:
    """Hand what Spark gave this process over to the early one, and stay until that ends; False: there is none."""
    place = environment.get(PLACE)
    if place is None:
        return False
    said = json.dumps(
        {
            "environment": {name: value for name, value in environment.items() if name != PLACE},
            "arguments": sys.argv,
            "path": sys.path,
            "directory": os.getcwd(),
        }
    ).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(place)
            socket.send_fds(connection, [said], _PIPES)
            is_taken = connection.recv(1) == _TAKEN
        except OSError as error:  # it has gone, or stands in for another already
            _LOG.debug("nothing was loaded early: %s", error)
            return False
        if is_taken:
            for standard in _PIPES:
                os.close(standard)
            with suppress(OSError):
                connection.recv(1)
    return is_taken


__all__ = ["PLACE", "handed_over", "started_early", "wait_for_spark"]
