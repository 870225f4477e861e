"""Turn Ctrl-C (and SIGTERM) into a request to stop after the batch at hand."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal:
    """While entered, the first signal sets `requested`; the second raises KeyboardInterrupt in the main thread.

    Enter it after the Spark session is open: Spark installs a handler of its own that cancels the jobs of the batch.
    """

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.requested = threading.Event()
        self._on_request = on_request
        self._before: list[tuple[signal.Signals, object]] = []

    def __enter__(self) -> StopOnSignal:
        self._before = [(number, signal.signal(number, self._handle)) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            raise KeyboardInterrupt
        self.requested.set()
        self._on_request()
