"""What comes to Pathway for a column: integers, text, floating point or booleans.

A timestamp comes as its microseconds since 1970, a date as its days and a decimal as its digits: comparing integers is
the least work, and Pathway has no decimals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.systems.task import UnableError

Kind: TypeAlias = Literal["number", "double", "text", "boolean", "time", "date", "interval"]

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "number"),
    **dict.fromkeys(("float", "double"), "double"),
    "string": "text",
    "boolean": "boolean",
    "timestamp": "time",
    "date": "date",
}
_PYTHON: Mapping[Kind, type] = {"double": float, "text": str, "boolean": bool}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 18
"""All that Pathway's integers of 64 bits hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What a value of Pathway's stands for. `scale`: digits after the point of a number."""

    kind: Kind
    scale: int = 0

    @property
    def python(self) -> type:
        """What it is in Python, and by that in Pathway."""
        return _PYTHON.get(self.kind, int)


def typed(kind: str) -> Typed:
    """Return what stands for a column of a Spark type. Raises UnableError."""
    if kind in _KINDS:
        return Typed(kind=_KINDS[kind])
    if (found := _DECIMAL.fullmatch(kind)) and int(found.group(1)) <= _MOST_DIGITS:
        return Typed(kind="number", scale=int(found.group(2)))
    raise UnableError(f"Pathway has no type for a column of type {kind}")
