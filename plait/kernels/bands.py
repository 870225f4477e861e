"""Keys compared by size: doubles as int64 of the same order, bounds around a key, and the rows within them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int32s, Int64s, frozen, kernel
from plait.kernels.matching import fill_ranges, filled, tests_of

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


def iter_bands(
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
    begins = frozen(np.searchsorted(index_key, probe_from, "left"), np.int64)
    ends = frozen(np.searchsorted(index_key, probe_to, "right"), np.int64)
    tests = tests_of(probe_low, probe_high, index_tau, index_row, bits, mask)
    yield from filled(fill_ranges, (begins, ends, tests), [0, begins[0] if len(begins) else 0], len(begins), capacity)


def within(probe_from: Int64s, probe_to: Int64s, keys: Int64s, probes: Int32s, rows: Int32s) -> NDArray[np.bool_]:
    """Return for each pair (probe, row) whether ``probe_from[probe] ≤ keys[row] ≤ probe_to[probe]`` (bool[pairs])."""
    is_within = np.empty(len(probes), np.bool_)
    _within(
        frozen(probe_from, np.int64),
        frozen(probe_to, np.int64),
        frozen(keys, np.int64),
        frozen(probes, np.int32),
        frozen(rows, np.int32),
        is_within,
    )
    return is_within


@kernel
def _within(
    probe_from: Int64s,
    probe_to: Int64s,
    keys: Int64s,
    probes: Int32s,
    rows: Int32s,
    is_within: NDArray[np.bool_],
) -> None:
    for pair in range(len(probes)):
        key, probe = keys[rows[pair]], probes[pair]
        is_within[pair] = probe_from[probe] <= key and key <= probe_to[probe]
