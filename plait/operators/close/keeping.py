"""Which stored buckets a plan can use, and which are kept although it cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from plait.plan.key_groups import Generation
from plait.plan.model import Plan
from plait.plan.relations import source_of
from plait.plan.traversals import kept_stores
from plait.state.model import Bucket, Manifest, StoreWindow
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
    return retain(manifest.buckets, windows_of(plan), manifest.oldest_us).kept


def resting_windows(plan: Plan, manifest: Manifest | None) -> dict[str, int | None]:
    """Return the windows of the stores that keep what they have although the plan has no use for it.

    A manifest that was written before there were windows in it says of no stream how long: then its rows stay.
    """
    if manifest is None:
        return {}
    kept, streams = windows_of(plan), {progress.source for progress in manifest.sources}
    known = {window.store: window.window_us for window in manifest.windows}
    filled = dict.fromkeys(bucket.store for bucket in manifest.buckets)
    unused = (store for store in filled if store not in kept)
    return {store: known.get(store) for store in unused if store in known or {store, source_of(store)} & streams}


def resting_buckets(plan: Plan, manifest: Manifest | None) -> tuple[Bucket, ...]:
    """Return the stored buckets that no tuple can match under this plan, and that are kept all the same."""
    if manifest is None:
        return ()
    return retain(manifest.buckets, resting_windows(plan, manifest), manifest.oldest_us).kept


def copies_kept(
    copies: Iterable[Bucket], kept: Iterable[Bucket], windows: Mapping[str, int | None], oldest_us: int | None
) -> tuple[Bucket, ...]:
    """Return the copies that tuples can still match: of rows whose homes are among the buckets that are `kept`."""
    at_home = {(bucket.store, bucket.generation) for bucket in kept}
    return tuple(copy for copy in retain(copies, windows, oldest_us).kept if (copy.store, copy.generation) in at_home)


def generations_after(
    before: Iterable[Generation], in_force: Generation | None, kept: Iterable[Bucket]
) -> tuple[Generation, ...]:
    """Return the generations that rows are stored under, and the one in force, by their first batches."""
    used = {bucket.generation for bucket in kept}
    known = {each.first_batch: each for each in before if each.first_batch in used}
    if in_force is not None:
        known[in_force.first_batch] = in_force
    return tuple(known[first] for first in sorted(known))


def without_tables(manifest: Manifest, stores: Collection[str]) -> Manifest:
    """Return the manifest as if no table had placed the rows of these stores: whoever looks for them asks for all that
    are at home, as for rows that were stored under another partitioning.
    """
    return replace(
        manifest,
        buckets=tuple(replace(each, generation=None) if each.store in stores else each for each in manifest.buckets),
        copies=tuple(each for each in manifest.copies if each.store not in stores),
    )


def with_all_kept(plan: Plan, manifest: Manifest) -> Manifest:
    """Return the manifest with what a stream that keeps all has kept also in the stores that the plan begins to use,
    where every query has one of its own.

    All of its stores have the same rows while they are in use, and one that rests lacks the later ones. So each takes
    over the files of the one with the latest rows, which are never changed, unless it is that. What it has itself it
    gives up only for one that has all of it: one with a shorter window, or of a time when the stream did not keep
    all, adds just what arrived later.
    """
    stores: dict[str, list[Bucket]] = {}
    for bucket in manifest.buckets:
        stores.setdefault(bucket.store, []).append(bucket)
    known = {window.store: window for window in manifest.windows}
    planned, gone, added = {store.id for store in plan.stores}, set[str](), list[Bucket]()
    for store in (each for each in plan.stores if each.id != each.source):
        other = _fullest(store.id, store.source, stores, known)
        if other == store.id:
            continue
        own = stores.get(store.id, [])
        if _covers(known.get(other), known.get(store.id), own):
            gone |= {store.id} if other in planned else {store.id, other}
            taken = stores[other]
            known[store.id] = replace(known[other], store=store.id)
        else:
            # A merged file may hold rows of both times; then those of the later one cannot be had.
            taken = [bucket for bucket in stores[other] if bucket.batch_min > _latest(own)]
            known = {name: window for name, window in known.items() if name != store.id}
        added += [replace(bucket, store=store.id, generation=None) for bucket in taken]
    kept = tuple(bucket for bucket in manifest.buckets if bucket.store not in gone)
    windows = tuple(known[name] for name in sorted(known))
    return replace(manifest, buckets=(*kept, *added), windows=windows)


def _fullest(
    store: str, source: str | None, stores: Mapping[str, list[Bucket]], known: Mapping[str, StoreWindow]
) -> str:
    """Return the one with the latest rows of this store and those of its source that keep all."""
    full = {name for name, window in known.items() if window.keeps_all and name in stores}
    same = {name for name in full if source_of(name) == source} | ({store} & stores.keys())
    ranks = {name: (_latest(stores[name]), name in full, name == store, name) for name in same}
    return max(ranks, key=ranks.__getitem__, default=store)


def _covers(other: StoreWindow | None, own: StoreWindow | None, stored: Iterable[Bucket]) -> bool:
    """Tell whether a store has all rows that another has `stored`."""
    oldest = min((bucket.batch_min for bucket in stored), default=None)
    if oldest is None:
        return True
    if other is None or own is None or other.since is None or other.since > oldest:
        return False
    return other.window_us is None or (own.window_us is not None and own.window_us <= other.window_us)


def _latest(buckets: Iterable[Bucket]) -> int:
    return max(bucket.batch_max for bucket in buckets)


__all__ = [
    "copies_kept",
    "generations_after",
    "live_buckets",
    "resting_buckets",
    "resting_windows",
    "windows_of",
    "with_all_kept",
    "without_tables",
]
