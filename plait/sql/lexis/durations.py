"""Durations: windows, delays, idle times."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from plait.errors import OptionError

_UNITS_US: Final = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_CALENDAR: Final = frozenset({"month", "quarter", "year", "decade", "century"})
_CLOCK: Final = ("day", "hour", "minute", "second")
_EXAMPLES: Final = "INTERVAL 30 SECONDS, '1 hour 30 minutes' or UNBOUNDED"
_LONGEST_US: Final = 2**62

_PART = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d+)?)\s*([a-z]+)")
_RANGE = re.compile(r"([+-]?)\s*([\d:. ]+?)\s*(day|hour|minute)\s+to\s+(hour|minute|second)")


def parse_duration_us(value: str | timedelta | None) -> int | None:
    """Return microseconds, None for unbounded.

    Accepts what Spark accepts after INTERVAL (``30 SECONDS``, ``'1' MINUTE``, ``'1 02:03' DAY TO MINUTE``; the word
    itself and quotes are optional), ``unbounded``, None and timedelta. A day is 24 hours. Raises OptionError for
    anything else; months and years are refused by name because their length depends on where they start.
    """
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if not isinstance(value, str):
        raise OptionError(f"{value!r} is not a duration; write for example '30 seconds', or use a timedelta")
    text = " ".join(value.replace("'", " ").replace('"', " ").lower().split())
    text = text.removeprefix("interval ")
    if text == "unbounded":
        return None
    ranged = _RANGE.fullmatch(text)
    duration = _ranged_us(value, *ranged.groups()) if ranged else _listed_us(value, text)
    if abs(duration) >= _LONGEST_US:
        raise OptionError(f"the duration '{value}' is too long; use UNBOUNDED to keep everything")
    return duration


def window_us(value: str | timedelta | None) -> int | None:
    """Return the length of a window. Raises OptionError unless it is longer than zero."""
    duration = parse_duration_us(value)
    if duration is not None and duration <= 0:
        raise OptionError(f"a window must be longer than zero, found '{value}'; give it a length, or UNBOUNDED")
    return duration


def delay_us(value: str | timedelta) -> int:
    """Return a delay. Raises OptionError if it is negative or unbounded."""
    duration = parse_duration_us(value)
    if duration is None:
        raise OptionError("a delay cannot be unbounded: nothing could ever be dropped; say how late rows may come")
    if duration < 0:
        raise OptionError(f"a delay cannot be negative, found '{value}'; zero means rows are never late in coming")
    return duration


def refresh_us(value: str | timedelta) -> int:
    """Return how often a table is read again, zero: for every batch. Raises OptionError for negative and unbounded
    ones.
    """
    duration = parse_duration_us(value)
    if duration is None or duration < 0:
        raise OptionError(
            f"a table is read again at intervals of at least zero, found '{value}'; leave it out for never"
        )
    return duration


def idle_us(value: str | timedelta) -> int:
    """Return an idle time. Raises OptionError unless it is bounded and longer than zero."""
    duration = parse_duration_us(value)
    if duration is None or duration <= 0:
        raise OptionError(f"an idle time must be longer than zero and bounded, found '{value}'")
    return duration


def _listed_us(value: str, text: str) -> int:
    total, position = Decimal(0), 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise OptionError(f"'{value}' is not a duration; write for example {_EXAMPLES}")
        sign, number, unit = match.groups()
        total += Decimal(f"{sign}{number}") * _unit_us(value, unit)
        position = match.end()
    if not text:
        raise OptionError(f"an empty duration; write for example {_EXAMPLES}")
    return _whole(value, total)


def _unit_us(value: str, unit: str) -> int:
    singular = unit if unit in _UNITS_US else unit.removesuffix("s")
    if singular in _CALENDAR or unit == "centuries":
        raise OptionError(f"'{value}': a {singular} has no fixed length; use days, for example INTERVAL 30 DAYS")
    if singular not in _UNITS_US:
        raise OptionError(f"'{value}': '{unit}' is not a unit of time; use seconds, minutes, hours, days or weeks")
    return _UNITS_US[singular]


def _ranged_us(value: str, sign: str, numbers: str, first: str, last: str) -> int:
    units = _CLOCK[_CLOCK.index(first) : _CLOCK.index(last) + 1]
    parts = re.split(r"[ :]", numbers)
    if len(parts) != len(units) or len(parts) < 2 or not all(re.fullmatch(r"\d+(\.\d+)?", part) for part in parts):
        raise OptionError(f"'{value}' does not fit {first.upper()} TO {last.upper()}; write for example {_EXAMPLES}")
    total = sum((Decimal(part) * _UNITS_US[unit] for part, unit in zip(parts, units, strict=True)), Decimal(0))
    return _whole(value, -total if sign == "-" else total)


def _whole(value: str, total: Decimal) -> int:
    if total != total.to_integral_value():
        raise OptionError(f"'{value}' is finer than a microsecond; round it")
    return int(total)
