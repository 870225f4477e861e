"""Columns of results as non-negative integers, in Spark SQL and in DuckDB SQL: what a checksum is made of.

Text counts by its length: a result's identity comes from the numbers of its members, and hashing text alike in two
systems would cost more than the join.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from plait.errors import OptionError
from plait.workloads.joins import OutputOf

_DECIMAL = re.compile(r"decimal\(\d+,\s*(\d+)\)")
_SHIFT = 10_000_000_000
"""Added to decimals, which may be negative."""


def spark_integers(outputs: Iterable[OutputOf]) -> tuple[str, ...]:
    """Return a result's columns as integers, in Spark SQL."""
    times = {"timestamp": "unix_micros({})", "date": "unix_date({})"}
    return tuple(_integer(output, times) for output in outputs)


def duckdb_integers(outputs: Iterable[OutputOf]) -> tuple[str, ...]:
    """Return a result's columns as integers, in DuckDB SQL."""
    times = {"timestamp": "epoch_us({})", "date": "date_diff('day', DATE '1970-01-01', {})"}
    return tuple(_integer(output, times) for output in outputs)


def _integer(output: OutputOf, times: dict[str, str]) -> str:
    match output.type:
        case "tinyint" | "smallint" | "int" | "bigint":
            return output.name
        case "timestamp" | "date":
            return times[output.type].format(output.name)
        case "string":
            return f"length({output.name})"
    found = _DECIMAL.fullmatch(output.type)
    if found is None:
        raise OptionError(f"column '{output.name}' is {output.type}; expected integer, decimal, time, date or string")
    return f"CAST({output.name} * {10 ** int(found.group(1))} AS BIGINT) + {_SHIFT}"
