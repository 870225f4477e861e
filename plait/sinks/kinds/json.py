"""Files of JSON lines, written by Spark."""

from __future__ import annotations

from plait.sinks.files import FileSink


class Json(FileSink):
    """A directory of files of JSON lines."""

    name = "json"
