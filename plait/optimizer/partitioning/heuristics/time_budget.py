"""Heuristic 3: set a time budget.

It is one for all that the optimizer does; what is solved on the way gets equal shares of what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class TimeBudget:
    """So many seconds from now; without a limit a share is all there may ever be."""

    def __init__(self, seconds: float, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self.deadline = clock() + seconds

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.deadline - self._clock())

    def share(self, of: int) -> float:
        """Return the seconds of one of so many that are still to come."""
        return self.left / max(of, 1)
