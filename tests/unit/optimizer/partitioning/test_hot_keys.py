"""Hot keys: every pair of rows meets once, loads are even, and nothing flutters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.hashing import key_group_of
from plait.optimizer.partitioning import Operator, Sampled, counted, search
from plait.optimizer.partitioning.hot_keys import (
    COOL,
    HOT,
    KeyShare,
    heavy_keys,
    splits_for,
)
from plait.optimizer.partitioning.objective import rows_processed
from plait.plan.key_groups import UNWANTED, Split, groups_with, wanted_groups

GROUPS = 64


def wanted(keys: np.ndarray, source: str, splits: tuple[Split, ...]) -> np.ndarray:
    return wanted_groups(keys, key_group_of(keys, GROUPS), np.arange(len(keys)), source, GROUPS, splits)


@st.composite
def sides(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw the keys of two sources, some of them hot on either side."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    hot = draw(st.lists(st.integers(0, 9), max_size=4))
    columns = [rng.integers(0, 10, draw(st.integers(1, 30))) for _ in range(2)]
    for key in hot:
        column = columns[int(rng.integers(2))]
        column[rng.random(len(column)) < 0.5] = key
    return columns[0], columns[1]


@given(keys=sides(), partitions=st.integers(1, 9), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_each_pair_of_rows_of_one_key_meets_in_one_partition_under_any_table(
    keys: tuple[np.ndarray, np.ndarray], partitions: int, seed: int
) -> None:
    left, right = keys
    splits = splits_for(heavy_keys({"r": left, "s": right}, 0.01), partitions)
    table = np.random.default_rng(seed).integers(0, partitions, groups_with(splits, GROUPS))
    met: Counter[tuple[int, int]] = Counter()
    sent = [wanted(keys[side], "rs"[side], splits) for side in (0, 1)]
    for partition in range(partitions):
        here = [[_groups_in(row, table, partition) for row in rows] for rows in sent]
        for one, mine in enumerate(here[0]):
            for other, theirs in enumerate(here[1]):
                # Within a partition rows are joined by key and key group: a part is one.
                met[one, other] += len(mine & theirs) if left[one] == right[other] else 0
    equal = {(one, other) for one in range(len(left)) for other in range(len(right)) if left[one] == right[other]}
    assert {pair: times for pair, times in met.items() if times} == dict.fromkeys(equal, 1)


def _groups_in(row: np.ndarray, table: np.ndarray, partition: int) -> set[int]:
    return {int(group) for group in row if group != UNWANTED and table[group] == partition}


@given(keys=sides(), partitions=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_only_the_other_side_of_a_hot_key_is_sent_more_than_once(
    keys: tuple[np.ndarray, np.ndarray], partitions: int
) -> None:
    splits = splits_for(heavy_keys({"r": keys[0], "s": keys[1]}, 0.01), partitions)
    parts = {(split.key, split.spread): split.parts for split in splits}
    for source, column in zip("rs", keys, strict=True):
        other = "s" if source == "r" else "r"
        copies = (wanted(column, source, splits) != UNWANTED).sum(axis=1)
        assert copies.tolist() == [parts.get((int(key), other), 1) for key in column]


def test_parts_of_different_hot_keys_are_key_groups_of_their_own() -> None:
    splits = (Split(key=3, spread="r", parts=2), Split(key=5, spread="s", parts=3))
    keys = np.array([3, 3, 5, 4])
    assert groups_with(splits, GROUPS) == GROUPS + 5
    assert wanted(keys[:2], "r", splits)[:, 0].tolist() == [GROUPS, GROUPS + 1]
    assert wanted(keys[2:3], "r", splits).tolist() == [[GROUPS + 2, GROUPS + 3, GROUPS + 4]]
    assert wanted(keys[3:], "r", splits)[0, 0] == key_group_of(keys[3:], GROUPS)[0]


@given(share=st.floats(0.0, 1.0), partitions=st.integers(2, 64), before=st.booleans())
def test_a_key_is_split_when_hot_and_merged_only_when_cool(share: float, partitions: int, before: bool) -> None:
    known = (Split(key=1, spread="r", parts=2),) if before else ()
    found = splits_for([KeyShare(key=1, shares=(("r", share), ("s", 0.0)))], partitions, known)
    assert bool(found) == (share * partitions >= (COOL if before else HOT))
    assert all(2 <= split.parts <= partitions and split.spread == "r" for split in found)


def test_a_split_key_keeps_its_parts_and_its_side_while_they_serve() -> None:
    known = (Split(key=1, spread="r", parts=8),)
    shares = [KeyShare(key=1, shares=(("r", 0.1), ("s", 0.2)))]
    assert splits_for(shares, 8, known) == known
    assert splits_for(shares, 4, known) == (Split(key=1, spread="r", parts=4),)
    assert splits_for(shares, 16, known) == (Split(key=1, spread="r", parts=13),)


def zipf_keys(exponent: float, rows: int = 50_000, keys: int = 5_000) -> np.ndarray:
    weights = np.arange(1.0, keys + 1) ** -exponent
    return np.random.default_rng(5).choice(keys, rows, p=weights / weights.sum())


def balance(exponent: float, partitions: int, *, split: bool) -> float:
    """Return the largest partition over the mean, tables and splits being made of a tenth of the rows."""
    keys = zipf_keys(exponent)
    seen = keys[::10]
    splits = splits_for(heavy_keys({"r": seen}, HOT / partitions), partitions) if split else ()
    operator = Operator(name="q", sources=("r",), groups=groups_with(splits, GROUPS))

    def traffic(rows: np.ndarray):  # type: ignore[no-untyped-def]
        key_groups = wanted(rows, "r", splits)
        sample = Sampled(operators=("q",) * key_groups.shape[1], key_groups=key_groups)
        return counted([operator], {"r": sample}, {"r": np.ones(partitions)}, processing=float(partitions))

    processed = rows_processed(traffic(keys), search(traffic(seen), 0.05).choice)[0]
    return float(processed.max() / processed.mean())


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("partitions", [4, 16])
def test_the_largest_partition_has_at_most_one_and_a_half_times_the_mean(exponent: float, partitions: int) -> None:
    assert balance(exponent, partitions, split=True) <= 1.5


def test_tables_alone_cannot_do_it() -> None:
    assert balance(2.0, 16, split=False) > 5


def test_twice_as_many_key_groups_halve_every_one_of_them() -> None:
    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 10_000)
    assert (key_group_of(keys, 128) // 2 == key_group_of(keys, 64)).all()
    counts = np.bincount(key_group_of(keys, 64), minlength=64)
    assert counts.min() > 100
    with pytest.raises(ValueError, match="0 key groups"):
        key_group_of(keys, 0)
