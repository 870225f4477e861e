"""What a plan wants of rows that were stored for plans before it: they are read so, or else written again.

To read them so costs nothing that grows with what is stored before it is looked up. It is possible where all that they
lack can be computed from their raw columns without Spark, and goes on for as long as the streaming query does: with
another start what still lacks something is written again, as merging does meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from plait.errors import CheckpointError
from plait.operators.close.keeping import without_tables
from plait.operators.close.lacking import keeps_all_of
from plait.operators.close.restoring import rewritings, with_left_out
from plait.operators.close.rewriting import rewrite_here
from plait.operators.ingest.derivable import reading_of
from plait.operators.ingest.projection import IngestSpec
from plait.operators.ingest.readings import Reading, Readings
from plait.operators.traversal.scheduling import is_less, lacks
from plait.plan.model import Plan, Store
from plait.query.model import Source, Stream
from plait.runtime.checkpoint.asked import Asked
from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.observed import read_plan
from plait.runtime.inputs.loading import rewrite
from plait.runtime.spark.session import is_ansi
from plait.state.model import Bucket, Layout, Manifest, SourceProgress
from plait.state.storage import Storage

MOST_READ_ROWS: Final = 2_000_000
"""A store of more rows is written again for a plan that wants more of them: to compute what they lack takes a processor
some tenths of a second, in each process that reads them.
"""


def readings_of(asked: Asked, epoch: Epoch, plan: Plan, manifest: Manifest) -> Readings:
    """Return how rows that are stored by now are read under the plan, where that takes neither Spark nor too long. A
    store that is as it was keeps its own, which is known where it is used.
    """
    readings: dict[str, Reading] = {}
    rows = Counter[str]()
    for bucket in manifest.buckets:
        rows[bucket.store] += bucket.rows
    former = {store.id: store for store in epoch.plan.stores}
    for store in plan.stores:
        source = None if store.source is None else asked.sources[store.source].source
        if not isinstance(source, Stream) or rows[store.id] > MOST_READ_ROWS:
            continue
        known = epoch.readings.get(store.id) if former.get(store.id) == store else None
        reading = known or reading_of(store, source)
        if reading is not None:
            readings[store.id] = reading
    return readings


def serve_at_once(manifest: Manifest, specs: Iterable[IngestSpec], plan: Plan, readings: Readings) -> bool:
    """Tell whether a plan can do with what is stored as it is, and with what the `specs` in force store: no row of
    these is left out that it wants, and what they lack can be read.
    """
    known = {store.id: (store, layout) for spec in specs for store, layout in spec.stores}
    wanted = {store.id: store for store in plan.stores if store.source is not None}
    layouts: dict[str, set[Layout]] = {}
    for bucket in manifest.buckets:
        layouts.setdefault(bucket.store, set()).add(bucket.layout)
    for name, store in wanted.items():
        if store.is_table:
            if name not in layouts or any(is_less(layout, store) for layout in layouts[name]):
                return False
            continue
        before, stored = known.get(name, (None, None))
        if before is None or stored is None or not keeps_all_of(before.requirements, store.requirements):
            return False
        reading = readings.get(name)
        lacking = (layout for layout in (stored, *layouts.get(name, ())) if is_less(layout, store))
        if not all(reading is not None and reading.serves(layout) for layout in lacking):
            return False
    return {name for name, (store, _) in known.items() if not store.is_table} <= wanted.keys()


def rewritten(
    asked: Asked, storage: Storage, before: Manifest, catalog: Catalog, plan: Plan, readings: Readings
) -> Manifest:
    """Return the manifest with the buckets of streams written again that lack what can be computed from them, and can
    be had only so.

    A table whose buckets cannot serve is left out, and so loaded anew.
    """
    planned = {store.id for store in plan.stores}
    former = _former(storage, before.plan) if any(store.is_table for store in plan.stores) else None
    kept = [bucket for bucket in before.buckets if bucket.store not in planned]
    progress = {known.source: known for known in before.sources}
    for store in plan.stores:
        mine = [bucket for bucket in before.buckets if bucket.store == store.id]
        if store.is_table and not _serves(former, store, mine):
            continue
        if store.source is None or store.is_table or not mine:
            kept += mine
            continue
        reading = readings.get(store.id)
        is_read = [reading is not None and reading.serves(bucket.layout) for bucket in mine]
        kept += [bucket for bucket, read in zip(mine, is_read, strict=True) if read]
        left = [bucket for bucket, read in zip(mine, is_read, strict=True) if not read]
        opened = asked.sources[store.source]
        buckets, progress[store.source] = _rewritten_store(
            asked, storage, catalog, store, opened.source, left, progress[store.source]
        )
        kept += buckets
    after = replace(before, buckets=tuple(kept), sources=tuple(progress[name] for name in sorted(progress)))
    stay = {bucket.path for bucket in after.buckets}
    return without_tables(after, {bucket.store for bucket in before.buckets if bucket.path not in stay})


def _former(storage: Storage, name: str) -> Plan | None:
    """Return the plan that the stored rows serve; None if it cannot be read, for which no start should fail."""
    try:
        return read_plan(storage, name)
    except CheckpointError:
        return None


def _serves(former: Plan | None, store: Store, buckets: list[Bucket]) -> bool:
    """Tell whether buckets that serve the former plan hold all columns and rows of a table that the new one wants.

    A bucket shows which selections were asked of its rows, and not which of its keys had to be there.
    """
    stores = () if former is None else former.stores
    kept = (need for each in stores if each.id == store.id for need in each.requirements)
    return keeps_all_of(kept, store.requirements) and not any(lacks(bucket, store) for bucket in buckets)


def _rewritten_store(
    asked: Asked,
    storage: Storage,
    catalog: Catalog,
    store: Store,
    source: Source,
    buckets: list[Bucket],
    progress: SourceProgress,
) -> tuple[list[Bucket], SourceProgress]:
    """Return the buckets of one store after that, and the source's progress with what no longer is in them."""
    known = catalog.source(source.name)
    types = {column.name: column.type for column in source.schema or ()}
    kept, chunk_rows = buckets, asked.settings.chunk_rows
    for rewriting in rewritings(store, source, buckets, lambda name: None if known is None else known.since(name)):
        reports = rewrite_here(rewriting, source, storage, chunk_rows=chunk_rows) if is_ansi(asked.spark) else None
        if reports is None:
            reports = rewrite(asked.spark, rewriting, storage, types=types, chunk_rows=chunk_rows)
        kept = [bucket for bucket in kept if bucket not in rewriting.buckets]
        kept += [bucket for report in reports for bucket in report.buckets]
        progress = with_left_out(progress, rewriting, reports)
    return kept, progress


__all__ = ["MOST_READ_ROWS", "readings_of", "rewritten", "serve_at_once"]
