"""How much more or less than its share of a join one relation begins.

|⋈ X| is one number, but each relation begins those results of which its tuple is the last. By itself a tuple of R finds
as many of S as are kept of it. But of what arrives in one batch the relation that ranks higher finds the other, not the
other way round. So where a window is a few batches long, one finds as much more, and the other as much less, as arrives
in half a batch: with windows of two batches one finds 1.7 times what the other does, whatever else is joined with them.
That follows from ranks, windows and batches, so it need not be measured. It is left aside for full histories: soon they
are many batches long, and what was counted while they were not was counted with another share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.query.masks import Mask

Ranks = Sequence[tuple[int, int]]
"""Of relations: within a batch one finds those of which the rank is lower (`Plan.rank`)."""

_SLIGHT: Final = 0.15
"""What is more or less by this share makes no order a better one: estimates are off by more (`set_sizes`). So it
matters for windows of up to three batches.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """How far back a stream is kept, in seconds of event time, and how much of that falls within a batch on average."""

    rank: tuple[int, int]
    reach_s: float
    within_s: float


class Beginnings:
    """What relations, as sets of one, begin beyond their share."""

    def __init__(self, extents: Sequence[Extent], ranks: Ranks, cardinality: Cardinality) -> None:
        self._times: dict[Mask, dict[Mask, float]] = {}
        self._paces: dict[Mask, float] = {}
        batch_s = cardinality.statistics.batch_s
        if not batch_s:
            return
        streams = []
        for position, (extent, rank) in enumerate(zip(extents, ranks, strict=True)):
            pace = 0.0 if extent.is_table else cardinality.pace(extent)
            if pace > 0:
                self._paces[1 << position] = pace
                if extent.window_us is not None:
                    streams.append((1 << position, _stream(rank, 1.0 / pace, batch_s)))
        for (start, own), (other, theirs) in permutations(streams, 2):
            if own.rank > theirs.rank:
                times = 1.0 + own.within_s / theirs.reach_s
            else:
                times = 1.0 - theirs.within_s / theirs.reach_s
            if abs(times - 1.0) > _SLIGHT:
                self._times.setdefault(start, {})[other] = times

    @property
    def origins(self) -> Mask:
        """The relations that begin more or less than their share of anything."""
        return sum(self._times)

    def of(self, start: Mask, mask: Mask) -> float:
        """Return how many times its share of a set a relation begins."""
        return math.prod(times for other, times in self._times.get(start, {}).items() if other & mask)

    def of_all(self, joined: Mask, unit: Mask) -> float:
        """Return how many times as many partners tuples of `joined` find on average, whichever relation began them."""
        begun = {start: pace * self.of(start, joined) for start, pace in self._paces.items() if start & joined}
        tuples = math.fsum(begun.values())
        return math.fsum(count * self.of(start, unit) for start, count in begun.items()) / tuples if tuples else 1.0


def _stream(rank: tuple[int, int], reach_s: float, batch_s: float) -> _Stream:
    """Of a batch that is longer than what is kept, only so much at its end is kept at once."""
    within_s = batch_s / 2 if reach_s >= batch_s else reach_s - reach_s**2 / (2 * batch_s)
    return _Stream(rank=rank, reach_s=reach_s, within_s=within_s)


__all__ = ["Beginnings", "Ranks"]
