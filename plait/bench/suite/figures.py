"""Figures as text, in the units of the measures."""

from __future__ import annotations

DASH = "–"
"""What stands for a figure that nobody has."""


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit, a dash for None.

    >>> figure(1234567.0, "rows/s"), figure(2.0e9, "bytes"), figure(0.0123, "s"), figure(None, "s")
    ('1,234,567 rows/s', '1.9 GiB', '12.3 ms', '–')
    """
    if value is None:
        return DASH
    if unit == "bytes":
        return _bytes(value)
    if unit == "s":
        return _seconds(value)
    return f"{number(value)} {unit}"


def number(value: float) -> str:
    """Return a number with its thousands apart, of small ones three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def ratio(value: float | None) -> str:
    """Return a factor, a dash for None."""
    if value is None:
        return DASH
    return f"{value:,.0f}×" if value >= 100 else f"{value:.3g}×" if value >= 10 else f"{value:.2f}×"


def _bytes(value: float) -> str:
    for unit, each in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(value) >= each:
            return f"{value / each:.1f} {unit}"
    return f"{value:.0f} B"


def _seconds(value: float) -> str:
    if 0 < abs(value) < 0.1:
        return f"{1000 * value:.3g} ms"
    return f"{value:,.0f} s" if abs(value) >= 1000 else f"{value:.1f} s" if abs(value) >= 100 else f"{value:.2f} s"
