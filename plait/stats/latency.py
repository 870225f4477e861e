"""How long rows wait from their arrival until what they complete can be seen, over the last batches.

What is held is bounded: some points a batch, of as many batches as the window has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

_BATCHES: Final = 100
_POINTS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """So many rows arrived at a time (milliseconds since 1970)."""

    at_ms: int
    rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Half of the rows of the last `batches` waited at most `p50_seconds`, 99 of a hundred at most `p99_seconds`; None
    where nothing is known. `unknown`: streams that sent rows of which nobody can tell when they arrived.
    """

    batches: int = 0
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    unknown: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        rounded = [None if each is None else round(each, 3) for each in (self.p50_seconds, self.p99_seconds)]
        return {
            "batches": self.batches,
            "p50_seconds": rounded[0],
            "p99_seconds": rounded[1],
            "unknown": list(self.unknown),
        }


@dataclass(slots=True)
class LatencyWindow:
    """The last batches. Rows that were there before `since_ms`, when somebody began to look, count from then on.

    >>> window = LatencyWindow(since_ms=0)
    >>> window.add([Arrived(at_ms=1000, rows=99), Arrived(at_ms=500, rows=1)], published_ms=1300)
    >>> window.latency().p50_seconds
    0.3
    """

    since_ms: int
    _batches: deque[Sequence[Arrived]] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    _unknown: deque[frozenset[str]] = field(default_factory=lambda: deque(maxlen=_BATCHES))

    def add(self, arrived: Iterable[Arrived], published_ms: int, unknown: Iterable[str] = ()) -> None:
        """Add a batch whose results could be seen at a time. A file of the future, by another clock, waited nothing."""
        self._unknown.append(frozenset(unknown))
        waited = [
            Arrived(at_ms=max(published_ms - max(each.at_ms, self.since_ms), 0), rows=each.rows)
            for each in arrived
            if each.rows > 0
        ]
        if waited:
            self._batches.append(_condensed(sorted(waited, key=lambda each: each.at_ms)))

    def latency(self) -> Latency:
        """Return what the window has come to."""
        waited = sorted((each for batch in self._batches for each in batch), key=lambda each: each.at_ms)
        return Latency(
            batches=len(self._batches),
            p50_seconds=_quantile(waited, 0.5),
            p99_seconds=_quantile(waited, 0.99),
            unknown=tuple(sorted(frozenset().union(*self._unknown))),
        )


def _condensed(waited: Sequence[Arrived]) -> Sequence[Arrived]:
    """Return few points for many: neighbours together, with the longest wait among them, so that no wait is
    understated.
    """
    if len(waited) <= _POINTS:
        return waited
    cuts = [number * len(waited) // _POINTS for number in range(_POINTS + 1)]
    groups = (waited[low:high] for low, high in pairwise(cuts))
    return [Arrived(at_ms=group[-1].at_ms, rows=sum(each.rows for each in group)) for group in groups]


def _quantile(waited: Sequence[Arrived], share: float) -> float | None:
    """Return the shortest wait, in seconds, that so large a share of the rows did not exceed."""
    wanted, seen = share * sum(each.rows for each in waited), 0.0
    for each in waited:
        seen += each.rows
        if seen >= wanted:
            return each.at_ms / 1000
    return waited[-1].at_ms / 1000 if waited else None


__all__ = ["Arrived", "Latency", "LatencyWindow"]
