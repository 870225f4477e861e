"""CSV files, written by Spark."""

from __future__ import annotations

from plait.sinks.files import FileSink


class Csv(FileSink):
    """A directory of CSV files."""

    name = "csv"
