"""One run at a time in a directory, as far as this machine can tell: a second one is refused at once.

What holds anywhere is that the second to commit a batch is refused; until then it stumbles over files that the first
has taken away, and cannot say why. The lock is the kernel's, on the directory: it goes with the process, however that
ends. `plait run` locks the checkpoint before it starts Spark, and every engine while it runs what it keeps there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

from plait.errors import CheckpointError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def sole_run(checkpoint: str, within: str = "") -> Iterator[None]:
    """While entered, others are refused for this checkpoint, or for this directory in it. Raises CheckpointError if
    another run is there now.

    Elsewhere than on local disks, or where nothing can be locked, nobody is.
    """
    path = _local_path(checkpoint, within)
    made = [] if path is None else _missing(path)
    directory = None if path is None else _opened(path)
    if directory is None:
        yield
        return
    try:
        _lock(directory, checkpoint)
        try:
            yield
        finally:
            _remove_empty(made)
    finally:
        os.close(directory)


def _missing(path: str) -> list[str]:
    """Return the directories that have to be made for this one, itself first."""
    missing = []
    while path and not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _remove_empty(directories: list[str]) -> None:
    """Remove what was made and holds nothing, because nothing came of the run."""
    with suppress(OSError):
        for directory in directories:
            os.rmdir(directory)


def _local_path(checkpoint: str, within: str) -> str | None:
    parts = urlsplit(checkpoint)
    if fcntl is None or (len(parts.scheme) > 1 and parts.scheme != "file"):
        return None
    return os.path.join(unquote(parts.path) if parts.scheme == "file" else checkpoint, within)


def _opened(path: str) -> int | None:
    try:
        os.makedirs(path, exist_ok=True)
        return os.open(path, os.O_RDONLY)
    except OSError:  # whoever writes to it says what is wrong
        return None


def _lock(directory: int, checkpoint: str) -> None:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CheckpointError(
            f"another run works on checkpoint '{checkpoint}'. Stop it first, or give this one a checkpoint and sinks "
            "of its own (plait run --checkpoint DIR; in Python, Engine(spark, checkpoint=DIR))."
        ) from error
    except OSError:  # a file system without locks
        return


__all__ = ["sole_run"]
