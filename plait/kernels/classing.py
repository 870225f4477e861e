"""Find the class of each value among sorted bounds, and what holds for whole classes.

Of k ascending bounds a value in front of the first is in class 0, one that equals bound i in class 2i + 1, one behind
it and in front of the next in class 2i + 2; so there are 2k + 1 classes. Who has NULLs gives them a class of their own.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel
from plait.kernels.value_hashing import Bytes

Words: TypeAlias = NDArray[np.int64]
"""A row of query-set words each (int64[n, words])."""


def classes_of_numbers(values: Int64s, bounds: Int64s) -> Int32s:
    """Return the class of each value (int64[n], ascending int64[k] → int32[n])."""
    out = np.empty(len(values), np.int32)
    _of_numbers(frozen(values, np.int64), frozen(bounds, np.int64), out)
    return out


def classes_of_texts(data: Bytes, starts: Int64s, bounds: Bytes, bound_starts: Int64s) -> Int32s:
    """Return the class of each piece ``data[starts[i]:starts[i + 1]]`` among pieces of `bounds`, which ascend by their
    bytes (uint8[m], int64[n + 1], uint8[l], int64[k + 1] → int32[n]).
    """
    out = np.empty(len(starts) - 1, np.int32)
    _of_texts(
        frozen(data, np.uint8),
        frozen(starts, np.int64),
        frozen(bounds, np.uint8),
        frozen(bound_starts, np.int64),
        out,
    )
    return out


def keep_bits(classes: Int32s, held: Words, bits: Words) -> None:
    """Take from ``bits[i]`` (int64[n, w]) what its class does not hold: ``held[classes[i]]`` (int64[c, w])."""
    _keep(frozen(classes, np.int32), frozen(held, np.int64), bits)


def bit_counts(words: Int64s, bits: int) -> Int64s:
    """Return how many words have bit 0, 1 and so on (int64[n] → int64[bits])."""
    counts = np.zeros(bits, np.int64)
    _count(frozen(words, np.int64), counts)
    return counts


@kernel
def _of_numbers(values: Int64s, bounds: Int64s, out: Int32s) -> None:
    for i in range(len(values)):
        value, low, high = values[i], 0, len(bounds)
        while low < high:
            middle = (low + high) // 2
            if bounds[middle] < value:
                low = middle + 1
            else:
                high = middle
        is_bound = low < len(bounds) and bounds[low] == value
        out[i] = np.int32(2 * low + 1 if is_bound else 2 * low)


@helper
def _compared(
    left: Bytes, left_from: int, left_to: int, right: Bytes, right_from: int, right_to: int
) -> int | np.int64:
    """Return a number below, at or above 0 as the left piece comes before, equals or comes after the right one."""
    for place in range(min(left_to - left_from, right_to - right_from)):
        difference = np.int64(left[left_from + place]) - np.int64(right[right_from + place])
        if difference != 0:
            return difference
    return (left_to - left_from) - (right_to - right_from)


@kernel
def _of_texts(data: Bytes, starts: Int64s, bounds: Bytes, bound_starts: Int64s, out: Int32s) -> None:
    count = len(bound_starts) - 1
    for i in range(len(out)):
        low, high, is_bound = 0, count, False
        while low < high:
            middle = (low + high) // 2
            order = _compared(bounds, bound_starts[middle], bound_starts[middle + 1], data, starts[i], starts[i + 1])
            if order < 0:
                low = middle + 1
            else:
                high = middle
                is_bound = is_bound or order == 0
        out[i] = np.int32(2 * low + 1 if is_bound else 2 * low)


@kernel
def _keep(classes: Int32s, held: Words, bits: Words) -> None:
    for i in range(len(classes)):
        for word in range(bits.shape[1]):
            bits[i, word] &= held[classes[i], word]


@kernel
def _count(words: Int64s, counts: Int64s) -> None:
    for i in range(len(words)):
        word, place = np.uint64(words[i]), 0
        while word != np.uint64(0) and place < len(counts):
            counts[place] += np.int64(word & np.uint64(1))
            word >>= np.uint64(1)
            place += 1


__all__ = ["Words", "bit_counts", "classes_of_numbers", "classes_of_texts", "keep_bits"]
