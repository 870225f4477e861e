"""Merge small buckets into larger ones.

Without merging every batch adds a bucket to each store partition, and a probe looks into all of them. Buckets of one
(store, partition, layout) are merged in tiers of size, `fan_in` neighbours at a time, so each row is rewritten O(log
n) times and O(log n) buckets stay; what the limits on a merged bucket's rows, bytes and time span hold apart stays
apart.

The span limit keeps expiry tight: a bucket expires with its youngest row, so its oldest row outstays its time by the
bucket's span, at most a quarter of the window. Neighbours are neighbours in batch order, so a merged bucket covers an
interval of batches that no other overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from itertools import groupby

import pyarrow as pa

from plait.state.buckets import COMBINED, OpenBucket, open_bucket, rows_of_all, write_bucket
from plait.state.model import Bucket, Layout
from plait.state.storage import Storage

_SMALLEST_TIER_ROWS = 1024
_SPAN_SHARE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Buckets of one store and partition, read under one layout, in batch order, to become one."""

    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    rows: int
    bytes: int
    span_us: int | None

    def allow(self, buckets: tuple[Bucket, ...]) -> bool:
        """Tell whether these may become one bucket."""
        if sum(bucket.rows for bucket in buckets) > self.rows or sum(bucket.bytes for bucket in buckets) > self.bytes:
            return False
        ends = [bucket.tau_max for bucket in buckets if bucket.tau_max is not None]
        starts = [bucket.tau_min for bucket in buckets if bucket.tau_min is not None]
        return self.span_us is None or not ends or max(ends) - min(starts) <= self.span_us


def choose_merges(
    buckets: Iterable[Bucket],
    windows: Mapping[str, int | None],
    *,
    max_rows: int = 4_000_000,
    fan_in: int = 4,
    max_bytes: int = 1 << 29,
    fence: Callable[[Bucket], Hashable] = lambda _: None,
    layout_of: Callable[[Bucket], Layout] = lambda bucket: bucket.layout,
) -> tuple[Merge, ...]:
    """Choose disjoint merges: at most one per (store, partition, layout), cheapest tier first.

    `windows`: largest window (µs) by store, None for unbounded. Stores not in it are left alone. `fence`: buckets of
    which it says different things stay apart. `layout_of`: what a bucket is read under.
    """
    merges = []
    for group in _groups(buckets, fence, layout_of):
        store = group[0].store
        if store not in windows or len(group) < fan_in:
            continue
        window_us = windows[store]
        limits = _Limits(
            rows=max_rows, bytes=max_bytes, span_us=None if window_us is None else window_us // _SPAN_SHARE
        )
        chosen = _full_tier(group, limits, fan_in) or _overflow(group, limits, fan_in)
        if chosen:
            merges.append(Merge(buckets=chosen))
    return tuple(merges)


def merge_buckets(
    storage: Storage,
    merge: Merge,
    indexes: tuple[tuple[str, ...], ...],
    name: str,
    opened_as: Callable[[Bucket], OpenBucket] | None = None,
) -> Bucket:
    """Write one bucket with exactly the rows of the merged ones. Memory is bounded by the rows `choose_merges` allows
    together. `opened_as`: opens them all under one layout, if they do not have one.

    `indexes` are those the store has now. Buckets written for earlier queries may lack keys of some: nothing that needs
    these keys looks into them, so they go without these indexes.
    """
    opened = [open_bucket(storage, bucket) if opened_as is None else opened_as(bucket) for bucket in merge.buckets]
    tables = [pa.Table.from_batches([each.batch]) for each in opened]
    tables = [table.drop_columns(COMBINED) if COMBINED in table.column_names else table for table in tables]
    first, layout = merge.buckets[0], opened[0].bucket.layout
    keys = frozenset(layout.keys)
    merged = write_bucket(
        storage,
        store=first.store,
        partition=first.partition,
        name=name,
        table=rows_of_all(tables),
        layout=layout,
        indexes=tuple(index for index in indexes if keys.issuperset(index)),
        batch_min=min(bucket.batch_min for bucket in merge.buckets),
        batch_max=max(bucket.batch_max for bucket in merge.buckets),
        partition_by=first.partition_by,
        parallelism=first.parallelism,
    )
    merged = with_changes(merged, generation=first.generation, is_copy=first.is_copy)
    for each in opened:
        each.require_untouched()
    ends = [bucket.until_us for bucket in merge.buckets if bucket.until_us is not None]
    return with_changes(merged, until_us=max(ends) if len(ends) == len(merge.buckets) else None)


def replace(buckets: Iterable[Bucket], merge: Merge, merged: Bucket) -> tuple[Bucket, ...]:
    """Return `buckets` with `merged` in the place of the first of those it was made from.

    If one of these is gone (it expired while the merge ran in the background) the merge comes too late and nothing
    changes.
    """
    old, live = set(merge.buckets), tuple(buckets)
    if not old <= set(live):
        return live
    kept = []
    for bucket in live:
        if bucket == merge.buckets[0]:
            kept.append(merged)
        elif bucket not in old:
            kept.append(bucket)
    return tuple(kept)


def _groups(
    buckets: Iterable[Bucket], fence: Callable[[Bucket], Hashable], layout_of: Callable[[Bucket], Layout]
) -> Iterator[tuple[Bucket, ...]]:
    """Yield the buckets that may be merged with each other, in batch order, groups in order of first appearance."""
    groups: dict[Hashable, list[Bucket]] = {}
    for bucket in buckets:
        place = bucket.store, bucket.partition, bucket.partition_by, bucket.parallelism
        kind = (*place, bucket.generation, bucket.is_copy, layout_of(bucket), fence(bucket))
        groups.setdefault(kind, []).append(bucket)
    for group in groups.values():
        yield tuple(sorted(group, key=lambda bucket: (bucket.batch_min, bucket.batch_max, bucket.path)))


def _tier(bucket: Bucket, fan_in: int) -> int:
    """Return the size class of a bucket: 0 up to `_SMALLEST_TIER_ROWS` rows, one more for each factor of `fan_in`."""
    tier, rows = 0, _SMALLEST_TIER_ROWS
    while bucket.rows > rows:
        tier, rows = tier + 1, rows * fan_in
    return tier


def _full_tier(group: tuple[Bucket, ...], limits: _Limits, fan_in: int) -> tuple[Bucket, ...]:
    """Return `fan_in` buckets of one tier with nothing larger between them (and what smaller lies between); lowest
    tier, oldest first.
    """
    tiers = [_tier(bucket, fan_in) for bucket in group]
    for tier in sorted(set(tiers)):
        places = range(len(group))
        for is_within, run in groupby(places, key=lambda place: tiers[place] <= tier):
            exact = [place for place in run if is_within and tiers[place] == tier]
            for first, last in zip(exact, exact[fan_in - 1 :], strict=False):
                chosen = group[first : last + 1]
                if limits.allow(chosen):
                    return chosen
    return ()


def _overflow(group: tuple[Bucket, ...], limits: _Limits, fan_in: int) -> tuple[Bucket, ...]:
    """Return the `fan_in` neighbours with the fewest rows if there are more buckets than full tiers explain.

    Arrivals that keep alternating between small and large leave small buckets stuck between large ones.
    """
    tiers = 1 + max(_tier(bucket, fan_in) for bucket in group)
    if len(group) <= tiers * fan_in:
        return ()
    runs = (group[first : first + fan_in] for first in range(len(group) - fan_in + 1))
    allowed = (run for run in runs if limits.allow(run))
    return min(allowed, key=lambda run: sum(bucket.rows for bucket in run), default=())
