"""κ is followed as rows come and go, within the error of its sample, and its changes add up to it."""

from __future__ import annotations

import numpy as np
import pytest

from plait.kernels.sketch import kmv
from plait.stats.live_keys import (
    FEWEST_FOLLOWED,
    MOST_FOLLOWED,
    MOST_FOLLOWED_IN_ALL,
    LiveKeys,
    added_and_expired,
    most_followed,
    with_arrived,
    without_expired,
)

EMPTY = LiveKeys(store="r", key="k")


def sketch(*keys: int) -> tuple[int, ...]:
    return tuple(kmv(np.array(keys, np.int64)).tolist())


def test_few_values_are_counted_exactly_and_each_is_held_as_long_as_the_last_row_that_had_it() -> None:
    live = with_arrived(EMPTY, sketch(1, 2, 3), until_ms=10)
    live = with_arrived(live, sketch(3, 4), until_ms=20)
    assert live.count == 4
    assert without_expired(live, 11).count == 2
    assert without_expired(live, 21).count == 0


@pytest.mark.parametrize(("keys", "window"), [(100, 5), (3_000, 5), (50_000, 8)])
def test_the_count_of_a_window_is_right_within_the_error_of_the_sample(keys: int, window: int) -> None:
    random = np.random.default_rng(keys)
    live, batches, total = EMPTY, list[np.ndarray](), 0
    for batch in range(20):
        drawn = random.integers(batch * keys // 10, batch * keys // 10 + keys, 2_000)
        batches.append(drawn)
        arrived = with_arrived(live, sketch(*drawn.tolist()), until_ms=batch)
        after = without_expired(arrived, batch - window + 1)
        added, expired = added_and_expired(live, arrived, after)
        live, total = after, total + added - expired
        assert total == live.count
        assert added >= 0
        assert expired >= 0
        assert len(live.hashes) <= MOST_FOLLOWED
        real = len(np.unique(np.concatenate(batches[-window:])))
        assert live.count == pytest.approx(real, rel=0.4)


def test_of_many_keys_each_is_followed_by_few_values_which_tell_how_large_it_is() -> None:
    for keys in (1, 16, 17, 100, 128, 129, 5_000):
        followed, most = most_followed(keys)
        assert followed * most <= MOST_FOLLOWED_IN_ALL
        assert followed <= keys
        assert FEWEST_FOLLOWED <= most <= MOST_FOLLOWED
    random, live, off = np.random.default_rng(1), EMPTY, list[float]()
    for batch in range(60):
        drawn = random.integers(0, 3_000, 2_000)
        live = with_arrived(live, sketch(*drawn.tolist()), until_ms=batch, most=FEWEST_FOLLOWED)
        live = without_expired(live, batch - 4, FEWEST_FOLLOWED)
        assert len(live.hashes) <= FEWEST_FOLLOWED
        off.append(abs(np.log2(max(live.count, 1) / 2_900)))
    assert np.median(off[5:]) < 0.6  # a look-up is priced by the logarithm


def test_a_store_that_becomes_smaller_is_counted_right_again() -> None:
    live = with_arrived(EMPTY, sketch(*range(100_000)), until_ms=0)
    for batch in range(1, 30):
        live = without_expired(with_arrived(live, sketch(*range(20)), until_ms=batch), batch)
    assert live.count == pytest.approx(20, abs=5)
