"""CSV files, written by Spark."""

from __future__ import annotations

from plait.sinks.files import DEFAULTS_OF_TEXT, OPTIONS_OF_TEXT, FileSink
from plait.sinks.options import switches, texts
from plait.sinks.storable import SparkType, csv_problem


class Csv(FileSink):
    """A directory of CSV files."""

    name = "csv"
    options = (
        *OPTIONS_OF_TEXT,
        *texts("sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping", "comment"),
        *texts("nullValue", "emptyValue", "extension", "codec"),
        *switches("header", "quoteAll", "escapeQuotes", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
    )
    defaults = DEFAULTS_OF_TEXT

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what has parts, and what does not come back from text as it was."""
        return csv_problem(type_)
