"""Notice event times that are in the wrong unit: in 1970, or in the year 57,000."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from plait.runtime.losses.counts import SourceCounts
from plait.runtime.notice import Notice

_SECOND_US = 1_000_000
_EARLIEST_US = int(datetime(1971, 1, 1, tzinfo=timezone.utc).timestamp()) * _SECOND_US
_LATEST_US = int(datetime(2101, 1, 1, tzinfo=timezone.utc).timestamp()) * _SECOND_US
_YEAR_US = 31_556_952 * _SECOND_US

_AS_READ: tuple[tuple[int, int, str, str], ...] = (
    (1, 1_000, "milliseconds that were read as seconds", "timestamp_millis"),
    (1_000, 1, "seconds that were read as milliseconds", "timestamp_seconds"),
    (1_000_000, 1, "seconds that were read as microseconds", "timestamp_seconds"),
)
"""What a number was multiplied with and divided by to become a plausible time: what it then is, how to convert it.

The factors lie so far apart that a number becomes plausible by one of them at most.
"""


def implausible_times(sources: Iterable[SourceCounts], known: frozenset[str]) -> Iterator[Notice]:
    """Yield a warning for each stream with an event time before 1971 or after 2100; those of `known` have theirs."""
    for counts in sources:
        if counts.source in known or counts.tau_min is None or counts.tau_max is None:
            continue
        if counts.tau_max >= _LATEST_US:
            yield _notice(
                counts.source,
                counts.tau_max,
                "rows of the right time then are late, because the watermark follows the largest event time",
            )
        elif counts.tau_min < _EARLIEST_US:
            yield _notice(counts.source, counts.tau_min, "")


def _notice(source: str, tau_us: int, consequence: str) -> Notice:
    text = f"stream '{source}' has an event time in the year {_year(tau_us):,}"
    unit = next((each for each in _AS_READ if _EARLIEST_US <= tau_us * each[0] // each[1] < _LATEST_US), None)
    if unit is not None:
        text += f", as have {unit[2]}: if it is made of such numbers, declare their column as BIGINT and write "
        text += f"TIMESTAMP BY {unit[3]}(...)"
    else:
        text += ": check how its event time is made from the input"
    if consequence:
        text += f"; {consequence}"
    return Notice(kind="event times", of=source, text=text)


def _year(tau_us: int) -> int:
    """Return the calendar year, about where the calendar of Python ends.

    >>> _year(0), _year(1_700_000_000_000_000_000)
    (1970, 55840)
    """
    try:
        return datetime.fromtimestamp(tau_us // _SECOND_US, timezone.utc).year
    except (ValueError, OverflowError, OSError):
        return 1970 + tau_us // _YEAR_US


def event_time_text(tau_us: int) -> str:
    """Return an event time to the second, in UTC; beyond the calendar its year.

    >>> event_time_text(1_700_000_000_000_000)
    '2023-11-14 22:13:20'
    """
    try:
        return f"{datetime.fromtimestamp(tau_us // _SECOND_US, timezone.utc):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"the year {_year(tau_us)}"
