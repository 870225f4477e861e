"""Which rows belong to one session: rows with the same key, each at most a gap later than what came before."""

from __future__ import annotations

import numpy as np

from plait.kernels.compiled import Int32s, Int64s, frozen, kernel
from plait.kernels.ordering import sort_order


def sessions(key: Int64s, first: Int64s, last: Int64s, gap_us: int) -> tuple[Int64s, Int64s]:
    """Return when the session of each row begins, and its last event time (int64[n] each).

    A row stands for a session already, from `first` to `last` (int64[n] each, ``first <= last``): of one joined row
    they are the same. Two of one key are parts of a longer one if one begins no later than a gap after the other's
    last, so the result does not depend on which rows were put together before.

    >>> begins, lasts = sessions(*np.array([[1, 1, 2, 1], [0, 16, 3, 6], [6, 16, 3, 6]]), gap_us=9)
    >>> begins.tolist(), lasts.tolist()
    ([0, 16, 3, 0], [6, 16, 3, 6])
    """
    begins, lasts = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    key, first, last = frozen(key, np.int64), frozen(first, np.int64), frozen(last, np.int64)
    _sessions(frozen(sort_order(key, first), np.int32), key, first, last, gap_us, begins, lasts)
    return begins, lasts


@kernel
def _sessions(
    order: Int32s, key: Int64s, first: Int64s, last: Int64s, gap_us: int, begins: Int64s, lasts: Int64s
) -> None:
    start = 0
    while start < len(order):
        row = order[start]
        began, latest, of = first[row], last[row], key[row]
        end = start + 1
        # A part may lie inside an earlier one, so what counts is the latest of all so far, not the one before.
        while end < len(order) and key[order[end]] == of and first[order[end]] - gap_us <= latest:
            latest = max(latest, last[order[end]])
            end += 1
        for place in range(start, end):
            begins[order[place]] = began
            lasts[order[place]] = latest
        start = end


__all__ = ["sessions"]
