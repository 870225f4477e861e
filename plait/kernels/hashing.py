"""Hashes of int64 keys, equal to Spark's.

Spark's ``xxhash64`` is XXH64 of the value's eight little-endian bytes with seed 42; over several columns each hash is
the seed of the next. Equality with Spark matters: the JVM places rows with ``pmod(xxhash64(key), parallelism)``, and
a probe task must compute the same partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel

_SEED = 42
_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def xxhash64(values: Int64s) -> Int64s:
    """Return Spark's ``xxhash64(BIGINT)`` of each value (int64[n] → int64[n])."""
    out = np.empty(len(values), np.int64)
    _hash_with_seed(frozen(values, np.int64), _SEED, out)
    return out


def combine(columns: Sequence[Int64s]) -> Int64s:
    """Return one int64 key for rows of several (each int64[n]): the column itself if single, else Spark's
    ``xxhash64(a, b, …)``.

    The order of columns matters. Equal combined keys do not prove equal parts: who joins on them must compare the
    parts.
    """
    if not columns:
        raise ValueError("a composite key needs at least one column; an explicit cross join has no key to combine")
    if len(columns) == 1:
        return columns[0]
    out = xxhash64(columns[0])
    for column in columns[1:]:
        _hash_with_seeds(frozen(column, np.int64), out)
    return out


def partition_of(keys: Int64s, parallelism: int) -> Int32s:
    """Return ``pmod(xxhash64(key), parallelism)`` of each key (int64[n] → int32[n])."""
    if parallelism < 1:
        raise ValueError(f"parallelism is {parallelism}; expected at least 1")
    out = np.empty(len(keys), np.int32)
    _partition(frozen(keys, np.int64), parallelism, out)
    return out


def key_group_of(keys: Int64s, groups: int) -> Int64s:
    """Return which of so many equal ranges of hashes each key falls into (int64[n] → int64[n], 0 to `groups` - 1).

    Twice as many groups halve every range: group g becomes 2g and 2g + 1, and no key goes anywhere else.
    """
    if not 1 <= groups < 1 << 31:
        raise ValueError(f"{groups} key groups; expected 1 to {(1 << 31) - 1}")
    upper = xxhash64(keys).view(np.uint64) >> np.uint64(32)
    return ((upper * np.uint64(groups)) >> np.uint64(32)).astype(np.int64)


@helper
def mix(value: int | np.int64, seed: int | np.int64) -> np.uint64:
    """Return XXH64 of one value as unsigned; callable from kernels."""
    product = np.uint64(value) * _PRIME_2
    product = (product << np.uint64(31)) | (product >> np.uint64(33))
    state = (np.uint64(seed) + _PRIME_5 + np.uint64(8)) ^ (product * _PRIME_1)
    state = ((state << np.uint64(27)) | (state >> np.uint64(37))) * _PRIME_1 + _PRIME_4
    state = (state ^ (state >> np.uint64(33))) * _PRIME_2
    state = (state ^ (state >> np.uint64(29))) * _PRIME_3
    last: np.uint64 = state ^ (state >> np.uint64(32))
    return last


@kernel
def _hash_with_seed(values: Int64s, seed: int, out: Int64s) -> None:
    for i in range(len(values)):
        out[i] = np.int64(mix(values[i], seed))


@kernel
def _hash_with_seeds(values: Int64s, seeds: Int64s) -> None:
    for i in range(len(values)):
        seeds[i] = np.int64(mix(values[i], seeds[i]))


@kernel
def _partition(keys: Int64s, parallelism: int, out: Int32s) -> None:
    for i in range(len(keys)):
        rest = np.int64(mix(keys[i], _SEED)) % parallelism  # of a floored division, so never negative: pmod
        out[i] = rest
