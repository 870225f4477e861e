"""Rows sent once to each distinct partition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.dispatching import dispatch


@given(seed=st.integers(0, 2**32), rows=st.integers(0, 20), columns=st.integers(1, 6), partitions=st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_each_row_goes_once_to_each_distinct_partition_with_all_that_want_it_there(
    seed: int, rows: int, columns: int, partitions: int
) -> None:
    wanted = np.random.default_rng(seed).integers(-1, partitions, (rows, columns))
    bits = 1 << np.arange(columns)
    expected: dict[tuple[int, int], int] = {}
    for row in range(rows):
        for column in range(columns):
            if wanted[row, column] >= 0:
                where = row, int(wanted[row, column])
                expected[where] = expected.get(where, 0) | int(bits[column])
    sent = dispatch(wanted, bits, partitions)
    found = list(zip(sent.row.tolist(), sent.partition.tolist(), strict=True))
    assert dict(zip(found, sent.bits.tolist(), strict=True)) == expected
    assert len(found) == len(expected)
    assert sent.row.tolist() == sorted(sent.row.tolist())


def test_a_partition_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match="partition 3 is wanted; there are 3"):
        dispatch(np.array([[0, 3]]), np.array([1, 2]), 3)
