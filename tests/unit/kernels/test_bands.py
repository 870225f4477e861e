"""Keys compared by size, against the obvious computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.bands import LARGEST, SMALLEST, bounds, doubles_of, iter_bands, ordered_int64, within

NASTY = [-np.inf, -1e308, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e308, np.inf, np.nan]
doubles = st.one_of(st.sampled_from(NASTY), st.floats(width=64))


@given(st.lists(doubles, min_size=1, max_size=20))
def test_the_order_of_doubles_is_kept_with_nan_largest(values):
    array = np.array(values)
    keys = ordered_int64(array)
    for one, key in zip(values, keys, strict=True):
        for other, their_key in zip(values, keys, strict=True):
            is_less = (not np.isnan(one)) and (np.isnan(other) or one < other)
            assert (key < their_key) == is_less
    np.testing.assert_array_equal(doubles_of(keys), array)


@given(
    st.lists(st.one_of(st.integers(SMALLEST, LARGEST), st.sampled_from([SMALLEST, LARGEST])), min_size=1, max_size=10),
    st.one_of(st.none(), st.integers(-(2**53), 2**53)),
    st.one_of(st.none(), st.integers(-(2**53), 2**53)),
)
def test_bounds_of_whole_numbers_hold_what_is_within_and_nothing_else(keys, low, high):
    smallest, largest = bounds(np.array(keys), low, high, is_double=False)
    for key, least, most in zip(keys, smallest.tolist(), largest.tolist(), strict=True):
        wanted = (
            SMALLEST if low is None else max(key + low, SMALLEST),
            LARGEST if high is None else min(key + high, LARGEST),
        )
        assert (least, most) == wanted if wanted[0] <= wanted[1] else least > most


@given(st.lists(doubles, min_size=1, max_size=12), st.lists(doubles, min_size=1, max_size=12), st.floats(0, 1e6))
def test_no_pair_within_a_band_of_doubles_is_missed(probes, stored, width):
    stored_keys = np.sort(ordered_int64(np.array(stored)))
    smallest, largest = bounds(ordered_int64(np.array(probes)), -width, width, is_double=True)
    values = doubles_of(stored_keys)
    with np.errstate(invalid="ignore", over="ignore"):
        for probe, least, most in zip(probes, smallest, largest, strict=True):
            inside = np.abs(values - probe) <= width
            assert (stored_keys[inside] >= least).all()
            assert (stored_keys[inside] <= most).all()


@pytest.mark.parametrize("capacity", [1, 3, 1 << 20])
@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_ranges_find_what_a_nested_loop_finds(capacity, seed):
    random = np.random.default_rng(seed)
    rows, probes = int(random.integers(0, 30)), int(random.integers(0, 12))
    key = np.sort(random.integers(0, 10, rows))
    tau, bits = random.integers(0, 10, rows), random.integers(0, 4, rows)
    row = random.permutation(rows).astype(np.int32)
    least, low = random.integers(0, 10, probes), random.integers(0, 6, probes)
    most, high = least + random.integers(-1, 4, probes), low + random.integers(0, 6, probes)
    found = []
    for probe, stored in iter_bands(
        probe_from=least,
        probe_to=most,
        probe_low=low,
        probe_high=high,
        index_key=key,
        index_tau=tau,
        index_row=row,
        bits=bits,
        mask=2,
        capacity=capacity,
    ):
        assert 1 <= len(probe) == len(stored) <= capacity
        found += zip(probe.tolist(), stored.tolist(), strict=True)
    assert found == [
        (probe, int(row[at]))
        for probe in range(probes)
        for at in range(rows)
        if least[probe] <= key[at] <= most[probe] and low[probe] <= tau[at] <= high[probe] and bits[row[at]] & 2
    ]


def test_within_tests_pair_by_pair():
    found = within(
        np.array([0, 5]),
        np.array([3, 9]),
        np.array([3, 4, 5]),
        np.array([0, 0, 1], np.int32),
        np.array([0, 1, 2], np.int32),
    )
    assert found.tolist() == [True, False, True]
