"""Figures as text, and reports as JSON, for all benchmarks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any


def ratio(value: float, base: float | None) -> float | None:
    """Return value / base, None without a base to compare with."""
    return value / base if base else None


def median_or_none(values: Iterable[float]) -> float | None:
    """Return the median, None of nothing."""
    found = list(values)
    return median(found) if found else None


def shown(value: Any, write: Callable[[Any], str]) -> str:
    """Return the value as text, a dash for None."""
    return "-" if value is None else write(value)


def count(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def size(value: int) -> str:
    """Return bytes in the unit that suits them."""
    for unit, bytes_each in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if value >= bytes_each:
            return f"{value / bytes_each:.1f} {unit}"
    return f"{value} B"


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the whole report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
