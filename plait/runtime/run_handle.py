"""What a program has in hand of an engine that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plait.runtime.batch.events import Summary
from plait.runtime.batch.stream import Run


@dataclass(slots=True, repr=False)
class RunHandle:
    """A running engine."""

    _run: Run
    _finish: Callable[[Run], Summary]
    _status: Callable[[], dict[str, Any]]

    def stop(self) -> Summary:
        """Finish the batch under way and end; return the summary. Raises what ended the run, if it failed."""
        self._run.stop()
        return self._finish(self._run)

    def status(self) -> dict[str, Any]:
        """Return the engine's status."""
        return self._status()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run ends, at most `timeout` seconds; tell whether it did. Raises what ended it, if it
        failed.
        """
        ended = self._run.wait(timeout)
        if ended:
            self._run.raise_failure()
        return ended


__all__ = ["RunHandle"]
