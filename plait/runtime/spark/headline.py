"""What of Spark's long messages tells a user something."""

from __future__ import annotations

import re
from typing import Final

SPARK_CLASS: Final = re.compile(r"\[([A-Z0-9_.]+)\] (.+)")
_STREAM_FAILED = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_CALLED = re.compile(r"An error occurred while calling [\w.]+\.\n: [\w.$]+:")
"""What stands before an error of the JVM that is not one of Spark's own."""

_SQL_STATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_OF_DATA = re.compile(r"SQLSTATE: (22|38|39|P0)\w{3}\b")


def headline(text: str) -> str:
    """Return Spark's own message, without plans and stack traces. The innermost error class comes last."""
    text = _SQL_STATE.sub("", _STREAM_FAILED.sub("", text))
    headlines = [match for match in SPARK_CLASS.finditer(text) if not match.group(1).startswith("STREAM_FAILED")]
    if headlines:
        return f"[{headlines[-1].group(1)}] {headlines[-1].group(2).rstrip('. ')}."
    called = _CALLED.search(text)
    return text[called.end() if called else 0 :].strip().split("\n", 1)[0].rstrip(". ") + "."


def is_of_data(text: str) -> bool:
    """Tell whether Spark says that some value cannot be computed, as opposed to a machine or a file that fails."""
    return _OF_DATA.search(text) is not None


__all__ = ["headline", "is_of_data"]
