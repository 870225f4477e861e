"""Overlap learned from counted pairs, and how wrong it is on others."""

from __future__ import annotations

import numpy as np
import pytest

from plait.errors import OptionError
from plait.optimizer.partitioning.learned_overlap import CountedPairs, error_of, learn

pytest.importorskip("sklearn")


def counted_pairs(pairs: int = 6_000, *, drift: bool, seed: int = 3) -> CountedPairs:
    """Return pairs of 8 operators of 16 key groups, whose sizes differ and, with drift, change over time.

    A tenth of the share of every pair is noise, as of a sample.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet(np.full(16, 4.0), 8)
    slope = rng.uniform(-0.5, 0.5, (8, 16)) if drift else np.zeros((8, 16))
    drawn = rng.integers(0, (8, 16, 8, 16), (pairs, 4))
    time = rng.uniform(0.0, 1.0, pairs)
    share = sizes[drawn[:, 2], drawn[:, 3]] * (1 + slope[drawn[:, 2], drawn[:, 3]] * time)
    noisy = np.clip(share * rng.normal(1.0, 0.02, pairs), 0.0, 1.0)
    return CountedPairs(pairs=drawn, time=time, share=noisy, weight=sizes[drawn[:, 0], drawn[:, 1]])


@pytest.mark.parametrize("drift", [False, True])
def test_after_250_splits_less_than_a_tenth_of_held_out_pairs_shares_is_wrong(drift: bool) -> None:
    learned = learn(counted_pairs(drift=drift))
    assert learned.error < 0.1
    other = counted_pairs(500, drift=drift, seed=3)
    assert error_of(learned.forest.predict(other.features), other) < 0.1
    assert learn(counted_pairs(drift=drift), splits=10).error > learned.error


def test_shares_are_predicted_for_a_time() -> None:
    counted = counted_pairs(drift=True)
    learned = learn(counted)
    assert ((learned.share(counted.pairs[:50], 0.5) >= 0) & (learned.share(counted.pairs[:50], 0.5) <= 1)).all()


def test_too_few_pairs_to_learn_from_are_refused() -> None:
    with pytest.raises(OptionError, match="at least ten counted pairs"):
        learn(counted_pairs(9, drift=False))
