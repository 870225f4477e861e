from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.sketch import estimate_distinct, kmv, merge
from tests.unit.kernels import reference

KEYS = st.lists(st.one_of(st.integers(0, 30), st.integers(-(2**63), 2**63 - 1)), max_size=60)


def smallest(keys: list[int], k: int) -> list[int]:
    return sorted({reference.xxhash64(key) % 2**64 for key in keys})[:k]


@settings(deadline=None)
@given(KEYS, st.integers(1, 20))
def test_a_sketch_holds_the_smallest_distinct_hashes(keys: list[int], k: int) -> None:
    found = kmv(np.array(keys, np.int64), k)
    assert found.dtype == np.uint64
    assert found.tolist() == smallest(keys, k)


@pytest.mark.parametrize(("rows", "distinct"), [(50_000, 50_000), (50_000, 3_000), (50_000, 10), (50_000, 1)])
def test_a_sketch_of_many_rows_holds_the_smallest_distinct_hashes(rows: int, distinct: int) -> None:
    keys = np.random.default_rng(distinct).integers(0, distinct, rows)
    assert kmv(keys).tolist() == smallest(np.unique(keys).tolist(), 256)


@settings(deadline=None)
@given(KEYS, KEYS, st.integers(1, 20))
def test_merging_sketches_gives_the_sketch_of_the_union(left: list[int], right: list[int], k: int) -> None:
    merged = merge(kmv(np.array(left, np.int64), k), kmv(np.array(right, np.int64), k), k)
    assert merged.tolist() == smallest(left + right, k)


def test_the_key_that_hashes_to_zero_counts() -> None:
    key = _preimage_of_zero()
    assert reference.xxhash64(key) == 0
    assert kmv(np.array([key, key, 1]), 2).tolist() == smallest([key, 1], 2)


@pytest.mark.parametrize("distinct", [1_000, 20_000, 300_000])
def test_estimates_are_within_a_quarter_of_the_truth(distinct: int) -> None:
    assert estimate_distinct(kmv(np.arange(distinct))) == pytest.approx(distinct, rel=0.25)


def test_estimates_are_exact_until_the_sketch_is_full() -> None:
    assert estimate_distinct(kmv(np.array([5, 5, 7, 9]))) == 3
    assert estimate_distinct(kmv(np.zeros(0, np.int64))) == 0


def test_sketches_too_large_for_the_kernel_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 1024"):
        kmv(np.arange(3), 5000)


def _preimage_of_zero() -> int:
    """Undo XXH64 of a 64-bit value step by step."""
    mask = 2**64 - 1
    primes = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
    state = 0  # the final mixing maps 0 to 0 and nothing else
    state = ((state - primes[3]) * pow(primes[0], -1, 2**64)) & mask
    state = ((state >> 27) | (state << 37)) & mask
    lane = state ^ ((42 + primes[4] + 8) & mask)
    lane = (lane * pow(primes[0], -1, 2**64)) & mask
    lane = ((lane >> 31) | (lane << 33)) & mask
    value = (lane * pow(primes[1], -1, 2**64)) & mask
    return value - 2**64 if value >= 2**63 else value
