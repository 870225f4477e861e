"""Figures as text, in the units of the measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DASH = "–"
"""What stands for a figure that nobody has."""

_SCALES = {
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")),
    "s": ((1.0, "s"), (0.001, "ms")),
}
_LEAST_OF = {"s": 0.1}
"""From which value on a unit suits, by the unit of the measure, in that unit; 1 if it is not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A unit that suits some figures: `each` of the measure's unit make one of `unit`."""

    each: float
    unit: str

    def text(self, value: float | None) -> str:
        """Return a figure without its unit, a dash for None."""
        return DASH if value is None else number(value / self.each)


def scale(values: Iterable[float | None], unit: str) -> Scale:
    """Return the unit that suits the largest of some figures.

    >>> scale([3.0e9, None, 1.0e6], "bytes"), scale([0.004], "s").text(0.00391)
    (Scale(each=1073741824, unit='GiB'), '3.91')
    >>> scale([0], "bytes").unit, scale([None], "s").unit
    ('B', 's')
    """
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    known = _SCALES.get(unit, ((1.0, unit),))
    least = _LEAST_OF.get(unit, 1.0)
    plain = next((found for found in known if found[0] == 1), known[-1])
    each, name = next((found for found in known if largest >= least * found[0]), known[-1] if largest else plain)
    return Scale(each=each, unit=name)


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit, a dash for None.

    >>> figure(1234567.0, "rows/s"), figure(2.0e9, "bytes"), figure(0.0123, "s"), figure(None, "s")
    ('1,234,567 rows/s', '1.86 GiB', '12.3 ms', '–')
    """
    if value is None:
        return DASH
    suited = scale([value], unit)
    return f"{suited.text(value)} {suited.unit}"


def number(value: float) -> str:
    """Return a number with its thousands apart; three digits at least, but no more for being whole.

    >>> number(1234.5), number(12.345), number(0.01234), number(7.0), number(0.00001)
    ('1,234', '12.3', '0.0123', '7', '1e-05')
    """
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def factor(value: float | None) -> str:
    """Return a ratio as a factor, a dash for None.

    >>> factor(0.5), factor(12.34), factor(None)
    ('0.50×', '12.3×', '–')
    """
    if value is None:
        return DASH
    return f"{value:,.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"
