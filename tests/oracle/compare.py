"""Compare results as multisets and say readably how they differ."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

_SHOWN = 8


def multiset(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Count rows, with values that SQL takes as equal made identical."""
    return Counter(tuple(normal(value) for value in row) for row in rows)


def normal(value: Any) -> Any:
    """Return a hashable representative: all NaN alike, -0.0 as 0.0, decimals by value, instants without zone, lengths
    of time in microseconds.

    Numbers stay exact: an int equals the decimal and the double of the same value, and no other.
    """
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return value.normalize() if value else Decimal(0)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if isinstance(value, dict):
        return tuple((name, normal(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(normal, value))
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value


def table_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows by position, so that repeated column names do no harm."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def difference(actual: Iterable[tuple[Any, ...]], expected: Iterable[tuple[Any, ...]]) -> str | None:
    """Return how `actual` differs from `expected`; None if they are equal as multisets."""
    found, wanted = multiset(actual), multiset(expected)
    if found == wanted:
        return None
    missing, extra = wanted - found, found - wanted
    lines = [
        f"expected {wanted.total()} rows, found {found.total()}: {missing.total()} missing, {extra.total()} too many"
    ]
    lines += _listed("missing", missing) + _listed("too many", extra)
    if missing and extra:
        lines.append(_closest(next(iter(_ordered(missing))), _ordered(extra)))
    return "\n".join(lines)


def _ordered(rows: Counter[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def _listed(label: str, rows: Counter[tuple[Any, ...]]) -> list[str]:
    shown = [f"  {label} x{rows[row]}: {row}" for row in _ordered(rows)[:_SHOWN]]
    return shown + ([f"  ... {len(rows) - _SHOWN} more distinct rows {label}"] if len(rows) > _SHOWN else [])


def _closest(row: tuple[Any, ...], others: list[tuple[Any, ...]]) -> str:
    """Name the first column in which the most similar row differs."""

    def agreement(other: tuple[Any, ...]) -> int:
        return sum(a == b for a, b in zip(row, other, strict=False))

    other = max(others, key=agreement)
    for number, (a, b) in enumerate(zip(row, other, strict=False)):
        if a != b:
            return f"  the most similar rows differ first in column {number}: expected {a!r}, found {b!r}"
    return f"  the rows differ in length: expected {len(row)} columns, found {len(other)}"
