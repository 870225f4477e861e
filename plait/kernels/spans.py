"""Keys compared by size: doubles as int64 of the same order, bounds around a key, and the rows within them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int32s, Int64s, frozen, kernel
from plait.kernels.matching import blocks, check_capacity, trimmed

Float64s = NDArray[np.float64]

SMALLEST, LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_BELOW_SIGN = np.int64(LARGEST)
_SLACK = 2.0**-49
"""What a difference of two doubles and what it is compared with may be off by rounding, relative to the largest."""


def ordered_int64(values: Float64s) -> Int64s:
    """Return int64[n] in the order of float64[n]: −0.0 is 0.0, all NaNs are one value, larger than infinity.

    >>> ordered_int64(np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """
    tidy = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = tidy.view(np.int64)
    return np.where(bits < 0, bits ^ _BELOW_SIGN, bits)


def doubles_of(ordered: Int64s) -> Float64s:
    """Return the float64[n] that `ordered_int64` made int64[n] of."""
    return np.where(ordered < 0, ordered ^ _BELOW_SIGN, ordered).view(np.float64)


def bounds(keys: Int64s, low: float | None, high: float | None, *, is_double: bool) -> tuple[Int64s, Int64s]:
    """Return the smallest and the largest key k with ``low ≤ k − key ≤ high`` (int64[n] each), None: no bound.

    Whole numbers saturate; if no number is as large or as small as a bound, the bounds are such that nothing is within.
    Doubles are moved outwards by what rounding can do to a difference; NaN plus anything is NaN, which is larger than
    every number.
    """
    if is_double:
        values = doubles_of(keys)
        return _double_bound(values, keys, low, -1.0, SMALLEST), _double_bound(values, keys, high, 1.0, LARGEST)
    smallest, largest = _whole_bound(keys, low, SMALLEST), _whole_bound(keys, high, LARGEST)
    if low is not None and low > 0:
        beyond = keys > LARGEST - int(low)
    elif high is not None and high < 0:
        beyond = keys < SMALLEST - int(high)
    else:
        return smallest, largest
    return np.where(beyond, LARGEST, smallest), np.where(beyond, SMALLEST, largest)


def _whole_bound(keys: Int64s, offset: float | None, open_end: int) -> Int64s:
    if offset is None:
        return np.full(len(keys), open_end, np.int64)
    shift = int(offset)
    moved = keys + np.int64(shift)
    if shift > 0:
        return np.where(moved < keys, LARGEST, moved)
    return np.where(moved > keys, SMALLEST, moved)


def _double_bound(values: Float64s, keys: Int64s, offset: float | None, outwards: float, open_end: int) -> Int64s:
    if offset is None:
        return np.full(len(keys), open_end, np.int64)
    if offset == 0:
        return keys
    with np.errstate(over="ignore", invalid="ignore"):
        slack = _SLACK * (np.abs(values) + abs(offset))
        return ordered_int64(np.where(np.isinf(values), values, values + offset + outwards * slack))


def iter_spans(
    *,
    probe_from: Int64s,
    probe_to: Int64s,
    probe_low: Int64s | None,
    probe_high: Int64s | None,
    index_key: Int64s,
    index_tau: Int64s | None,
    index_row: Int32s | None,
    bits: Int64s | None,
    mask: int,
    capacity: int = 1 << 20,
) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield (probe position, row) wherever ``probe_from[i] ≤ key ≤ probe_to[i]``, in order of (probe, key).

    Bounds on τ, bits and blocks as in `plait.kernels.matching.iter_matches`; `index_key` (int64[m]) ascends, probes may
    be in any order.
    """
    check_capacity(capacity)
    begins = np.searchsorted(index_key, probe_from, "left")
    ends = np.searchsorted(index_key, probe_to, "right")
    none = np.zeros(0, np.int64)
    arrays = (
        frozen(begins, np.int64),
        frozen(ends, np.int64),
        frozen(none if probe_low is None else probe_low, np.int64),
        frozen(none if probe_high is None else probe_high, np.int64),
        frozen(none if index_tau is None else index_tau, np.int64),
        frozen(np.zeros(0, np.int32) if index_row is None else index_row, np.int32),
        frozen(none if bits is None else bits, np.int64),
    )
    timed = index_tau is not None
    tests = (timed and probe_low is not None, timed and probe_high is not None, index_row is not None, bits is not None)
    state = np.array([0, begins[0] if len(begins) else 0], np.int64)
    for probes, rows in blocks(len(begins), capacity):
        count = _span(*arrays, mask, *tests, state, probes, rows)
        if count:
            yield trimmed(probes, count), trimmed(rows, count)
        if state[0] >= len(begins):
            return


@kernel
def _span(
    begins: Int64s,
    ends: Int64s,
    probe_low: Int64s,
    probe_high: Int64s,
    index_tau: Int64s,
    index_row: Int32s,
    bits: Int64s,
    mask: int,
    has_low: bool,
    has_high: bool,
    has_row: bool,
    has_bits: bool,
    state: Int64s,
    out_probe: Int32s,
    out_row: Int32s,
) -> int:
    """Fill the block from where `state` (the probe, the index position) stopped; return how many pairs it holds."""
    probes, capacity, count = len(begins), len(out_probe), 0
    probe, at = state[0], state[1]
    while probe < probes:
        end = ends[probe]
        while at < end and count < capacity:
            row = np.int64(index_row[at]) if has_row else at
            if (
                (not has_low or probe_low[probe] <= index_tau[at])
                and (not has_high or index_tau[at] <= probe_high[probe])
                and (not has_bits or bits[row] & mask != 0)
            ):
                out_probe[count] = probe
                out_row[count] = row
                count += 1
            at += 1
        if at < end:
            break
        probe += 1
        if probe < probes:
            at = begins[probe]
    state[0], state[1] = probe, at
    return count


def within(probe_from: Int64s, probe_to: Int64s, keys: Int64s, probes: Int32s, rows: Int32s) -> NDArray[np.bool_]:
    """Return for each pair (probe, row) whether ``probe_from[probe] ≤ keys[row] ≤ probe_to[probe]`` (bool[pairs])."""
    found = np.empty(len(probes), np.bool_)
    _within(
        frozen(probe_from, np.int64),
        frozen(probe_to, np.int64),
        frozen(keys, np.int64),
        frozen(probes, np.int32),
        frozen(rows, np.int32),
        found,
    )
    return found


@kernel
def _within(
    probe_from: Int64s,
    probe_to: Int64s,
    keys: Int64s,
    probes: Int32s,
    rows: Int32s,
    found: NDArray[np.bool_],
) -> None:
    for pair in range(len(probes)):
        key, probe = keys[rows[pair]], probes[pair]
        found[pair] = probe_from[probe] <= key and key <= probe_to[probe]
