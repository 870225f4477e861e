"""What a sample of a source shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows that lie next to each other in a source: how many, and their smallest and largest event time."""

    rows: int
    tau_min_us: int
    tau_max_us: int


def rate_of(pieces: Iterable[Piece]) -> float | None:
    """Return rows per second over the event time that the pieces cover together; None if they cover none.

    Pieces may lie side by side (files that were written at once) or far apart: gaps between them, of which nothing is
    known, do not count as time without rows.

    >>> hour = 3_600_000_000
    >>> rate_of([Piece(rows=3_601, tau_min_us=0, tau_max_us=hour), Piece(rows=3_600, tau_min_us=0, tau_max_us=hour)])
    2.0
    >>> rate_of([Piece(rows=3_601, tau_min_us=day * 24 * hour, tau_max_us=day * 24 * hour + hour) for day in range(9)])
    1.0
    """
    ordered = sorted((piece.tau_min_us, piece.tau_max_us, piece.rows) for piece in pieces)
    rows = covered_us = stretches = 0
    end: int | None = None
    for first, last, count in ordered:
        rows += count
        if end is None or first > end:
            stretches, covered_us, end = stretches + 1, covered_us + last - first, last
        else:
            covered_us, end = covered_us + max(last - end, 0), max(last, end)
    # As n rows span n - 1 gaps, each stretch of time has one row more than it has gaps.
    return (rows - stretches) * _US_PER_S / covered_us if covered_us else None
