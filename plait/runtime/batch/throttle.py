"""How much a batch takes of what is left to fill an intermediate store, so that batches stay about as long as before.

What batches take without that is followed, and a slice may last a share of their median: less where this batch is long
already, so that none comes to twice the median. The first rows are few; from what they took follows how many come next,
in the same batch still. Where a few rows find very many others, a batch can take less than was expected of it, and the
next ones take as much less.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

SHARE: Final = 0.5
"""A slice takes so much of the median of what batches take without one."""

MOST_ROWS: Final = 1_000_000
"""And never more rows than that."""

_FOLLOWED: Final = 15
_FIRST_ROWS: Final = 2_000
_GROWTH: Final = 4
_OF_WHAT_IS_LEFT: Final = 0.5
"""Rows come for so much of the time that is left: the next ones may take longer than the last."""
_WORTHWHILE: Final = 0.1
"""Of the time that a slice may take: for less no further rows are taken."""
_PATIENCE: Final = 4
"""After so many batches that were too long for a slice one takes the fewest rows all the same."""


@dataclass(slots=True)
class Throttle:
    """Says how many rows come next (`plait.operators.traversal.slicing.Allowance`). Tell it when a batch has `begun`
    and when it is `over`.
    """

    clock: Callable[[], float] = time.perf_counter
    most_rows: int = field(default_factory=lambda: MOST_ROWS)
    _lengths: deque[float] = field(default_factory=lambda: deque(maxlen=_FOLLOWED))
    _rows_per_s: float | None = None
    _began: float = 0.0
    _taken_rows: int = 0
    _taken_s: float = 0.0
    _last_rows: int = 0
    _without: int = 0

    def begun(self) -> None:
        """A batch begins."""
        self._began, self._taken_rows, self._taken_s = self.clock(), 0, 0.0

    def over(self) -> None:
        """The batch is over."""
        self._lengths.append(self._without_slice_s)

    @property
    def slice_s(self) -> float:
        """The seconds that a slice may take in a batch of the usual length."""
        usual = median(self._lengths) if self._lengths else self._without_slice_s
        return SHARE * usual

    @property
    def _without_slice_s(self) -> float:
        return max(self.clock() - self._began - self._taken_s, 0.0)

    def rows(self) -> int:
        """Return the most rows that may be taken next; 0: no more in this batch."""
        usual_s = self.slice_s
        left_s = min(usual_s - self._taken_s, usual_s * (1 + SHARE) / SHARE - (self.clock() - self._began))
        most = self.most_rows - self._taken_rows
        if most <= 0:
            return 0
        if left_s <= usual_s * _WORTHWHILE:
            return self._fewest(most)
        if self._rows_per_s is None:
            return min(_FIRST_ROWS, most)
        return max(min(int(self._rows_per_s * left_s * _OF_WHAT_IS_LEFT), self._last_rows * _GROWTH, most), 1)

    def _fewest(self, most: int) -> int:
        """Return how many rows are taken of a batch in which there is no time for it: now and then a few."""
        if self._taken_rows:
            return 0
        self._without += 1
        if self._without <= _PATIENCE:
            return 0
        return min(max(self._last_rows // _GROWTH, 1), most)

    def took(self, rows: int, took_s: float) -> None:
        """Note that so many rows were taken."""
        self._taken_rows += rows
        self._taken_s += took_s
        self._last_rows, self._without = max(rows, 1), 0
        self._rows_per_s = rows / max(took_s, 1e-6)

    def now(self) -> float:
        """Return the seconds of the clock."""
        return self.clock()


__all__ = ["MOST_ROWS", "SHARE", "Throttle"]
