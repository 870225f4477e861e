"""Stable order of rows by (key, τ).

NumPy sorts 64-bit words with vector instructions, several times faster than it computes an order (`argsort`,
`lexsort`). So rows are packed into one word each, the leading bits of (key, τ) above the row number, and the words
are sorted. Key and τ count from their minimum, so small ranges need few bits and mostly everything fits.

What does not fit is settled by one of two means. Rows that tie in the bits that did fit are put right by insertion
where ties are short: many different keys, however wide. Otherwise rows are packed and sorted again from the lowest
digit to the highest, each time by as many bits as fit: hot keys, or keys that differ in their low bits alone.
"""

from __future__ import annotations

import numpy as np

from plait.kernels.compiled import Int32s, Int64s, UInt64s, frozen, kernel

_WORD_BITS = 64
_TIE_COST = 8
"""Insertion is chosen up to this many comparisons a row; one more round of packing and sorting costs about as much."""


def sort_order(key: Int64s, tau: Int64s | None) -> Int32s:
    """Return the stable order of rows by (key, τ), by key alone where `tau` is None (int64[n] → int32[n], n < 2^31)."""
    rows = len(key)
    if rows >= 2**31:
        raise ValueError(
            f"{rows} rows to sort; a bucket or batch of a task holds fewer than 2^31. Raise the parallelism."
        )
    if rows < 2:
        return np.arange(rows, dtype=np.int32)
    key = frozen(key, np.int64)
    tau = None if tau is None else frozen(tau, np.int64)
    if tau is not None and _ascends(tau):
        tau = None  # a stable sort by key keeps ascending τ ascending
    if tau is None and _ascends(key):
        return np.arange(rows, dtype=np.int32)
    return _order(key, tau)


def _order(key: Int64s, tau: Int64s | None) -> Int32s:
    room = _WORD_BITS - (len(key) - 1).bit_length()
    low, key_bits = _range(key)
    tau_low, tau_bits = (0, 0) if tau is None else _range(tau)
    words = np.empty(len(key), np.uint64)
    by_tau = key if tau is None else tau  # never looked at for 0 bits
    _pack_leading(key, low, key_bits, by_tau, tau_low, tau_bits, room, words)
    words.sort()
    order = np.empty(len(key), np.int32)
    cost = _unpack(words, _WORD_BITS - room, order)
    if key_bits + tau_bits <= room:
        return order
    if cost <= _TIE_COST * len(key):
        _insert_ties(words, _WORD_BITS - room, key, by_tau, tau is not None, order)
        return order
    return _by_digits(key, low, key_bits, tau, room)


def _by_digits(key: Int64s, low: int, key_bits: int, tau: Int64s | None, room: int) -> Int32s:
    """Sort from the lowest digit of (key, τ) to the highest; each pass is stable, so it keeps the order of the ones
    before.
    """
    digits = [(key, low, shift) for shift in range(0, key_bits, room)]
    if tau is not None:
        tau_low, tau_bits = _range(tau)
        digits = [(tau, tau_low, shift) for shift in range(0, tau_bits, room)] + digits
    order: Int32s = np.arange(len(key), dtype=np.int32)
    words = np.empty(len(key), np.uint64)
    for values, lowest, shift in digits:
        _pack_digit(values, lowest, shift, room, order, words)
        words.sort()
        order = _reorder(words, _WORD_BITS - room, order)
    return order


def _range(values: Int64s) -> tuple[int, int]:
    """Return the minimum, and the number of bits of the largest difference from it."""
    lowest, highest = _bounds(values)
    return int(lowest), (int(highest) - int(lowest)).bit_length()


@kernel
def _ascends(values: Int64s) -> bool:
    for i in range(1, len(values)):  # noqa: SIM110  # Numba compiles no generator expressions
        if values[i] < values[i - 1]:
            return False
    return True


@kernel
def _bounds(values: Int64s) -> tuple[int, int]:
    lowest = highest = values[0]
    for value in values:
        lowest = min(lowest, value)
        highest = max(highest, value)
    return lowest, highest


@kernel
def _pack_leading(
    key: Int64s, low: int, key_bits: int, tau: Int64s, tau_low: int, tau_bits: int, room: int, words: UInt64s
) -> None:
    """Pack the leading `room` bits of (key, τ), all of them if they are fewer, above the row number."""
    key_drop = np.uint64(max(0, key_bits - room))
    tau_room = max(0, min(tau_bits, room - key_bits))
    tau_drop = np.uint64(tau_bits - tau_room)
    row_bits = np.uint64(_WORD_BITS - room)
    for i in range(len(key)):
        word = (np.uint64(key[i]) - np.uint64(low)) >> key_drop
        if tau_room > 0:
            word = (word << np.uint64(tau_room)) | ((np.uint64(tau[i]) - np.uint64(tau_low)) >> tau_drop)
        words[i] = (word << row_bits) | np.uint64(i)


@kernel
def _unpack(words: UInt64s, row_bits: int, order: Int32s) -> int:
    """Store the row numbers of sorted words; return an estimate of what insertion would cost: Σ length²/4 of the
    ties.
    """
    mask = (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    cost, start = 0, 0
    for i in range(len(words)):
        order[i] = np.int32(words[i] & mask)
        if words[i] >> np.uint64(row_bits) != words[start] >> np.uint64(row_bits):
            cost += (i - start) * (i - start) // 4
            start = i
    return cost + (len(words) - start) * (len(words) - start) // 4


@kernel
def _insert_ties(words: UInt64s, row_bits: int, key: Int64s, tau: Int64s, has_tau: bool, order: Int32s) -> None:
    """Sort the rows within each tie by insertion, which is stable."""
    shift = np.uint64(row_bits)
    for i in range(1, len(words)):
        row, at = order[i], i
        while at > 0 and words[at - 1] >> shift == words[i] >> shift:
            other = order[at - 1]
            if key[other] < key[row] or (key[other] == key[row] and (not has_tau or tau[other] <= tau[row])):
                break
            order[at] = other
            at -= 1
        order[at] = row


@kernel
def _pack_digit(values: Int64s, low: int, shift: int, room: int, order: Int32s, words: UInt64s) -> None:
    """Pack `room` bits of each row's value from bit `shift` on above its place in `order`."""
    row_bits = np.uint64(_WORD_BITS - room)
    for i in range(len(order)):
        digit = (np.uint64(values[order[i]]) - np.uint64(low)) >> np.uint64(shift)
        words[i] = (digit << row_bits) | np.uint64(i)  # the shift drops what is above the digit


@kernel
def _reorder(words: UInt64s, row_bits: int, order: Int32s) -> Int32s:
    """Return the rows of `order` in the order of the sorted words."""
    mask = (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    out = np.empty(len(order), np.int32)
    for i in range(len(words)):
        out[i] = order[np.int64(words[i] & mask)]
    return out
