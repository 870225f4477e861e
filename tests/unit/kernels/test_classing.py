from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.classing import bit_counts, classes_of_numbers, classes_of_texts, keep_bits

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
TEXTS = st.binary(max_size=4) | st.sampled_from([b"", b"a", b"ab", b"\xff", b"a\x00"])


def joined(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=30), st.sets(NUMBERS, max_size=9))
def test_a_number_is_at_a_bound_or_between_two(values: list[int], cut: set[int]) -> None:
    bounds = sorted(cut)
    found = classes_of_numbers(np.array(values, np.int64), np.array(bounds, np.int64))
    assert found.tolist() == [bisect_left(bounds, value) + bisect_right(bounds, value) for value in values]


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=30), st.sets(TEXTS, max_size=9))
def test_a_text_is_at_a_bound_or_between_two_by_its_bytes(values: list[bytes], cut: set[bytes]) -> None:
    bounds = sorted(cut)
    found = classes_of_texts(*joined(values), *joined(bounds))
    assert found.tolist() == [bisect_left(bounds, value) + bisect_right(bounds, value) for value in values]


def test_bits_stay_where_their_class_holds_them() -> None:
    bits = np.array([[7, -1], [7, -1], [6, 1]], np.int64)
    keep_bits(np.array([0, 1, 1], np.int32), np.array([[5, 0], [3, -1]], np.int64), bits)
    assert bits.tolist() == [[5, 0], [3, -1], [2, 1]]


def test_bits_are_counted_by_their_place() -> None:
    words = np.array([0, 1, 3, 1 << 62, (1 << 62) | 2], np.int64)
    counts = bit_counts(words, 63)
    assert counts[[0, 1, 2, 62]].tolist() == [2, 2, 0, 2]
    assert bit_counts(words, 2).tolist() == [2, 2]
