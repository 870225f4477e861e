"""How many requests an address may make: a bucket that fills at a steady rate and is emptied by requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_ADDRESSES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many `a_second` in the long run, and so many `at_once` after a pause."""

    a_second: float
    at_once: int


class Allowance:
    """What is left of a rate for each address, of which the last ten thousand are remembered.

    >>> now = iter([0.0, 0.0, 0.0, 0.5])
    >>> allowance = Allowance(Rate(a_second=2, at_once=2), clock=lambda: next(now))
    >>> [allowance.take("::1") for _ in range(4)]
    [True, True, False, True]
    """

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Take one; tell whether there was one left."""
        left = self._now(address)
        is_left = left >= 1
        self._left[address] = (left - 1 if is_left else left, self._since)
        self._left.move_to_end(address)
        if len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)
        return is_left

    def is_left(self, address: str) -> bool:
        """Tell whether there is one left, without taking it."""
        return self._now(address) >= 1

    def _now(self, address: str) -> float:
        self._since = self._clock()
        left, since = self._left.get(address, (float(self._rate.at_once), self._since))
        return min(float(self._rate.at_once), left + (self._since - since) * self._rate.a_second)


__all__ = ["Allowance", "Rate"]
