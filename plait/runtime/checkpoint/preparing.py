"""From a checkpoint and what is registered to a consistent start, stage by stage in the order of `prepare`.

Nothing that is prepared here is committed before the first batch is: buckets written on the way are named by its
manifest, and are garbage if it never comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from plait.adapt.forecast import NEXT_CYCLE
from plait.operators.close.keeping import with_all_kept
from plait.operators.close.lacking import Lacking, lacking_after
from plait.operators.close.levels import changed_streams, with_streams
from plait.operators.close.watermark import fallen_back, watermark_after
from plait.operators.ingest.derivable import Taking, derivation_from_running, taking_in
from plait.operators.ingest.deriving import Derivation
from plait.operators.ingest.projection import IngestSpec, ingest_spec, spec_in
from plait.operators.ingest.readings import NO_READINGS, Readings
from plait.operators.reports import IngestReport
from plait.plan.codec import PartTexts
from plait.plan.coming import Way
from plait.plan.model import Plan
from plait.runtime.checkpoint.asked import Asked
from plait.runtime.checkpoint.catalog import (
    Catalog,
    evolve,
    refuse_names_of_sources,
    refuse_other_streams,
    write_epoch,
)
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.heading import decided_from, past_plans, way_to
from plait.runtime.checkpoint.notices import notices
from plait.runtime.checkpoint.offsets import resume_streams
from plait.runtime.checkpoint.recovery import (
    Finished,
    Whose,
    finish_last_batch,
    open_checkpoint,
    refuse_changed,
    refuse_ended,
    whose,
    without_dropped,
)
from plait.runtime.checkpoint.settling_tables import settled_tables
from plait.runtime.checkpoint.shared_storage import share
from plait.runtime.checkpoint.stored_for_planning import refuse_other_sharing, sampling
from plait.runtime.checkpoint.stored_rows import readings_of, rewritten, serve_at_once
from plait.runtime.checkpoint.taken_back import unless_taken_back
from plait.runtime.inputs.loading import load_store
from plait.runtime.inputs.opening import OpenSource
from plait.runtime.notice import Notice
from plait.runtime.spark.session import has_named_sources, is_ansi
from plait.state.model import END_OF_TIME_US, Bucket, Manifest
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the checkpoint holds: its last manifest and its catalog, both None if it is new; and which one it is."""

    storage: Storage
    owner: Whose
    catalog: Catalog | None
    manifest: Manifest | None

    @property
    def next_batch(self) -> int:
        """The number of the batch that comes next."""
        return 0 if self.manifest is None else self.manifest.batch + 1


@dataclass(slots=True)
class Prepared:
    """A checkpoint ready to run. `identity`: its id. `before`: the manifest the next batch builds on, None on a new
    checkpoint without tables. `loaded`: the accounts of tables that were read just now; `lacking`: what queries find
    nothing of; `notices`: what else the user should know; `dropped`: as it was asked for, done once the first batch is;
    `claimed`: the queries whose sinks are known to be theirs; `committed`: the buckets of the last manifest;
    `stream_specs`: what a streaming query that is started for this hands over, `taken_in`: what the tasks of one that
    is started or goes on make of it, by source, where that is more than it hands over; `specs`: how the plan wants rows
    taken in, by source; `written`: what plans have been written as.
    """

    storage: Storage
    identity: str
    catalog: Catalog
    before: Manifest | None
    epoch: Epoch
    stream_specs: tuple[IngestSpec, ...] = ()
    loaded: tuple[IngestReport, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    notices: tuple[Notice, ...] = ()
    dropped: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    committed: tuple[Bucket, ...] = ()
    taken_in: Mapping[str, Derivation] = field(default_factory=dict)
    specs: Mapping[str, IngestSpec] = field(default_factory=dict)
    written: PartTexts = field(default_factory=PartTexts)

    @property
    def as_read(self) -> Manifest | None:
        """The manifest the next batch builds on, its buckets with the layouts that they are read under."""
        return _as_read(self.epoch, self.before)

    def next_epoch(self, epoch: Epoch, way: Way) -> Epoch:
        """Return the epoch of the next stage of a way, on which only probing changes, and note it in the catalog."""
        plan = way.plan
        self.catalog = replace(self.catalog, epoch=self.catalog.epoch + 1)
        plan_id = write_epoch(self.storage, self.catalog, plan, self.written)
        way_on = None if way.is_done else way
        return replace(epoch, number=self.catalog.epoch, plan=plan, plan_id=plan_id, way=way_on)


def prepare(asked: Asked) -> Prepared:
    """Return the checkpoint, ready for the next batch of what is asked."""
    opened = _opened(asked)
    bindings, streams = asked.bindings.values(), asked.streams_of(None)
    refuse_ended(opened.storage, opened.owner, opened.manifest, bindings, streams, asked.dropped)
    # What reads the groups of one that was dropped by name was dropped before it.
    left = [stream for stream in asked.derived if stream.name not in asked.dropped]
    refuse_changed(asked.checkpoint, opened.manifest, left)
    catalog = _evolved(asked, opened)
    plan, way = _planned(asked, opened)
    catalog = replace(catalog, read=tuple(stream.name for stream in asked.streams_of(plan)))
    if opened.manifest is not None:
        refuse_other_streams(opened.catalog, catalog)
    catalog = resume_streams(asked.checkpoint, opened.catalog, catalog, opened.manifest)
    finished, written = _finished(asked, opened, plan), PartTexts()
    ready = _brought_up(asked, opened, catalog, plan, write_epoch(opened.storage, catalog, plan, written), finished)
    ready = _with_takings(asked, ready)
    generation = settled_tables(asked, plan, ready.before, opened.next_batch)
    epoch = replace(ready.epoch, way=way, past=past_plans(asked, plan, ready.as_read), generation=generation)
    return replace(ready, epoch=epoch, written=written)


def go_on(
    asked: Asked, prepared: Prepared, manifest: Manifest, running: Sequence[IngestSpec], *, within: bool = False
) -> tuple[Plan, Prepared | None]:
    """Return the plan decided for, and the checkpoint, ready for what is asked with the streaming query that goes on;
    None if that has to be started anew. `manifest`: of the last batch; `running`: what the query was started for.
    `within`: a batch after that, which has stored its rows already; None then if it has to end first.

    Nothing is written unless it can go on. Its tasks have to be told of ``taken_in``.
    """
    storage = prepared.storage
    opened = Opened(storage=storage, owner=whose(storage), catalog=prepared.catalog, manifest=manifest)
    catalog = _evolved(asked, opened)
    plan, way = _planned(asked, opened)
    heading, streams = plan if way is None else way.goal, asked.streams_of(plan)
    if [stream.name for stream in streams] != [spec.source for spec in running]:
        return heading, None
    specs = [_spec(asked.sources[stream.name], plan, prepared.specs.get(stream.name)) for stream in streams]
    found = {
        spec.source: prepared.taken_in[spec.source]
        if spec is prepared.specs.get(spec.source) and spec.source in prepared.taken_in
        else derivation_from_running(spec, known, stream)
        for spec, known, stream in zip(specs, running, streams, strict=True)
    }
    taken_in = {source: derivation for source, derivation in found.items() if derivation is not None}
    if len(taken_in) < len(found) or not is_ansi(asked.spark):
        return heading, None
    readings = readings_of(asked, prepared.epoch, plan, manifest)
    if within and any(changed_streams(manifest, asked.derived)):  # it has taken in the groups of the one before
        return heading, None
    if within and not serve_at_once(manifest, prepared.specs.values(), plan, readings):
        return heading, None
    catalog = replace(catalog, read=prepared.catalog.read)
    finished = Finished(claimed=prepared.claimed, unpublished=manifest.publications)
    plan_id = write_epoch(storage, catalog, plan, prepared.written)
    ready = _brought_up(asked, opened, catalog, plan, plan_id, finished, readings)
    past = past_plans(asked, plan, ready.as_read, prepared.epoch.past)
    return heading, replace(
        ready,
        epoch=replace(ready.epoch, way=way, past=past, generation=prepared.epoch.generation),
        stream_specs=prepared.stream_specs,
        taken_in=taken_in,
        specs={spec.source: spec for spec in (*specs, *_derived_specs(asked, plan))},
        written=prepared.written,
    )


def _brought_up(
    asked: Asked,
    opened: Opened,
    catalog: Catalog,
    plan: Plan,
    plan_id: str,
    finished: Finished,
    readings: Readings | None = None,
) -> Prepared:
    """Bring the checkpoint up to the plan. `readings`: how stored rows can be read, where the streaming query has not
    been stopped for it; None: it has been.
    """
    kept = _kept(asked, opened, catalog, plan, readings)
    loaded = _tables(asked, opened.storage, () if kept is None else kept.buckets, plan)
    before = _filled(kept, loaded)
    if before is not None:
        before = replace(before, publications=finished.unpublished)
    ready = _ready(asked, opened, catalog, plan, plan_id, before, readings or NO_READINGS)
    return replace(ready, loaded=loaded, claimed=finished.claimed)


def _opened(asked: Asked) -> Opened:
    """Open the checkpoint and verify what it holds."""
    storage, catalog, manifest = open_checkpoint(asked.checkpoint, asked.settings.cache_bytes)
    if asked.settings.is_cluster:
        storage = share(asked.spark, storage, asked.settings.slots)
    return Opened(storage=storage, owner=whose(storage), catalog=catalog, manifest=manifest)


def _evolved(asked: Asked, opened: Opened) -> Catalog:
    """Take what is registered into the catalog; refuse what does not fit."""
    refuse_names_of_sources(opened.catalog, [stream.name for stream in asked.derived])
    return evolve(
        opened.catalog,
        [opened.source for opened in asked.sources.values() if opened.source not in asked.derived],
        asked.bindings,
        opened.next_batch,
        named=has_named_sources(asked.spark),
    )


def _planned(asked: Asked, opened: Opened) -> tuple[Plan, Way | None]:
    """Plan on today's statistics; refuse a plan whose stores do not fit those there are. Return what the run begins
    with, and where it leads.
    """
    plan, request = asked.plan, sampling(asked.request, opened.storage)
    if plan is None:
        plan = request.plan(opened.manifest, NEXT_CYCLE, asked.former)
        if asked.former is None:
            plan = unless_taken_back(opened.storage, opened.manifest, plan, asked.request.queries)
    refuse_other_sharing(() if opened.manifest is None else opened.manifest.buckets, plan)
    way = way_to(request, plan, opened.manifest, asked.running)
    return (plan, None) if way is None else (way.plan, way)


def _finished(asked: Asked, opened: Opened, plan: Plan) -> Finished:
    """Make visible what the last batch committed, and delete what was left half done."""
    bindings, streams = asked.bindings.values(), asked.streams_of(plan)
    return finish_last_batch(opened.storage, opened.owner, opened.manifest, bindings, streams)


def _kept(asked: Asked, opened: Opened, catalog: Catalog, plan: Plan, readings: Readings | None) -> Manifest | None:
    """Return the last manifest, its stored rows with what the plan wants of them, unless they can be read so, and
    without what waits for nobody.

    A stream was not silent while nobody listened to it, so idleness begins to count now. The watermark falls back to
    a stream that joins before any batch is planned, since what is forgotten by then cannot meet what that stream sends.
    """
    if opened.manifest is None:
        return None
    all_kept = with_all_kept(plan, with_streams(opened.manifest, asked.derived))
    kept = rewritten(asked, opened.storage, all_kept, catalog, plan, readings or NO_READINGS)
    kept = without_dropped(kept, asked.dropped, asked.bindings)
    if readings is not None or kept.watermark_us == END_OF_TIME_US:
        return kept
    sources = tuple(replace(known, active_ms=asked.clock_ms) for known in kept.sources)
    watermark_us = watermark_after(asked.streams_of(plan), sources, asked.clock_ms)
    return replace(kept, watermark_us=fallen_back(kept.watermark_us, watermark_us), sources=sources)


def _filled(kept: Manifest | None, loaded: tuple[IngestReport, ...]) -> Manifest | None:
    """Return the manifest the next batch builds on, tables loaded. Intermediate stores are filled by that batch."""
    buckets = tuple(bucket for report in loaded for bucket in report.buckets)
    if kept is None:
        return Manifest(batch=-1, watermark_us=None, plan="", buckets=buckets) if buckets else None
    return replace(kept, buckets=kept.buckets + buckets)


def _ready(
    asked: Asked,
    opened: Opened,
    catalog: Catalog,
    plan: Plan,
    plan_id: str,
    before: Manifest | None,
    readings: Readings,
) -> Prepared:
    """Put together what the run starts with, and what its user should know."""
    streams = asked.streams_of(plan)
    queries = tuple(binding.query for binding in asked.bindings.values())
    epoch = Epoch(
        number=catalog.epoch,
        plan=plan,
        plan_id=plan_id,
        bindings=asked.bindings,
        streams=streams,
        derived=asked.derived,
        readings=readings,
    )
    stored = _as_read(epoch, before)
    return Prepared(
        storage=opened.storage,
        identity=opened.owner.identity,
        catalog=catalog,
        before=before,
        epoch=epoch,
        lacking=lacking_after(queries, plan, stored, backfill=asked.settings.backfill),
        dropped=asked.dropped,
        committed=() if opened.manifest is None else opened.manifest.buckets,
        notices=notices(
            opened.catalog,
            catalog,
            opened.manifest,
            plan,
            frozenset(asked.sources),
            asked.dropped,
            {name: binding.grouping for name, binding in asked.bindings.items()},
            decided_from(queries, plan, stored) if asked.settings.backfill else {},
            backfill=asked.settings.backfill,
        ),
    )


def _as_read(epoch: Epoch, manifest: Manifest | None) -> Manifest | None:
    """Return a manifest whose buckets have the layouts that they are read under."""
    return None if manifest is None else replace(manifest, buckets=epoch.seen(manifest.buckets))


def _with_takings(asked: Asked, ready: Prepared) -> Prepared:
    """Settle what a streaming query that is started hands over, and what its tasks make of it."""
    streams, may_derive = ready.epoch.streams, is_ansi(asked.spark)
    specs = [_spec(asked.sources[stream.name], ready.epoch.plan) for stream in streams]
    takings = [
        taking_in(spec, stream) if may_derive else Taking(handed=spec)
        for spec, stream in zip(specs, streams, strict=True)
    ]
    return replace(
        ready,
        stream_specs=tuple(taking.handed for taking in takings),
        taken_in={taking.handed.source: taking.how for taking in takings if taking.how is not None},
        specs={spec.source: spec for spec in (*specs, *_derived_specs(asked, ready.epoch.plan))},
    )


def _derived_specs(asked: Asked, plan: Plan) -> list[IngestSpec]:
    """Return how the groups of queries are taken in that others read."""
    return [spec_in(plan, stream) for stream in asked.derived]


def _spec(opened: OpenSource, plan: Plan, before: IngestSpec | None = None) -> IngestSpec:
    """Return how rows of a source are taken in: as `before` where its stores are still the same."""
    stores = tuple(store for store in plan.stores if store.source == opened.source.name)
    if before is not None and tuple(store for store, _ in before.stores) == stores:
        return before
    return ingest_spec(opened.source, stores, corrupt_column=opened.corrupt_column)


def _tables(asked: Asked, storage: Storage, buckets: tuple[Bucket, ...], plan: Plan) -> tuple[IngestReport, ...]:
    """Load the tables whose stores hold nothing yet."""
    filled = {bucket.store for bucket in buckets}
    return tuple(
        load_store(asked.sources[store.source], store, storage, asked.settings)
        for store in plan.stores
        if store.is_table and store.source is not None and store.id not in filled
    )


__all__ = ["Prepared", "go_on", "prepare", "share"]
