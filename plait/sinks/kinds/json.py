"""Files of JSON lines, written by Spark."""

from __future__ import annotations

from plait.sinks.files import DEFAULTS_OF_TEXT, OPTIONS_OF_TEXT, FileSink
from plait.sinks.options import switches
from plait.sinks.storable import SparkType, json_problem


class Json(FileSink):
    """A directory of files of JSON lines."""

    name = "json"
    options = (
        *OPTIONS_OF_TEXT,
        *switches("ignoreNullFields", "pretty", "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
    )
    defaults = DEFAULTS_OF_TEXT

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse fields of one name, keys that are no texts, and types that no files hold."""
        return json_problem(type_)
