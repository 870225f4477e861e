"""Numbers and times as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from plait.spelling import plural
from plait.state.model import END_OF_TIME_US

if TYPE_CHECKING:
    from plait.adapt.decision import Change, Outcome
    from plait.runtime.batch.events import BatchEvent, FillingCounts
    from plait.stats.latency import Latency

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def count(number: float) -> str:
    """Return a whole number with thousands separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,.0f}"


def busiest(fresh: Mapping[str, int], totals: Mapping[str, int], most: int) -> list[str]:
    """Return all queries if they are no more than `most`, else those with most new results, then with most in all.

    >>> busiest({"a": 1, "c": 5}, {"a": 9, "b": 7, "c": 5}, 2), busiest({}, {"b": 7, "a": 9}, 2)
    (['c', 'a'], ['b', 'a'])
    """
    if len(totals) <= most:
        return list(totals)
    return sorted(totals, key=lambda query: (-fresh.get(query, 0), -totals[query], query))[:most]


def size(number: int) -> str:
    """Return bytes in the largest unit that keeps at least one digit before the point.

    >>> size(1536), size(10)
    ('1.5 kB', '10 B')
    """
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def rate(rows: int, seconds: float) -> str:
    """Return rows per second; a dash when no time has passed.

    >>> rate(3000, 1.5), rate(4, 7.0)
    ('2,000 rows/s', '0.6 rows/s')
    """
    if seconds <= 0:
        return "- rows/s"
    number = rows / seconds
    return f"{number:.1f} rows/s" if 0 < number < 9.95 else f"{count(number)} rows/s"


def instant(micros: int | None) -> str:
    """Return a UTC time to the second; a dash when unknown.

    >>> instant(1_359_349_200_000_000)
    '2013-01-28 05:00:00Z'
    """
    if micros is None:
        return "-"
    try:
        return f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%SZ}"
    except OverflowError:  # an event time beyond the year 9999
        return f"{micros} us"


def duration(seconds: float) -> str:
    """Return a span of time.

    >>> duration(4.25), duration(95), duration(7300)
    ('4.2 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def watermark(micros: int | None, laggard: str | None) -> str:
    """Return the watermark and the stream that sets it; without one, the stream that is waited for.

    >>> watermark(None, "orders")
    'none yet, waiting for orders'
    """
    if micros == END_OF_TIME_US:
        return "the end of the input"
    if micros is None:
        return f"none yet, waiting for {laggard}" if laggard else "none yet"
    return f"{instant(micros)} set by {laggard}" if laggard else instant(micros)


def change_words(change: Change | None) -> str:
    """Say why the plan has changed and what that is expected to save; nothing if it has not."""
    if change is None:
        return ""
    gain = change.gain
    saved = "" if gain is None else f", saves {gain:.0%}" if gain >= 0 else f", costs {-gain:.0%} more"
    waits = f", once {', '.join(change.filling)} is filled" if change.filling else ""
    waits = ", once indexes are built" if change.indexing else waits
    return f" ({change.reason}{saved}{waits})"


def filling_words(filling: Sequence[FillingCounts]) -> str:
    """Say how far intermediate stores are filled; nothing if none comes.

    >>> from plait.runtime.batch.events import FillingCounts
    >>> filling_words([FillingCounts(store="s⋈t~12345678", taken=500, left=2_500, rows=10_000)])
    's⋈t~12345678 75% of 10,000 rows'
    """
    return ", ".join(
        f"{each.store} {filled_share(each.left, each.rows):.0%} of {plural(each.rows, 'row')}" for each in filling
    )


def filled_share(left: int, rows: int) -> float:
    """Return which share of the rows has been taken; none is called all before it is."""
    return 1.0 if not left else min(1 - left / max(rows, 1), 0.99)


def outcome_words(outcome: Outcome | None) -> str:
    """Say what the last change of plan has brought; nothing if that is not known, or was said before."""
    if outcome is None or outcome.gain is None:
        return ""
    gain = outcome.gain
    return f" (last change: measured to {f'save {gain:.0%}' if gain >= 0 else f'cost {-gain:.0%} more'})"


def epoch_words(event: BatchEvent) -> str:
    """Say which epoch it is, for how long, and what its plan saves."""
    age = duration(event.epoch_ms / 1000)
    gain = event.epoch_gain
    saves = "" if gain is None else f", saves {gain:.0%}" if gain >= 0 else f", costs {-gain:.0%} more"
    return f"{event.epoch} for {age}{saves}"


def latency(measured: Latency | None) -> str:
    """Say how long rows waited from their arrival until their results could be seen; nothing where nobody knows.

    >>> from plait.stats.latency import Latency
    >>> latency(Latency(batches=3, p50_seconds=0.25, p99_seconds=75.0))
    'p50 0.25 s, p99 1 min 15 s'
    """
    if measured is None or measured.p50_seconds is None or measured.p99_seconds is None:
        return ""
    return ", ".join(
        f"{name} {f'{seconds:.2f} s' if seconds < 10 else duration(seconds)}"
        for name, seconds in (("p50", measured.p50_seconds), ("p99", measured.p99_seconds))
    )


def latency_line(measured: Latency | None) -> str:
    """Say the same in a line of its own, and of which streams it is not known; nothing where no row arrived."""
    said, unknown = latency(measured), "" if measured is None else ", ".join(measured.unknown)
    if measured is not None and said:
        last = "batch" if measured.batches == 1 else f"{count(measured.batches)} batches"
        said += f" from arrival to publication, over the last {last}"
    parts = [said] if said else []
    parts += [f"when rows of {unknown} arrived is not known"] if unknown else []
    return f"latency: {'; '.join(parts)}" if parts else ""
