from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels import ordering
from plait.kernels.compiled import Int64s
from plait.kernels.ordering import sort_order
from tests.unit.kernels import reference

FEW = st.integers(0, 3)
WIDE = st.integers(-(2**63), 2**63 - 1)
CLUSTERED = st.sampled_from((-(2**63), -1, 0, 1, 2, 3, 2**40, 2**63 - 1))
VALUES = st.one_of(FEW, WIDE, CLUSTERED)


@settings(deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), max_size=150), st.booleans())
def test_order_equals_sorting_by_key_then_tau_then_row(rows: list[tuple[int, int]], has_tau: bool) -> None:
    key, tau = np.array(rows, np.int64).reshape(-1, 2).T
    found = sort_order(key, tau if has_tau else None)
    assert found.dtype == np.int32
    assert found.tolist() == reference.sort_order(key.tolist(), tau.tolist() if has_tau else None)


RANDOM = np.random.default_rng(7)
ROWS = 20_000
HASHED = RANDOM.integers(-(2**63), 2**63, ROWS)
SHUFFLED_TAU = RANDOM.integers(0, 10_000, ROWS)

SHAPES: dict[str, tuple[Int64s, Int64s | None]] = {
    "everything fits one word": (RANDOM.integers(0, ROWS, ROWS), SHUFFLED_TAU),
    "no tau": (RANDOM.integers(0, ROWS, ROWS), None),
    "wide keys, short ties": (HASHED[RANDOM.integers(0, ROWS, ROWS)], SHUFFLED_TAU),
    "wide keys, a few hot ones": (HASHED[RANDOM.integers(0, 5, ROWS)], SHUFFLED_TAU),
    "one key, wide tau": (np.zeros(ROWS, np.int64), HASHED),
    "keys that differ in low bits, and outliers": (
        np.concatenate((RANDOM.integers(0, 9, ROWS - 2), [-(2**63), 2**63 - 1])),
        HASHED,
    ),
    "tau ascends": (HASHED[RANDOM.integers(0, 5, ROWS)], np.sort(SHUFFLED_TAU)),
    "sorted runs": (np.concatenate([np.sort(part) for part in np.split(HASHED, 4)]), SHUFFLED_TAU),
    "all equal": (np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int64)),
    "falling": (np.arange(ROWS, 0, -1), None),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_order_of_many_rows_is_the_stable_one(shape: str) -> None:
    key, tau = SHAPES[shape]
    expected = np.argsort(key, kind="stable") if tau is None else np.lexsort((tau, key))
    np.testing.assert_array_equal(sort_order(key, tau), expected)


def test_both_means_against_ties_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    for name in ("_insert_ties", "_by_digits"):
        original = getattr(ordering, name)
        monkeypatch.setattr(ordering, name, lambda *args, n=name, f=original: (taken.append(n), f(*args))[1])
    sort_order(*SHAPES["wide keys, short ties"])
    sort_order(*SHAPES["wide keys, a few hot ones"])
    assert taken == ["_insert_ties", "_by_digits"]


def test_read_only_and_strided_input_is_ordered_too() -> None:
    table = np.stack((HASHED, SHUFFLED_TAU), axis=1)
    table.flags.writeable = False
    np.testing.assert_array_equal(sort_order(table[:, 0], table[:, 1]), np.lexsort((SHUFFLED_TAU, HASHED)))
