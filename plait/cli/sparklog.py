"""Keep what the Spark processes write to standard error out of the terminal, and at hand if something fails."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plait.cli.exit_status import is_debugging


@contextmanager
def spark_log() -> Iterator[SparkLog]:
    """Provide a log for Spark; it is deleted if all goes well, and named on standard error if not."""
    descriptor, name = tempfile.mkstemp(prefix="plait-", suffix=".spark.log")
    log = SparkLog(descriptor, Path(name))
    try:
        yield log
    except Exception:
        if log.path.stat().st_size:
            print(f"plait: what Spark wrote is in {log.path}", file=sys.stderr)
            raise
        log.path.unlink()
        raise
    else:
        log.path.unlink()
    finally:
        os.close(descriptor)


class SparkLog:
    """A file that Spark's processes write to."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self.path = descriptor, path

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """While entered, processes that are started have the log for standard error; with PLAIT_DEBUG, the terminal."""
        if is_debugging():
            yield
            return
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(self._descriptor, 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
