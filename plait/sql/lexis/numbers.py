"""Spark's numeric types: how many digits they have, and which type a sum or product is of (ANSI mode)."""

from __future__ import annotations

import re
from typing import Final

from plait.sql.lexis.operators import Arithmetic

INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
TIMES: Final = ("timestamp", "timestamp_ntz")
FLOATING: Final = ("float", "double")
MAX_DIGITS: Final = 38
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def decimal_size(type_: str) -> tuple[int, int] | None:
    """Return (precision, scale) of a decimal, and of the decimal that holds an integer type."""
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_decimal(type_: str) -> bool:
    """Tell whether a type is a decimal."""
    return _DECIMAL.fullmatch(type_) is not None


def is_fractional(type_: str) -> bool:
    """Tell whether a type has fractions."""
    return type_ in FLOATING or is_decimal(type_)


def is_numeric(type_: str) -> bool:
    """Tell whether a type is a number."""
    return type_ in INTEGERS or is_fractional(type_)


def exact_type(operator: Arithmetic, left: str, right: str) -> str | None:
    """Return the decimal that holds every sum or product of two decimals or integers; None if there is none."""
    sizes = (decimal_size(left), decimal_size(right))
    if sizes[0] is None or sizes[1] is None:
        return None
    (first, first_scale), (second, second_scale) = sizes[0], sizes[1]
    if operator == "*":
        precision, scale = first + second + 1, first_scale + second_scale
    else:
        scale = max(first_scale, second_scale)
        precision = max(first - first_scale, second - second_scale) + scale + 1
    return f"decimal({precision},{scale})" if precision <= MAX_DIGITS else None
