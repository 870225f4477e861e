"""Which partial aggregates the windows that are over consist of.

A window of an hour that begins every second has 3,600 panes, and a pane lies in as many windows: put together pane by
pane that is thirteen million for every hour. So panes are put together in pairs, these again, and so on, and a window
consists of a few such pieces, two of each length at most, as in a segment tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.close.groups import GroupedQuery, Over
from plait.operators.traversal.partial_aggregates import grouped, in_columns
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Fold
from plait.state.gathered import microseconds

Int64s = npt.NDArray[np.int64]


def parts_of_windows(rows: pa.RecordBatch, query: GroupedQuery, over: Over) -> tuple[Int64s, pa.RecordBatch]:
    """Return partial aggregates that all windows that are over consist of, once for each, and where these begin.
    `rows`: partial aggregates of a query, at least one; the event times of what is returned mean nothing.
    """
    window, how = query.window, query.fold
    assert how is not None, "joined rows are no partial aggregates"
    assert isinstance(window, TimeWindow), "sessions have no panes"
    unit = math.gcd(window.size_us, window.slide_us)
    panes = (microseconds(rows.column(query.time)).to_numpy() - window.start_us) // unit
    begins = _begins(np.unique(panes), window, over, unit)
    pieces = list(_pieces(panes, rows, how, query.time, begins, window.size_us // unit, unit))
    found = pa.concat_batches([piece for _, piece in pieces])
    return np.concatenate([begin for begin, _ in pieces]) + window.start_us, found


def _begins(panes: Int64s, window: TimeWindow, over: Over, unit: int) -> Int64s:
    """Return where windows begin that are over and hold some pane (int64[n], ascending), counted from their start."""
    first = -((window.size_us - unit - panes * unit) // window.slide_us)
    last = panes * unit // window.slide_us
    # Of panes in order no number is taken twice: those up to the last of the pane before are there already.
    first[1:] = np.maximum(first[1:], last[:-1] + 1)
    counts = np.maximum(last - first + 1, 0)
    numbers = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) + np.arange(counts.sum())
    begins = numbers * window.slide_us
    ends = begins + window.start_us + window.size_us
    is_over = ends <= over.until_us
    if over.after_us is not None:
        is_over &= ends > over.after_us
    return begins[is_over]


def _pieces(
    panes: Int64s, rows: pa.RecordBatch, how: Fold, time: str, begins: Int64s, length: int, unit: int
) -> Iterator[tuple[Int64s, pa.RecordBatch]]:
    """Yield what windows of `length` panes consist of: at each level the piece at their left and the one at their right
    that the next level does not have.
    """
    left, right, level = begins // unit, begins // unit + length, 0
    while True:
        panes, rows = _put_together(panes >> min(level, 1), rows, how, time)
        for is_odd, piece in ((left & 1 == 1, left), (right & 1 == 1, right - 1)):
            taken = is_odd & (left < right)
            yield _joined(panes, rows, piece[taken], begins[taken])
        left, right, level = (left + 1) >> 1, right >> 1, level + 1
        if not (left < right).any():
            return


def _put_together(panes: Int64s, rows: pa.RecordBatch, how: Fold, time: str) -> tuple[Int64s, pa.RecordBatch]:
    made = [(partial.name, partial.again) for partial in how.partials]
    table = in_columns(rows, pa.array(panes), time)
    whole = grouped(table, rows.schema, [(key, key) for key in how.keys], made, time)
    return microseconds(whole.column(time)).to_numpy(), whole


def _joined(panes: Int64s, rows: pa.RecordBatch, wanted: Int64s, begins: Int64s) -> tuple[Int64s, pa.RecordBatch]:
    """Return the rows of each wanted pane, with the window that wants it."""
    order = np.argsort(panes, kind="stable")
    low, high = (np.searchsorted(panes[order], wanted, side) for side in ("left", "right"))
    counts = high - low
    places = np.repeat(low - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) + np.arange(counts.sum())
    return np.repeat(begins, counts), rows.take(pa.array(order[places.astype(np.int64)]))


__all__ = ["parts_of_windows"]
