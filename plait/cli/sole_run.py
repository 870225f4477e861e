"""One run at a time on a checkpoint, as far as this machine can tell: the second is refused before it starts Spark.

What holds anywhere is that the second to commit a batch is refused; until then it stumbles over files that the first
has taken away, and cannot say why. The lock is the kernel's, on the directory: it goes with the process, however that
ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from plait.errors import CheckpointError


@contextmanager
def sole_run(checkpoint: str) -> Iterator[None]:
    """While entered, others are refused for this checkpoint. Raises CheckpointError if another run is in it now.

    Elsewhere than on local disks, or where nothing can be locked, nobody is.
    """
    directory = _opened(checkpoint)
    if directory is None:
        yield
        return
    try:
        _lock(directory, checkpoint)
        yield
    finally:
        os.close(directory)


def _opened(checkpoint: str) -> int | None:
    parts = urlsplit(checkpoint)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        return None
    path = unquote(parts.path) if parts.scheme == "file" else checkpoint
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
            f"another run works on checkpoint '{checkpoint}'. Stop it first, or give this one a checkpoint "
            "(--checkpoint) and sinks of its own."
        ) from error
    except OSError:  # a file system without locks
        return


__all__ = ["sole_run"]
