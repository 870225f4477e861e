"""How many distinct values of a key a store holds as rows come and go (paper 003, equation 11: κ = κ_old + κ_in −
κ_exp).

Of all values those with small hashes are followed, up to a threshold that falls as there come to be more of them: of
the values that the store holds they are a random share, and each is held as long as the last row that had it. A batch
tells its smallest hashes only, so the threshold falls to the last of these where there are more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from plait.stats.sketch import SKETCH_SIZE

MOST_FOLLOWED: Final = 128
"""So many values of a key are followed: κ is right to about 9 %."""

MOST_FOLLOWED_IN_ALL: Final = 2_048
"""And so many of all keys together. What is followed is written down with every batch, and a look-up is priced by the
logarithm of κ: one that is off by a quarter makes it dearer by three hundredths.
"""

FEWEST_FOLLOWED: Final = 16
"""A key is followed by so many values or not at all."""

_RISING = 8
"""With fewer than this part of the most the threshold rises again; until all rows are newer than that, κ is too low."""
_ALL = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveKeys:
    """The values of `key` in a store that are followed: all with `hashes` below the `threshold`, in order, and the
    event time of the last row that had each.
    """

    store: str
    key: str
    threshold: int = _ALL
    hashes: tuple[int, ...] = ()
    seen_ms: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Return κ.

        >>> LiveKeys(store="r", key="k", threshold=1 << 63, hashes=(5, 7), seen_ms=(0, 0)).count
        4
        """
        return round(len(self.hashes) * _ALL / self.threshold)


def most_followed(keys: int) -> tuple[int, int]:
    """Return how many of so many keys are followed, and by how many values each.

    >>> most_followed(3), most_followed(40), most_followed(1_000)
    ((3, 128), (40, 51), (128, 16))
    """
    followed = min(keys, MOST_FOLLOWED_IN_ALL // FEWEST_FOLLOWED)
    return followed, min(MOST_FOLLOWED, MOST_FOLLOWED_IN_ALL // max(followed, 1))


def with_arrived(live: LiveKeys, sketch: tuple[int, ...], until_ms: int, most: int = MOST_FOLLOWED) -> LiveKeys:
    """Return it with the values of a batch, whose last event time is given. `sketch`: its smallest hashes, in order,
    and all of them if they are fewer than `SKETCH_SIZE`. At most `most` values are followed.
    """
    threshold = live.threshold if len(sketch) < SKETCH_SIZE else min(live.threshold, sketch[-1])
    seen = dict(zip(live.hashes, live.seen_ms, strict=True))
    for value in sketch:
        seen[value] = max(seen.get(value, until_ms), until_ms)
    followed = sorted(value for value in seen if value < threshold)
    if len(followed) > most:
        threshold = followed[most]
        followed = followed[:most]
    return replace(live, threshold=threshold, hashes=tuple(followed), seen_ms=tuple(seen[value] for value in followed))


def without_expired(live: LiveKeys, before_ms: int, most: int = MOST_FOLLOWED) -> LiveKeys:
    """Return it without the values that no row has had since then. `most`: as in `with_arrived`."""
    kept = [(value, seen) for value, seen in zip(live.hashes, live.seen_ms, strict=True) if seen >= before_ms]
    threshold = live.threshold if len(kept) >= most // _RISING else min(live.threshold * 2, _ALL)
    return replace(
        live,
        threshold=threshold,
        hashes=tuple(value for value, _ in kept),
        seen_ms=tuple(seen for _, seen in kept),
    )


def added_and_expired(before: LiveKeys, arrived: LiveKeys, after: LiveKeys) -> tuple[int, int]:
    """Return κ_in and κ_exp of a batch, of which `arrived` is what there was before anything expired. Their sums over
    all batches differ by κ.
    """
    risen, fallen = arrived.count - before.count, arrived.count - after.count
    return max(risen, 0) + max(-fallen, 0), max(fallen, 0) + max(-risen, 0)


__all__ = [
    "FEWEST_FOLLOWED",
    "MOST_FOLLOWED",
    "MOST_FOLLOWED_IN_ALL",
    "LiveKeys",
    "added_and_expired",
    "most_followed",
    "with_arrived",
    "without_expired",
]
