"""Keep what the Spark processes write to standard error out of the terminal, and at hand if something fails."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import Any

from plait.cli.exit_status import is_debugging
from plait.errors import PlaitError


@contextmanager
def spark_log() -> Iterator[SparkLog]:
    """Provide a log for Spark; it is deleted, or named on standard error if something fails that it may say more of."""
    descriptor, name = tempfile.mkstemp(prefix="plait-", suffix=".spark.log")
    log = SparkLog(descriptor, Path(name))
    try:
        with log.hearing_servers():
            yield log
    except Exception as error:
        if log.path.stat().st_size and is_of_spark(error):
            print(f"plait: what Spark wrote is in {log.path}", file=sys.stderr)
        else:
            log.path.unlink()
        raise
    else:
        log.path.unlink()
    finally:
        os.close(descriptor)


def is_of_spark(error: BaseException | None) -> bool:
    """Tell whether Spark may have written more of an error: anything but what Plait itself refuses."""
    seen: set[int] = set()
    while isinstance(error, PlaitError) and id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__
    return error is not None and id(error) not in seen


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

    @contextmanager
    def hearing_servers(self) -> Iterator[None]:
        """While entered, the log has what PySpark's servers in this process fail with, too: they write a stack trace to
        standard error for each connection that breaks off, as all do when the JVM has ended.
        """
        if is_debugging():
            yield
            return
        shown, descriptor = BaseServer.handle_error, self._descriptor

        def handle(self: BaseServer, request: Any, client_address: Any) -> None:
            if type(self).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                shown(self, request, client_address)
                return
            os.write(descriptor, traceback.format_exc().encode())

        BaseServer.handle_error = handle  # type: ignore[method-assign]
        try:
            yield
        finally:
            BaseServer.handle_error = shown  # type: ignore[method-assign]
