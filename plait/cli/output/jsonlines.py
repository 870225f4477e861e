"""One JSON object a line on standard output, for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from plait.cli.output.interface import RunInfo
from plait.cli.output.lines import LineWriter

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent, Summary


class JsonOutput:
    """Write each event as it happens: ``starting``, ``plan``, ``plan_outcome``, ``batch``, ``stopping``, ``finished``.

    What is printed meanwhile by others (a console sink, a foreach function) goes to standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._lines = LineWriter(stream)
        self._elsewhere = redirect_stdout(sys.stderr)

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody reads any more."""
        return self._lines.is_abandoned

    def __enter__(self) -> JsonOutput:
        self._elsewhere.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._elsewhere.__exit__(kind, error, trace)

    def starting(self, info: RunInfo) -> None:
        """Write what is going to run."""
        self._write({"event": "starting", **asdict(info)})

    def noticed(self, text: str) -> None:
        """Write what the user should know about this start."""
        self._write({"event": "notice", "text": text})

    def batch(self, event: BatchEvent) -> None:
        """Write one batch, after what it began with."""
        for told in event.plan_events():
            self._write(told)
        self._write(event.as_json())

    def stopping(self) -> None:
        """Write that the run was asked to end."""
        self._write({"event": "stopping"})

    def finished(self, summary: Summary) -> None:
        """Write the totals."""
        self._write(summary.as_json())

    def _write(self, event: Mapping[str, Any]) -> None:
        self._lines.write(json.dumps(event))
