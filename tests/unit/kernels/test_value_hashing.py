from __future__ import annotations

import random

import numpy as np
import pytest

from plait.kernels.value_hashing import hash_narrow, hash_texts, hash_wide
from tests.oracle import spark_hashes


def test_bytes_of_every_length_have_their_hash() -> None:
    rng = random.Random(5)
    texts = [rng.randbytes(length) for length in range(201) for _ in range(2)]
    starts = np.cumsum([0, *map(len, texts)])
    hashes = hash_texts(np.frombuffer(b"".join(texts), np.uint8), starts)
    assert hashes.tolist() == [spark_hashes.of_bytes(text) for text in texts]


def test_texts_of_nothing_have_the_hash_of_nothing() -> None:
    assert hash_texts(np.empty(0, np.uint8), np.zeros(3, np.int64)).tolist() == [spark_hashes.of_bytes(b"")] * 2


def test_narrow_values_are_four_bytes() -> None:
    values = [0, 1, -1, 2**31 - 1, -(2**31), 42]
    assert hash_narrow(np.array(values, np.int32)).tolist() == [spark_hashes.of_narrow(value) for value in values]


@pytest.mark.parametrize("bits", range(127))
def test_wide_values_are_the_fewest_bytes_that_hold_them(bits: int) -> None:
    values = [sign * (2**bits + change) for sign in (1, -1) for change in (-1, 0, 1)]
    halves = [[value & (2**64 - 1), value >> 64] for value in values]
    words = np.array([[low - 2**64 if low >= 2**63 else low, high] for low, high in halves], np.int64)
    assert hash_wide(words).tolist() == [spark_hashes.of_wide(value) for value in values]
