"""Columns of results as non-negative integers, in Spark SQL and in DuckDB SQL: what a checksum is made of.

Text counts by the first digits of its MD5, which both have, and NULL as a number of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks.workloads.joins import OutputOf
from plait.errors import OptionError

_DECIMAL = re.compile(r"decimal\(\d+,\s*(\d+)\)")
_SHIFT = 10_000_000_000
"""Added to decimals, which may be negative."""
_NULL = 1_234_567_891


def spark_integers(outputs: Iterable[OutputOf]) -> tuple[str, ...]:
    """Return a result's columns as integers, in Spark SQL."""
    forms = {
        "timestamp": "unix_micros({})",
        "date": "unix_date({})",
        "string": "CAST(conv(substr(md5({}), 1, 12), 16, 10) AS BIGINT)",
    }
    return tuple(_integer(output, forms) for output in outputs)


def duckdb_integers(outputs: Iterable[OutputOf]) -> tuple[str, ...]:
    """Return a result's columns as integers, in DuckDB SQL."""
    forms = {
        "timestamp": "epoch_us({})",
        "date": "date_diff('day', DATE '1970-01-01', {})",
        "string": "CAST('0x' || substr(md5({}), 1, 12) AS BIGINT)",
    }
    return tuple(_integer(output, forms) for output in outputs)


def _integer(output: OutputOf, forms: dict[str, str]) -> str:
    return f"coalesce({_known(output, forms)}, {_NULL})"


def _known(output: OutputOf, forms: dict[str, str]) -> str:
    match output.type:
        case "tinyint" | "smallint" | "int" | "bigint":
            return f"CAST({output.name} AS BIGINT)"
        case "timestamp" | "date" | "string":
            return forms[output.type].format(output.name)
    found = _DECIMAL.fullmatch(output.type)
    if found is None:
        raise OptionError(f"column '{output.name}' is {output.type}; expected integer, decimal, time, date or string")
    return f"CAST({output.name} * {10 ** int(found.group(1))} AS BIGINT) + {_SHIFT}"
