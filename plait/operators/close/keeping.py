"""Which stored buckets a plan can use, and which are kept although it cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.plan.model import Plan
from plait.plan.relations import source_of
from plait.plan.traversals import kept_stores
from plait.state.model import Bucket, Manifest
from plait.state.retention import retain


def windows_of(plan: Plan) -> dict[str, int | None]:
    """Return how long each store keeps its tuples, in microseconds; None for ever (unbounded streams and tables).

    Stores that keep nothing beyond their batch, because no step probes them, are left out.
    """
    kept = kept_stores(plan)
    return {store.id: None if store.is_table else store.window_us for store in plan.stores if store.id in kept}


def live_buckets(plan: Plan, manifest: Manifest | None) -> tuple[Bucket, ...]:
    """Return the stored buckets that tuples of the next batch can still match."""
    if manifest is None:
        return ()
    return retain(manifest.buckets, windows_of(plan), manifest.watermark_us).kept


def stored_buckets(plan: Plan, manifest: Manifest | None) -> tuple[Bucket, ...]:
    """Return all stored buckets of the plan's stores, also those that can match no tuple of the next batch: a query
    that is filled up with the past finds what earlier queries, with longer windows, have kept.
    """
    if manifest is None:
        return ()
    stores = windows_of(plan)
    return tuple(bucket for bucket in manifest.buckets if bucket.store in stores)


def resting_windows(plan: Plan, manifest: Manifest | None) -> dict[str, int | None]:
    """Return the windows of the stores that keep what they have although the plan has no use for it.

    A manifest that was written before there were windows in it says of no stream how long: then its rows stay.
    """
    if manifest is None:
        return {}
    kept, streams = windows_of(plan), {progress.source for progress in manifest.sources}
    known = {found.store: found.window_us for found in manifest.windows}
    filled = dict.fromkeys(bucket.store for bucket in manifest.buckets)
    unused = (store for store in filled if store not in kept)
    return {store: known.get(store) for store in unused if store in known or {store, source_of(store)} & streams}


def resting_buckets(plan: Plan, manifest: Manifest | None) -> tuple[Bucket, ...]:
    """Return the stored buckets that no tuple can match under this plan, and that are kept all the same."""
    if manifest is None:
        return ()
    return retain(manifest.buckets, resting_windows(plan, manifest), manifest.watermark_us).kept


def with_all_kept(plan: Plan, manifest: Manifest) -> Manifest:
    """Return the manifest with what a stream that keeps all has kept also in the stores that the plan begins to use,
    where every query has one of its own.

    All of its stores have the same rows while they are in use, and one that rests lacks the later ones. So each takes
    over the files of the one with the latest rows, which are never changed, unless it is that.
    """
    stores: dict[str, list[Bucket]] = {}
    for bucket in manifest.buckets:
        stores.setdefault(bucket.store, []).append(bucket)
    full = {found.store for found in manifest.windows if found.keeps_all and found.store in stores}
    planned, taken = {store.id for store in plan.stores}, dict[str, str]()
    for store in (each for each in plan.stores if each.id != each.source):
        same = {name for name in full if source_of(name) == store.source} | ({store.id} & stores.keys())
        ranks = {name: (_latest(stores[name]), name in full, name == store.id, name) for name in same}
        fullest = max(ranks, key=ranks.__getitem__, default=store.id)
        if fullest != store.id:
            taken[store.id] = fullest
    gone = {*taken, *(name for name in taken.values() if name not in planned)}
    kept = [bucket for bucket in manifest.buckets if bucket.store not in gone]
    kept += [replace(bucket, store=name) for name, other in taken.items() for bucket in stores[other]]
    return replace(manifest, buckets=tuple(kept))


def _latest(buckets: Iterable[Bucket]) -> int:
    return max(bucket.batch_max for bucket in buckets)


__all__ = ["live_buckets", "resting_buckets", "resting_windows", "stored_buckets", "windows_of", "with_all_kept"]
