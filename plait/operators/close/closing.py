"""What a batch has made final: the watermark moves, and what nothing can join any more is let go.

A bucket **expires** when the watermark has passed its last row and its window: everything that could come of its rows
has come by then. Whatever waits for certainty (a row without a match, a window of time that is over) waits for that;
inner joins, which are certain at once, have nothing to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from plait.adapt.history import Batch, batch_counts, with_sample
from plait.operators.close.counting_keys import counted_keys
from plait.operators.close.keeping import copies_kept, resting_windows, windows_of
from plait.operators.close.lacking import kept_for, with_forgotten, with_unstored
from plait.operators.close.levels import NOTHING_TAKEN, with_taken
from plait.operators.close.unused_counts import without_unused
from plait.operators.close.watermark import watermark_after, with_bars
from plait.operators.ingest.badrows import merged_bad, shortened
from plait.operators.ingest.report_sums import highest, lowest, merged_kept, merged_null_keys, union_sketches
from plait.operators.reports import IngestReport, ProbeReport, Sample
from plait.plan.model import Plan
from plait.plan.relations import source_of
from plait.query.model import Stream
from plait.state.model import (
    END_OF_TIME_US,
    BadRows,
    Bucket,
    MadeGroups,
    Manifest,
    OpenGroups,
    SourceProgress,
    StoreWindow,
    oldest_of,
)
from plait.state.retention import retain
from plait.stats.cycles import HISTORY, TEN_SECONDS, Count, CycleLength, Cycles, with_batch
from plait.stats.live_keys import LiveKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """How far the streams have come after a batch, and what that means for what is stored.

    `watermark_us`: of the next batch. `kept`: buckets that stay, `expired`: those that go because the watermark has
    passed them, in the order they were stored; `copies` of rows that stay. `windows`: of the stores that have buckets.
    `cycles`: what the batches showed, `live_keys`: what is followed of the values of keys. `found`: what became final
    with that, as reports of tasks; inner joins leave it empty. `groups`: what waits of the queries that group; `made`:
    groups of theirs for those who read them.
    """

    sources: tuple[SourceProgress, ...]
    watermark_us: int | None
    kept: tuple[Bucket, ...]
    expired: tuple[Bucket, ...]
    windows: tuple[StoreWindow, ...]
    cycles: Cycles
    live_keys: tuple[LiveKeys, ...] = ()
    found: tuple[ProbeReport, ...] = ()
    groups: tuple[OpenGroups, ...] = ()
    made: tuple[MadeGroups, ...] = ()
    copies: tuple[Bucket, ...] = ()


def close(
    previous: Manifest | None,
    plan: Plan,
    streams: tuple[Stream, ...],
    ingested: tuple[IngestReport, ...],
    probed: tuple[ProbeReport, ...],
    clock_ms: int,
    cycle: CycleLength = TEN_SECONDS,
    history: int = HISTORY,
    sample: Sample | None = None,
    *,
    is_end: bool = False,
    taken: Mapping[str, int | None] = NOTHING_TAKEN,
) -> Closed:
    """Return what is final once this batch is done. `cycle`: how long one is, `history`: how many are kept. `sample`:
    of orders that are not in force. `is_end`: nothing more will come, so the watermark is the end of time. `taken`: of
    the streams of groups, up to which end they have been taken in (`plait.operators.close.levels`).
    """
    arrived = tuple(bucket for report in ingested for bucket in report.buckets)
    counted = progress_after(previous, (*(stream.name for stream in streams), *taken), ingested, clock_ms)
    progress = _with_unstored(plan, counted, ingested)
    keys = counted_keys(previous, plan, ingested)
    cycles = _cycles_after(
        previous,
        clock_ms,
        cycle,
        history,
        Batch(
            plan=plan,
            stored=() if previous is None else previous.buckets,
            arrived=arrived,
            probed=probed,
            before={} if previous is None else {each.source: each for each in previous.sources},
            after={each.source: each for each in counted},
        ),
        sample,
        keys.counts,
    )
    watermark = END_OF_TIME_US if is_end else watermark_after(streams, progress, clock_ms)
    progress = with_taken(with_bars(streams, progress, watermark), taken)
    oldest = oldest_of([watermark, *(each.late_before_us for each in progress if each.source in taken)])
    delta = arrived + tuple(bucket for report in probed for bucket in report.buckets)
    windows, resting = windows_of(plan), resting_windows(plan, previous)
    before = () if previous is None else previous.buckets
    stored, added = retain(before, {**windows, **resting}, oldest), retain(delta, windows, oldest)
    kept, expired = stored.kept + added.kept, stored.expired + added.expired
    copies = (*(() if previous is None else previous.copies), *(copy for each in ingested for copy in each.copies))
    return Closed(
        sources=without_unused(_with_forgotten(progress, {**resting, **windows}, expired), plan, kept),
        watermark_us=watermark,
        kept=kept,
        expired=expired,
        windows=_stream_windows(plan, previous, windows, resting, kept),
        cycles=cycles,
        live_keys=keys.live,
        copies=copies_kept(copies, kept, {**resting, **windows}, oldest),
    )


def _cycles_after(
    previous: Manifest | None,
    clock_ms: int,
    cycle: CycleLength,
    history: int,
    batch: Batch,
    sample: Sample | None,
    keys: tuple[Count, ...],
) -> Cycles:
    before, counted = Cycles() if previous is None else previous.cycles, batch_counts(batch)
    if sample is not None:
        counted = with_sample(counted, replace(batch, plan=sample.plan, probed=(sample.report,)))
    return with_batch(before, clock_ms, (*counted, *keys), cycle, history)


def _with_unstored(
    plan: Plan, progress: tuple[SourceProgress, ...], ingested: Iterable[IngestReport]
) -> tuple[SourceProgress, ...]:
    """Count the rows of a batch that are in no store afterwards: no reason held for them, or the store keeps nothing
    beyond its batch.
    """
    stays = windows_of(plan)
    known = {each.source: each for each in progress}
    for report in ingested:
        passed = [bucket for bucket in report.buckets if bucket.store not in stays]
        # Of a source with a store for each query the rows are those of several: the fullest one counts.
        by_store: dict[str, int] = {}
        for bucket in passed:
            by_store[bucket.store] = by_store.get(bucket.store, 0) + bucket.rows
        rows = report.unstored + max(by_store.values(), default=0)
        taus = [report.unstored_tau_max, *(bucket.tau_max for bucket in passed)]
        tau_max = max((tau for tau in taus if tau is not None), default=None)
        if rows and tau_max is not None:
            mine = [store for store in plan.stores if store.source == report.source and store.id in stays]
            kept = kept_for(need for store in mine for need in store.requirements)
            known[report.source] = with_unstored(known[report.source], rows, tau_max, kept)
    return tuple(known[source] for source in sorted(known))


def _with_forgotten(
    progress: tuple[SourceProgress, ...], windows: Mapping[str, int | None], expired: Iterable[Bucket]
) -> tuple[SourceProgress, ...]:
    """Count the rows of streams that are let go: where every query has a store, by the one that keeps them longest."""
    known, longest = {stream.source: stream for stream in progress}, dict[str, str]()
    for store in sorted(windows, key=lambda each: (windows[each] is None, windows[each] or 0, each)):
        longest[store if store in known else source_of(store)] = store
    gone: dict[str, list[Bucket]] = {}
    for bucket in expired:
        gone.setdefault(bucket.store, []).append(bucket)
    for source in known.keys() & longest.keys():
        buckets = gone.get(longest[source], [])
        taus = [bucket.tau_max for bucket in buckets if bucket.tau_max is not None]
        if taus:
            known[source] = with_forgotten(known[source], sum(bucket.rows for bucket in buckets), max(taus))
    return tuple(known[source] for source in sorted(known))


def _stream_windows(
    plan: Plan,
    previous: Manifest | None,
    used: Mapping[str, int | None],
    resting: Mapping[str, int | None],
    kept: tuple[Bucket, ...],
) -> tuple[StoreWindow, ...]:
    """Return the windows to remember, those the plan uses and others: intermediate stores can be filled again, tables
    loaded again.
    """
    windows, batch = {**resting, **used}, 0 if previous is None else previous.batch + 1
    before = {} if previous is None else {window.store: window for window in previous.windows if window.keeps_all}
    full = {name: window.since for name, window in before.items() if name not in used}
    for store in (store for store in plan.stores if store.keeps_all):
        full[store.id] = before[store.id].since if store.id in before else batch
    others = {store.id for store in plan.stores if store.intermediate is not None or store.is_table}
    return tuple(
        StoreWindow(store=store, window_us=windows[store], keeps_all=store in full, since=full.get(store))
        for store in sorted({bucket.store for bucket in kept} - others)
    )


def progress_after(
    previous: Manifest | None, sources: tuple[str, ...], reports: Iterable[IngestReport], clock_ms: int
) -> tuple[SourceProgress, ...]:
    """Return the sources' progress after a batch. A source not seen before counts as active from now."""
    known = {} if previous is None else {progress.source: progress for progress in previous.sources}
    for source in sources:
        known.setdefault(source, SourceProgress(source=source, active_ms=clock_ms))
    for report in reports:
        before = known.get(report.source, SourceProgress(source=report.source, active_ms=clock_ms))
        known[report.source] = replace(
            before,
            rows=before.rows + report.rows,
            late=before.late + report.late,
            bad=before.bad + report.bad,
            null_keys=before.null_keys + report.null_keys,
            tau_min=lowest(before.tau_min, report.tau_min),
            tau_max=highest(before.tau_max, report.tau_max),
            active_ms=clock_ms if report.rows else before.active_ms,
            sketch=union_sketches(before.sketch, report.sketches),
            kept=merged_kept(before.kept, report.kept),
            bad_rows=merged_bad(before.bad_rows, map(_brief, report.bad_rows)),
            null_keys_by=merged_null_keys(before.null_keys_by, report.null_keys_by),
            outside=before.outside + report.outside,
        )
    return tuple(known[source] for source in sorted(known))


def _brief(bad: BadRows) -> BadRows:
    """Return it with a sample that a manifest has room for."""
    return replace(bad, sample=shortened(bad.sample))


__all__ = ["Closed", "close", "progress_after"]
