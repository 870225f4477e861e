"""Many small probes at once: steps of a plan side by side, each with its own partial results, index and bounds.

A step with a dozen partial results is found in microseconds; to call a kernel for it takes a hundred times as long. So
all columns and indexes that are read lie one behind the other in a few arrays, and a step says where its own begin.

Correct means: what is found for a step is what `matching` finds for it alone, pair by pair, in order of (step, partial
result, index position).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel
from plait.kernels.matching import at_least, beyond

Flags: TypeAlias = NDArray[np.uint8]

NONE: Final = -1
"""In place of where something begins: it is not asked for. As a window: unbounded."""

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_ROOM = 1 << 14

# What a step says, by row of `steps`: its partial results and its equalities, each from one up to another; where its
# index begins, and of how many entries it is; its window; whether the store has τ; where the column begins that says
# until when a stored row can be joined; where the word of its selection begins, and the mask; where it is said how each
# stored row arrived, and which of that it finds.
BEGIN, END, EQUAL, EQUAL_END, INDEX, LENGTH, WINDOW, TIMED, UNTIL, WORD, MASK, ARRIVED, FINDS = range(13)
STEP_FIELDS: Final = 13

# An equality: in which row of `rows` the numbers of stored rows are, where the column begins, and where its validity.
UNIT, COLUMN, VALID = range(3)
EQUALITY_FIELDS: Final = 3

# What rows to start with: from one up to another, word and mask of their selection, where τ begins, and the window.
START, STOP, START_WORD, START_MASK, START_TAU, START_WINDOW = range(6)
START_FIELDS: Final = 6


class Columns(NamedTuple):
    """All that is read, one behind the other: int64 columns, flags (validity, and how a row arrived: 0 before, n that
    bit n says whether it is found), and indexes, sorted by (key, τ), of those without τ it is 0.
    """

    values: Int64s
    flags: Flags
    index_key: Int64s
    index_tau: Int64s
    index_row: Int32s


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Partial results of many steps, one behind the other: those of step n end at ``ends[n]``. `rows`: for each part of
    the path the number of the stored row; `newest` and `high` as of `Partials`.
    """

    ends: Int64s
    rows: Int32s
    newest: Int64s
    high: Int64s

    @property
    def begins(self) -> Int64s:
        """Where the partial results of each step begin."""
        return np.concatenate((np.zeros(1, np.int64), self.ends[:-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """What steps have found, and for each how many partial results had all keys, and how many of these any match."""

    joined: Joined
    probed: Int64s
    matched: Int64s


def start_abreast(starts: Int64s, columns: Columns) -> Joined:
    """Return the rows to start with, for each column of `starts` (int64[START_FIELDS, n])."""
    most = int((starts[STOP] - starts[START]).sum())
    rows, newest, high = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    ends = np.empty(starts.shape[1], np.int64)
    count = _start(frozen(starts, np.int64), frozen(columns.values, np.int64), rows, newest, high, ends)
    return Joined(ends=ends, rows=rows[:count].reshape(1, -1), newest=newest[:count], high=high[:count])


def find_abreast(steps: Int64s, equalities: Int64s, joined: Joined, columns: Columns, capacity: int) -> Met | None:
    """Return what each step (int64[STEP_FIELDS, n], int64[EQUALITY_FIELDS, m]) finds; None if that is more than
    `capacity` in all.
    """
    count = steps.shape[1]
    given = (
        frozen(steps, np.int64),
        frozen(equalities, np.int64),
        (frozen(joined.rows, np.int32), frozen(joined.newest, np.int64), frozen(joined.high, np.int64)),
        _frozen(columns),
    )
    found, room = _ROOM, 0
    while found > room:
        room = min(found, capacity)
        parent, row = np.empty(room, np.int32), np.empty(room, np.int32)
        newest, high = np.empty(room, np.int64), np.empty(room, np.int64)
        ends, probed, matched = (np.zeros(count, np.int64) for _ in range(3))
        found = _find(*given, (parent, row, newest, high), ends, probed, matched)
        if found > capacity:
            return None
    rows = np.concatenate((joined.rows[:, parent[:found]], row[:found].reshape(1, -1)))
    made = Joined(ends=ends, rows=rows, newest=newest[:found], high=high[:found])
    return Met(joined=made, probed=probed, matched=matched)


def _frozen(columns: Columns) -> Columns:
    return Columns(
        values=frozen(columns.values, np.int64),
        flags=frozen(columns.flags, np.uint8),
        index_key=frozen(columns.index_key, np.int64),
        index_tau=frozen(columns.index_tau, np.int64),
        index_row=frozen(columns.index_row, np.int32),
    )


@helper
def _later(tau: int, window: int) -> int:
    """Return τ + W, saturating."""
    return _MOST if window < 0 or tau > _MOST - window else tau + window


@helper
def _earlier(tau: int, window: int) -> int:
    """Return τ − W, saturating."""
    return _LEAST if window < 0 or tau < _LEAST + window else tau - window


@helper
def _first(keys: Int64s, low: int, high: int, key: int) -> int:
    """Return the first position in [low, high) whose key is ≥ `key`, else `high`."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _start(starts: Int64s, values: Int64s, rows: Int32s, newest: Int64s, high: Int64s, ends: Int64s) -> int:
    count = 0
    for start in range(starts.shape[1]):
        word, mask, tau = starts[START_WORD, start], starts[START_MASK, start], starts[START_TAU, start]
        for row in range(starts[START, start], starts[STOP, start]):
            if word < 0 or values[word + row] & mask != 0:
                rows[count] = row
                newest[count] = values[tau + row]
                high[count] = _later(values[tau + row], starts[START_WINDOW, start])
                count += 1
        ends[start] = count
    return count


@helper
def _key_of(
    equalities: Int64s, first: int, last: int, rows: Int32s, partial: int, values: Int64s, flags: Flags
) -> tuple[int, int]:
    """Return a partial result's key, and whether it has none (0), several that differ (1), or this one (2)."""
    key, state = 0, 2
    for equality in range(first, last):
        row = rows[equalities[UNIT, equality], partial]
        valid = equalities[VALID, equality]
        if valid >= 0 and flags[valid + row] == 0:
            return 0, 0
        value = values[equalities[COLUMN, equality] + row]
        if equality == first:
            key = value
        elif value != key:
            state = 1
    return key, state


@kernel
def _find(
    steps: Int64s,
    equalities: Int64s,
    joined: tuple[Int32s, Int64s, Int64s],
    columns: Columns,
    out: tuple[Int32s, Int32s, Int64s, Int64s],
    ends: Int64s,
    probed: Int64s,
    matched: Int64s,
) -> int:
    """Return how many matches there are; as many as there is room for are written."""
    rows, newest, high = joined
    values, flags, index_key, index_tau, index_row = columns
    out_parent, out_row, out_newest, out_high = out
    room, count = len(out_parent), 0
    for step in range(steps.shape[1]):
        begin, window, until = steps[INDEX, step], steps[WINDOW, step], steps[UNTIL, step]
        end, timed = begin + steps[LENGTH, step], steps[TIMED, step] != 0
        word, mask, arrived, finds = steps[WORD, step], steps[MASK, step], steps[ARRIVED, step], steps[FINDS, step]
        for partial in range(steps[BEGIN, step], steps[END, step]):
            key, state = _key_of(equalities, steps[EQUAL, step], steps[EQUAL_END, step], rows, partial, values, flags)
            if state == 0:
                continue
            probed[step] += 1
            at = _first(index_key, begin, end, key)
            if state == 1 or at == end or index_key[at] != key:
                continue
            run_end, before = beyond(index_key, at, end, key), count
            if timed:
                at = at_least(index_tau, at, run_end, _earlier(newest[partial], window))
            while at < run_end and (not timed or index_tau[at] <= high[partial]):
                row = index_row[at]
                if (
                    (finds >> flags[arrived + row]) & 1 != 0
                    and (word < 0 or values[word + row] & mask != 0)
                    and (until < 0 or newest[partial] <= values[until + row])
                ):
                    if count < room:
                        tau = index_tau[at]
                        out_parent[count] = partial
                        out_row[count] = row
                        out_newest[count] = max(newest[partial], tau) if timed else newest[partial]
                        latest = values[until + row] if until >= 0 else _later(tau, window)
                        out_high[count] = min(high[partial], latest) if timed else high[partial]
                    count += 1
                at += 1
            if count > before:
                matched[step] += 1
        ends[step] = count
    return count
