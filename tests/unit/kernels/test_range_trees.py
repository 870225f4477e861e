"""What ranges come to, against going through them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.range_trees import LARGEST, least_in, least_tree, sum_tree, sums_in


@st.composite
def ranges(draw: st.DrawFn, count: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = draw(st.lists(st.tuples(st.integers(0, count), st.integers(0, count)), max_size=8))
    return tuple(np.array([side(pair) for pair in pairs], np.int32) for side in (min, max))  # type: ignore[return-value]


@settings(deadline=None)
@given(st.data(), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_the_smallest_of_a_range_is_that_of_its_numbers(data: st.DataObject, values: list[int]) -> None:
    begins, ends = data.draw(ranges(len(values)))
    found = least_in(least_tree(np.array(values, np.int64)), begins, ends).tolist()
    assert found == [min(values[low:high], default=LARGEST) for low, high in zip(begins, ends, strict=True)]


@settings(deadline=None)
@given(st.data(), st.lists(st.integers(-1000, 1000), max_size=20))
def test_the_sum_of_a_range_is_that_of_its_numbers(data: st.DataObject, values: list[int]) -> None:
    begins, ends = data.draw(ranges(len(values)))
    found = sums_in(sum_tree(np.array(values, np.float64)), begins, ends).tolist()
    assert found == [sum(values[low:high]) for low, high in zip(begins, ends, strict=True)]


@pytest.mark.parametrize("beside", [1e300, math.inf, math.nan])
def test_a_sum_knows_nothing_of_what_lies_beside_its_range(beside: float) -> None:
    tree = sum_tree(np.array([beside, 1.0, 2.0, -beside]))
    assert sums_in(tree, np.array([1], np.int32), np.array([3], np.int32)).tolist() == [3.0]
