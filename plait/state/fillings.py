"""How far intermediate stores are filled that come (`Filling`), and which buckets may be merged meanwhile.

What arrived before a store began to come and what arrived since stay apart, because a slice of the former must not meet
the latter. A bucket of which a slice has been taken stays as it is; others that are to be taken are merged only with
such, and what they become is to be taken in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace

from plait.state.compaction import Merge
from plait.state.model import Bucket, Filling, Left


def left_rows(fillings: Iterable[Filling], buckets: Iterable[Bucket]) -> Mapping[str, int]:
    """Return how many rows are left to take, by store."""
    rows = {bucket.path: bucket.rows for bucket in buckets}
    return {each.store: sum(rows.get(left.path, left.row) - left.row for left in each.left) for each in fillings}


def fence(fillings: Iterable[Filling]) -> Callable[[Bucket], Hashable]:
    """Return what must be the same of buckets that are merged."""
    under_way = [(each.since, {left.path: left for left in each.left}) for each in fillings if each.left]

    def side(bucket: Bucket) -> Hashable:
        return tuple((bucket.batch_max < since, _state(left.get(bucket.path))) for since, left in under_way)

    return side


def _state(left: Left | None) -> str:
    """Return how far a bucket has been taken: "" completely, its own path if in part."""
    if left is None:
        return ""
    return "all" if left.row == 0 else left.path


def may_merge(merge: Merge, fillings: Iterable[Filling]) -> bool:
    """Tell whether a merge that was begun earlier may still take effect."""
    return len(set(map(fence(fillings), merge.buckets))) == 1


def after_merge(fillings: Iterable[Filling], merge: Merge, bucket: Bucket) -> tuple[Filling, ...]:
    """Return what is left to take once a bucket has come in the place of those it was made from."""
    gone = {each.path for each in merge.buckets}

    def after(filling: Filling) -> Filling:
        if gone.isdisjoint(left.path for left in filling.left):
            return filling
        kept = tuple(left for left in filling.left if left.path not in gone)
        return replace(filling, left=(*kept, Left(path=bucket.path)))

    return tuple(map(after, fillings))


__all__ = ["after_merge", "fence", "left_rows", "may_merge"]
