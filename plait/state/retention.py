"""Which buckets are still needed: a bucket expires as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plait.state.model import Bucket


def is_expired(bucket: Bucket, window_us: int | None, watermark_us: int | None) -> bool:
    """Tell whether no tuple at or after `watermark_us` can join any row of `bucket`: ``τ_max + W < watermark``, and
    where some part of every row has left its own window before that.

    Tuples older than the watermark are late and not joined. Rows without τ, an unbounded window (None) and an undefined
    watermark (None) never expire.
    """
    if watermark_us is None:
        return False
    if bucket.until_us is not None and bucket.until_us < watermark_us:
        return True
    if bucket.tau_max is None or window_us is None:
        return False
    return bucket.tau_max + window_us < watermark_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What became of some buckets, each group in order. `kept`: still needed. `expired`: the watermark has passed their
    last row and its window, so all that could come of them has. `abandoned`: of stores that nobody keeps.
    """

    kept: tuple[Bucket, ...]
    expired: tuple[Bucket, ...]
    abandoned: tuple[Bucket, ...]


def retain(buckets: Iterable[Bucket], windows: Mapping[str, int | None], watermark_us: int | None) -> Retained:
    """Tell which buckets are still needed. `windows`: largest window (µs) by store; a store that is not in it is
    gone.
    """
    kept: list[Bucket] = []
    expired: list[Bucket] = []
    abandoned: list[Bucket] = []
    for bucket in buckets:
        if bucket.store not in windows:
            abandoned.append(bucket)
        elif is_expired(bucket, windows[bucket.store], watermark_us):
            expired.append(bucket)
        else:
            kept.append(bucket)
    return Retained(kept=tuple(kept), expired=tuple(expired), abandoned=tuple(abandoned))
