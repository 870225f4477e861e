"""Ctrl-C, and what else asks a run to end: once for a clean end, twice for an end at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal:
    """While entered, the first signal sets `requested`; the second raises KeyboardInterrupt in the main thread.

    While a Spark session is opened it only notes signals (`obey` then), for `patience_seconds`: a JVM that is left
    before it has told where it listens goes on for ever. Enter it again afterwards: Spark installs a handler of its
    own, which cancels the jobs of the batch.
    """

    def __init__(self, on_request: Callable[[], None], *, patience_seconds: float = 0.0) -> None:
        self.requested = threading.Event()
        self._on_request, self._patience_seconds, self._since = on_request, patience_seconds, 0.0
        self._before: list[tuple[signal.Signals, object]] = []

    def __enter__(self) -> StopOnSignal:
        self._before = [(number, signal.signal(number, self._handle)) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned

    def obey(self) -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if self.requested.is_set():
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.requested.is_set():
            self._since = time.monotonic()
            self.requested.set()
            self._on_request()
        elif time.monotonic() - self._since >= self._patience_seconds:
            raise KeyboardInterrupt
