"""CSV files, written by Spark."""

from __future__ import annotations

from plait.option_values import ANY, CHARACTER, EXTENSION, SEPARATOR, SHORT_LINE_SEPARATOR, SWITCH
from plait.sinks.files import CODEC, DEFAULTS_OF_TEXT, OPTIONS_OF_TEXT, FileSink
from plait.sinks.options import accepting
from plait.sinks.storable import SparkType, csv_problem


class Csv(FileSink):
    """A directory of CSV files."""

    name = "csv"
    options = (
        *OPTIONS_OF_TEXT,
        *accepting(SEPARATOR, "sep", "delimiter"),
        *accepting(CHARACTER, "quote", "escape", "charToEscapeQuoteEscaping", "comment"),
        *accepting(SHORT_LINE_SEPARATOR, "lineSep"),
        *accepting(ANY, "nullValue", "emptyValue"),
        *accepting(EXTENSION, "extension"),
        *accepting(CODEC, "codec"),
        *accepting(SWITCH, "header", "quoteAll", "escapeQuotes", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
    )
    defaults = DEFAULTS_OF_TEXT

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what has parts, and what does not come back from text as it was."""
        return csv_problem(type_)
