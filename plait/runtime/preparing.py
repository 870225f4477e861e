"""From a checkpoint and what is registered to a consistent start: plan, catalog, stores filled.

Nothing that is prepared here is committed before the first batch is: buckets written on the way are named by its
manifest, and are garbage if it never comes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from plait import __version__
from plait.errors import CheckpointError
from plait.operators.projection import IngestSpec, ingest_spec, layout_of
from plait.operators.scheduling import lacks
from plait.plan.codec import encode
from plait.plan.model import Plan, Store
from plait.query.model import Query, Stream
from plait.runtime.binding import Binding
from plait.runtime.catalog import Catalog, evolve, write_catalog
from plait.runtime.loading import can_rewrite, load_table, rewrite
from plait.runtime.microbatch import Epoch, Settings
from plait.runtime.planning import PlanRequest
from plait.runtime.recovery import finish_last_batch, open_checkpoint
from plait.runtime.session import has_named_sources
from plait.runtime.sharing import share
from plait.runtime.sources import OpenSource
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage


@dataclass(slots=True)
class Prepared:
    """A checkpoint ready to run. `before`: the manifest the next batch builds on, None on a new checkpoint without
    tables.
    """

    storage: Storage
    catalog: Catalog
    before: Manifest | None
    epoch: Epoch
    stream_specs: tuple[IngestSpec, ...]

    def next_epoch(self, epoch: Epoch, plan: Plan) -> Epoch:
        """Return the epoch for a plan that changes only probing, and note it in the catalog."""
        self.catalog = replace(self.catalog, epoch=self.catalog.epoch + 1)
        write_catalog(self.storage, self.catalog, __version__)
        name = plan_id(self.catalog.epoch, plan)
        self.storage.write_file(f"plans/{name}.json", encode(plan).encode())
        return replace(epoch, number=self.catalog.epoch, plan=plan, plan_id=name)


def plan_id(epoch: int, plan: Plan) -> str:
    """Return a name for a plan in force: epoch and content."""
    return f"{epoch}-{hashlib.sha256(encode(plan).encode()).hexdigest()[:12]}"


def prepare(
    spark: SparkSession,
    checkpoint: str,
    settings: Settings,
    request: PlanRequest,
    sources: Mapping[str, OpenSource],
    bindings: Mapping[str, Binding],
) -> Prepared:
    """Open the checkpoint, finish what was committed, plan, and fill stores that the plan needs and state can
    supply.
    """
    storage, old, manifest = open_checkpoint(checkpoint, settings.cache_bytes)
    if settings.is_cluster:
        storage = share(spark, storage, settings.slots)
    next_batch = 0 if manifest is None else manifest.batch + 1
    catalog = evolve(
        old,
        [opened.source for opened in sources.values()],
        bindings,
        next_batch,
        named=has_named_sources(spark),
    )
    made = request.plan(() if manifest is None else manifest.sources)
    _refuse_other_sharing(() if manifest is None else manifest.buckets, made)
    used = {store.source for store in made.stores}
    streams = tuple(
        opened.source for name, opened in sources.items() if isinstance(opened.source, Stream) and name in used
    )
    finish_last_batch(storage, manifest, bindings.values(), streams)
    write_catalog(storage, catalog, __version__)
    epoch_id = plan_id(catalog.epoch, made)
    storage.write_file(f"plans/{epoch_id}.json", encode(made).encode())
    filler = _Filler(spark, storage, settings, catalog, request.queries)
    buckets = () if manifest is None else filler.rewritten(made, manifest.buckets, sources)
    buckets += filler.tables(made, buckets, sources)
    return Prepared(
        storage=storage,
        catalog=catalog,
        before=_with_buckets(manifest, buckets),
        epoch=Epoch(
            number=catalog.epoch,
            plan=made,
            plan_id=epoch_id,
            bindings=bindings,
            streams=streams,
        ),
        stream_specs=tuple(_spec(sources[stream.name], made) for stream in streams),
    )


def _refuse_other_sharing(buckets: tuple[Bucket, ...], plan: Plan) -> None:
    """Refuse a plan that shares stores where the checkpoint has one per query, or the reverse.

    Tuples kept once a query cannot be told apart when they are merged, and leaving them behind would lose results.
    """
    planned = {store.source: store.id for store in plan.stores if store.source is not None}
    for kept in sorted({bucket.store for bucket in buckets}):
        wanted = planned.get(kept.rpartition("/")[2])
        if wanted is not None and ("/" in kept) != ("/" in wanted):
            raise CheckpointError(
                f"the checkpoint keeps '{kept}', strategy '{plan.strategy}' wants '{wanted}': "
                "strategy 'independent' has a store for each query, the others share theirs. "
                "Use the kind of strategy this checkpoint was begun with, or another checkpoint."
            )


def _with_buckets(manifest: Manifest | None, buckets: tuple[Bucket, ...]) -> Manifest | None:
    if manifest is not None:
        return replace(manifest, buckets=buckets)
    return Manifest(batch=-1, watermark_us=None, plan="", buckets=buckets) if buckets else None


def _spec(opened: OpenSource, plan: Plan) -> IngestSpec:
    stores = tuple(store for store in plan.stores if store.source == opened.source.name)
    return ingest_spec(opened.source, stores, corrupt_column=opened.corrupt_column)


@dataclass(frozen=True, slots=True)
class _Filler:
    """Fills stores before the first batch of an epoch."""

    spark: SparkSession
    storage: Storage
    settings: Settings
    catalog: Catalog
    queries: tuple[Query, ...]

    def tables(self, plan: Plan, buckets: tuple[Bucket, ...], sources: Mapping[str, OpenSource]) -> tuple[Bucket, ...]:
        """Load the tables whose stores hold nothing yet."""
        loaded: tuple[Bucket, ...] = ()
        for store in plan.stores:
            if not store.is_table or store.source is None or any(bucket.store == store.id for bucket in buckets):
                continue
            opened = sources[store.source]
            spec = ingest_spec(opened.source, (store,))
            report = load_table(
                opened, spec, self.storage, slots=self.settings.slots, chunk_rows=self.settings.chunk_rows
            )
            loaded += report.buckets
        return loaded

    def rewritten(
        self, plan: Plan, buckets: tuple[Bucket, ...], sources: Mapping[str, OpenSource]
    ) -> tuple[Bucket, ...]:
        """Return the buckets, those replaced that lack what the plan now wants but hold what it can be computed from.

        A table whose buckets cannot serve is dropped here and so loaded anew. Intermediate stores are filled by the
        first batch.
        """
        kept = [bucket for bucket in buckets if all(bucket.store != store.id for store in plan.stores)]
        for store in plan.stores:
            mine = [bucket for bucket in buckets if bucket.store == store.id]
            lacking = [] if store.source is None else [bucket for bucket in mine if lacks(bucket, store)]
            if store.is_table and lacking:
                continue
            kept += [bucket for bucket in mine if bucket not in lacking]
            if store.source is not None:
                kept += self._rewrite_store(store, sources[store.source], lacking)
        return tuple(kept)

    def _rewrite_store(self, store: Store, opened: OpenSource, lacking: list[Bucket]) -> list[Bucket]:
        spec = ingest_spec(opened.source, (store,))
        needs = _columns_read(store)
        known = self.catalog.source(opened.source.name)
        types = {column.name: column.type for column in opened.source.schema or ()}
        layout = layout_of(store)
        able = [bucket for bucket in lacking if can_rewrite(bucket, layout, known, needs)]
        kept = [bucket for bucket in lacking if bucket not in able]
        for found in dict.fromkeys(bucket.layout for bucket in able):
            group = tuple(bucket for bucket in able if bucket.layout == found)
            kept += rewrite(self.spark, group, spec, self.storage, types=types, chunk_rows=self.settings.chunk_rows)
        return kept


def _columns_read(store: Store) -> dict[str, tuple[str, ...]]:
    """Return the source columns that keys and values (by name) and selections (by text) are computed from."""
    needs: dict[str, tuple[str, ...]] = {}
    for key in store.keys:
        needs[key.name] = key.expression.columns
        if key.value_name is not None:
            needs[key.value_name] = key.expression.columns
    needs.update((value.name, value.expression.columns) for value in store.values)
    for selection in store.selections:
        columns = (column for conjunct in selection.conjuncts for column in conjunct.columns)
        needs[selection.sql] = tuple(dict.fromkeys(columns))
    return needs


__all__ = ["Prepared", "prepare"]
