"""Files of JSON lines, written by Spark."""

from __future__ import annotations

from plait.option_values import LINE_SEPARATOR, SWITCH
from plait.sinks.files import DEFAULTS_OF_TEXT, OPTIONS_OF_TEXT, FileSink
from plait.sinks.options import accepting
from plait.sinks.storable import SparkType, json_problem


class Json(FileSink):
    """A directory of files of JSON lines."""

    name = "json"
    options = (
        *OPTIONS_OF_TEXT,
        *accepting(LINE_SEPARATOR, "lineSep"),
        *accepting(SWITCH, "ignoreNullFields", "pretty", "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
    )
    defaults = DEFAULTS_OF_TEXT

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse fields of one name, keys that are no texts, and types that no files hold."""
        return json_problem(type_)
