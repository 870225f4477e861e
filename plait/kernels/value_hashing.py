"""Hashes of values that are no int64, equal to Spark's.

Spark's ``xxhash64`` of a value is XXH64 with seed 42 of bytes that stand for it: texts and binaries are their own
bytes, what is narrower than a BIGINT has four (little-endian), decimals of more than 18 digits as many as Java's
``BigInteger.toByteArray`` gives the unscaled value: big-endian, in two's complement, no more than it takes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel

Bytes: TypeAlias = NDArray[np.uint8]

_SEED = np.uint64(42)
_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_ZERO, _BYTE, _WORD = np.uint64(0), np.uint64(8), np.uint64(64)
_STRIPE = 32
_WIDE_BYTES = 16


def hash_texts(data: Bytes, starts: Int64s) -> Int64s:
    """Return the hash of each piece ``data[starts[i]:starts[i + 1]]`` (uint8[m], int64[n + 1] → int64[n])."""
    out = np.empty(len(starts) - 1, np.int64)
    _hash_texts(frozen(data, np.uint8), frozen(starts, np.int64), out)
    return out


def hash_narrow(values: Int32s) -> Int64s:
    """Return the hash of each value as four bytes (int32[n] → int64[n])."""
    out = np.empty(len(values), np.int64)
    _hash_narrow(frozen(values, np.int32), out)
    return out


def hash_wide(words: Int64s) -> Int64s:
    """Return the hash of each integer of 128 bits as the fewest bytes that hold it: ``words[i]`` are its lower and its
    upper half (int64[n, 2] → int64[n]).
    """
    out = np.empty(len(words), np.int64)
    _hash_wide(frozen(words[:, 0], np.int64), frozen(words[:, 1], np.int64), out)
    return out


@helper
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    turned: np.uint64 = (word << np.uint64(bits)) | (word >> (_WORD - np.uint64(bits)))
    return turned


@helper
def _read(data: Bytes, at: int, count: int) -> np.uint64:
    """Return `count` bytes as a number, the first being its lowest."""
    word = _ZERO
    for place in range(count):
        word |= np.uint64(data[at + place]) << (_BYTE * np.uint64(place))
    return word


@helper
def _round(state: np.uint64, word: np.uint64) -> np.uint64:
    mixed: np.uint64 = _rotated(state + word * _PRIME_2, 31) * _PRIME_1
    return mixed


@helper
def _of_stripes(data: Bytes, start: int, stripes: int) -> np.uint64:
    """Return the state after whole stripes of 32 bytes, of which there is one at least."""
    first, second, third, fourth = _SEED + _PRIME_1 + _PRIME_2, _SEED + _PRIME_2, _SEED, _SEED - _PRIME_1
    for stripe in range(stripes):
        at = start + stripe * _STRIPE
        first = _round(first, _read(data, at, 8))
        second = _round(second, _read(data, at + 8, 8))
        third = _round(third, _read(data, at + 16, 8))
        fourth = _round(fourth, _read(data, at + 24, 8))
    state = _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
    for lane in (first, second, third, fourth):
        state = (state ^ _round(_ZERO, lane)) * _PRIME_1 + _PRIME_4
    return state


@helper
def _hash(data: Bytes, start: int, end: int) -> np.uint64:
    """Return XXH64 of ``data[start:end]``."""
    stripes = (end - start) // _STRIPE
    state = _of_stripes(data, start, stripes) if stripes else _SEED + _PRIME_5
    state = state + np.uint64(end - start)
    at = start + stripes * _STRIPE
    while at + 8 <= end:
        state = _rotated(state ^ _round(_ZERO, _read(data, at, 8)), 27) * _PRIME_1 + _PRIME_4
        at += 8
    if at + 4 <= end:
        state = _rotated(state ^ (_read(data, at, 4) * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        state = _rotated(state ^ (np.uint64(data[at]) * _PRIME_5), 11) * _PRIME_1
        at += 1
    state = (state ^ (state >> np.uint64(33))) * _PRIME_2
    state = (state ^ (state >> np.uint64(29))) * _PRIME_3
    last: np.uint64 = state ^ (state >> np.uint64(32))
    return last


@kernel
def _hash_texts(data: Bytes, starts: Int64s, out: Int64s) -> None:
    for i in range(len(out)):
        out[i] = np.int64(_hash(data, starts[i], starts[i + 1]))


@kernel
def _hash_narrow(values: Int32s, out: Int64s) -> None:
    held = np.empty(4, np.uint8)
    for i in range(len(values)):
        for place in range(4):
            held[place] = np.uint8((values[i] >> (8 * place)) & 0xFF)
        out[i] = np.int64(_hash(held, 0, 4))


@kernel
def _hash_wide(low: Int64s, high: Int64s, out: Int64s) -> None:
    held = np.empty(_WIDE_BYTES, np.uint8)
    for i in range(len(low)):
        for place in range(8):
            held[_WIDE_BYTES - 1 - place] = np.uint8((low[i] >> (8 * place)) & 0xFF)
            held[_WIDE_BYTES - 9 - place] = np.uint8((high[i] >> (8 * place)) & 0xFF)
        filler, first = np.uint8(0xFF) if high[i] < 0 else np.uint8(0), 0
        # A leading byte says nothing if the sign of what follows it says the same.
        while first < _WIDE_BYTES - 1 and held[first] == filler and (held[first + 1] >> 7) == (filler >> 7):
            first += 1
        out[i] = np.int64(_hash(held, first, _WIDE_BYTES))


__all__ = ["Bytes", "hash_narrow", "hash_texts", "hash_wide"]
