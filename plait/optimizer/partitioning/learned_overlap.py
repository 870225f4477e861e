"""Overlap learned from the pairs that were counted (paper 001, section IV, "ML").

With n operators of G key groups there are (n·G)² pairs, and every one of them changes over time. So pairs are counted
in turns, and a random forest says the others: of (operator, key group, operator, key group, time) it predicts the share
of the first group's rows that are in the second. How wrong it is, is measured on counted pairs that it was not taught.

scikit-learn does this; it is installed with ``pip install 'plait[overlap]'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.errors import OptionError
from plait.optimizer.linear.linear_program import Floats, Ints

MOST_PAIRS = 1 << 20
"""Up to so many pairs of key groups are counted; beyond, they are predicted."""

SPLITS = 250
"""Of each tree: from here on the paper's error is below 10 %."""

_TREES = 20
_HELD_OUT = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPairs:
    """Counted pairs of key groups: int64[n, 4] of (operator, key group, operator, key group), when, and the `share` of
    the first group's rows that the second has too; `weight` are the first group's rows.
    """

    pairs: Ints
    time: Floats
    share: Floats
    weight: Floats

    @property
    def features(self) -> Floats:
        """What is learned from, float64[n, 5]."""
        return np.column_stack((self.pairs, self.time)).astype(np.float64)

    def of(self, which: Any) -> CountedPairs:
        """Return some of them."""
        return CountedPairs(
            pairs=self.pairs[which], time=self.time[which], share=self.share[which], weight=self.weight[which]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedOverlap:
    """A forest, and its error: rows it takes for shared or not by mistake, by the rows that are shared."""

    forest: Any
    error: float

    def share(self, pairs: Ints, time: float) -> Floats:
        """Predict the shares of pairs at some time."""
        features = np.column_stack((pairs, np.full(len(pairs), time))).astype(np.float64)
        predicted: Floats = np.clip(self.forest.predict(features), 0.0, 1.0)
        return predicted


def learn(counted: CountedPairs, splits: int = SPLITS, seed: int = 1) -> LearnedOverlap:
    """Learn from counted pairs, of which a fifth is kept back to measure the error. Raises OptionError without
    scikit-learn, or if there are fewer than ten.
    """
    if len(counted.share) < 10:
        raise OptionError(f"expected at least ten counted pairs to learn from, found {len(counted.share)}")
    order = np.random.default_rng(seed).permutation(len(counted.share))
    held = round(_HELD_OUT * len(order))
    taught, kept = counted.of(order[held:]), counted.of(order[:held])
    forest = _forest()(n_estimators=_TREES, max_leaf_nodes=splits + 1, random_state=seed, n_jobs=1, max_features=1.0)
    forest.fit(taught.features, taught.share, sample_weight=taught.weight)
    return LearnedOverlap(forest=forest, error=error_of(np.clip(forest.predict(kept.features), 0.0, 1.0), kept))


def error_of(predicted: Floats, counted: CountedPairs) -> float:
    """Return the rows by which a prediction is off, by the rows that are shared."""
    shared = float((counted.share * counted.weight).sum())
    off = float((np.abs(predicted - counted.share) * counted.weight).sum())
    return off / shared if shared else 0.0


def _forest() -> Any:
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError as error:
        raise OptionError(
            "learning overlap needs scikit-learn, which is not installed: pip install 'plait[overlap]'"
        ) from error
    return RandomForestRegressor
