"""Keys that take more rows than a partition should: found, split over several partitions, and merged when they cool.

A key group is the least that tables can move, and a key the least that a key group can hold. A key with a tenth of all
rows fills one of twenty partitions twice over, whatever the tables say. So a hot key's rows of one source are
**spread** over several parts, row by row, and each row of the other source goes to every part: each pair of rows still
meets once, namely where the spread row is. Parts are key groups of their own, so tables place them like others.

What is spread is the source in which the key has more rows, since the other's are sent as often as there are parts. An
aggregate has one source; what its parts come to is merged when the group is closed.

A key that is split stays so until it is clearly cool: what is stored lies where it was put, and to split and merge in
turns would leave it in as many layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plait.errors import OptionError
from plait.optimizer.linear.linear_program import Ints
from plait.plan.key_groups import Split

HOT = 0.5
"""A key is hot from this share of an even partition on."""

COOL = 0.25
"""A split key is merged below this share of an even partition."""

PART = 0.25
"""A part takes at most this share of an even partition, so that parts can be evenly placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShare:
    """The rows that a key takes of each source of an operator, as shares of the rows of that source."""

    key: int
    shares: tuple[tuple[str, float], ...]

    @property
    def largest(self) -> tuple[str, float]:
        """The source of which it takes most, and how much; of equal ones the first by name."""
        return min(self.shares, key=lambda each: (-each[1], each[0]))


def heavy_keys(samples: Mapping[str, Ints], least: float) -> tuple[KeyShare, ...]:
    """Return the keys that take at least a share of the sampled rows of some source, by key."""
    taken: dict[int, dict[str, float]] = {}
    for source, keys in samples.items():
        distinct, times = np.unique(keys, return_counts=True)
        for key, count in zip(distinct.tolist(), times.tolist(), strict=True):
            taken.setdefault(key, {})[source] = count / len(keys)
    return tuple(
        KeyShare(key=key, shares=tuple(sorted(shares.items())))
        for key, shares in sorted(taken.items())
        if max(shares.values()) >= least
    )


def splits_for(shares: Iterable[KeyShare], partitions: int, before: Sequence[Split] = ()) -> tuple[Split, ...]:
    """Return the keys to split, by key, given those that are split already.

    A key of share x fills x·P even partitions. A split key keeps its parts and its source while these still serve: as
    few changes as can be.

    >>> found = splits_for([KeyShare(key=7, shares=(("r", 0.5),))], partitions=4)
    >>> found
    (Split(key=7, spread='r', parts=4),)
    >>> splits_for([KeyShare(key=7, shares=(("r", 0.1),))], partitions=4, before=found)  # 0.4 of a partition
    (Split(key=7, spread='r', parts=4),)
    >>> splits_for([KeyShare(key=7, shares=(("r", 0.06),))], partitions=4, before=found)
    ()
    """
    if partitions < 1:
        raise OptionError(f"expected at least one partition, found {partitions}")
    known = {split.key: split for split in before}
    found = []
    for each in shares:
        source, share = each.largest
        filled, split = share * partitions, known.get(each.key)
        if partitions == 1 or filled < (HOT if split is None else COOL):
            continue
        parts = min(partitions, max(2, math.ceil(filled / PART)))
        if split is None or split.parts < parts or split.parts > partitions:
            split = Split(key=each.key, spread=source if split is None else split.spread, parts=parts)
        found.append(split)
    return tuple(sorted(found, key=lambda split: split.key))
