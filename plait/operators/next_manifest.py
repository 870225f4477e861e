"""From manifest b−1 to manifest b: what the whole state is after a micro-batch.

Everything in between (buckets, spooled results, staged files) is invisible until manifest b is committed, and garbage
if it never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.adapt.history import merged_joins, observed_joins
from plait.operators.badrows import merged_bad, shortened
from plait.operators.ingest import highest, lowest, merged_null_keys, union_sketches
from plait.operators.lacking import kept_for, with_unstored
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.watermark import watermark_after, with_bars
from plait.plan.model import Plan
from plait.plan.walks import kept_stores
from plait.query.model import Stream
from plait.sinks.staging import Publication
from plait.state.model import (
    Backlog,
    BadRows,
    Bucket,
    Manifest,
    QueryProgress,
    SourceProgress,
    StoreWindow,
)
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


def resting_windows(plan: Plan, manifest: Manifest | None) -> dict[str, int | None]:
    """Return the windows of the stores that keep what they have although the plan has no use for it."""
    if manifest is None:
        return {}
    kept, filled = windows_of(plan), {bucket.store for bucket in manifest.buckets}
    known = {found.store: found.window_us for found in manifest.windows}
    return {store: window for store, window in known.items() if store in filled and store not in kept}


def resting_buckets(plan: Plan, manifest: Manifest | None) -> tuple[Bucket, ...]:
    """Return the stored buckets that no tuple can match under this plan, and that are kept all the same."""
    if manifest is None:
        return ()
    return retain(manifest.buckets, resting_windows(plan, manifest), manifest.watermark_us).kept


def progress_after(
    previous: Manifest | None, sources: tuple[str, ...], reports: Iterable[IngestReport], clock_ms: int
) -> tuple[SourceProgress, ...]:
    """Return the sources' progress after a batch. A source not seen before counts as active from now."""
    known = {} if previous is None else {progress.source: progress for progress in previous.sources}
    for source in sources:
        known.setdefault(source, SourceProgress(source=source, active_ms=clock_ms))
    for report in reports:
        before = known.get(report.source, SourceProgress(source=report.source, active_ms=clock_ms))
        kept = dict(before.kept)
        for selection, rows in report.kept:
            kept[selection] = kept.get(selection, 0) + rows
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
            kept=tuple(sorted(kept.items())),
            bad_rows=merged_bad(before.bad_rows, map(_brief, report.bad_rows)),
            null_keys_by=merged_null_keys(before.null_keys_by, report.null_keys_by),
            outside=before.outside + report.outside,
        )
    return tuple(known[source] for source in sorted(known))


def _brief(bad: BadRows) -> BadRows:
    """Return it with a sample that a manifest has room for."""
    return replace(bad, sample=shortened(bad.sample))


def _with_unstored(
    plan: Plan, progress: tuple[SourceProgress, ...], ingested: Iterable[IngestReport]
) -> tuple[SourceProgress, ...]:
    """Count the rows of a batch that are in no store afterwards: no reason held for them, or the store keeps nothing
    beyond its batch.
    """
    stays = windows_of(plan)
    known = {found.source: found for found in progress}
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


def queries_after(previous: Manifest | None, plan: Plan, results: Mapping[str, int]) -> tuple[QueryProgress, ...]:
    """Return rows out per live query after a batch that produced `results`."""
    before = {} if previous is None else {progress.query: progress.rows_out for progress in previous.queries}
    return tuple(
        QueryProgress(query=query, rows_out=before.get(query, 0) + results.get(query, 0)) for query in plan.queries
    )


def next_manifest(
    previous: Manifest | None,
    *,
    plan: Plan,
    plan_id: str,
    streams: tuple[Stream, ...],
    batch: int,
    ingested: tuple[IngestReport, ...],
    probed: tuple[ProbeReport, ...],
    publications: tuple[Publication, ...],
    backlog: tuple[Backlog, ...],
    clock_ms: int,
) -> Manifest:
    """Return manifest `batch`: the state after everything this batch did."""
    arrived = tuple(bucket for report in ingested for bucket in report.buckets)
    progress = progress_after(previous, tuple(stream.name for stream in streams), ingested, clock_ms)
    known = {found.source: found for found in progress}
    joins = observed_joins(plan, (() if previous is None else previous.buckets, arrived), probed, known)
    progress = tuple(
        replace(found, joins=merged_joins(found.joins, joins[found.source])) if found.source in joins else found
        for found in progress
    )
    progress = _with_unstored(plan, progress, ingested)
    watermark = watermark_after(streams, progress, clock_ms)
    progress = with_bars(streams, progress, watermark)
    delta = arrived + tuple(bucket for report in probed for bucket in report.buckets)
    windows, resting = windows_of(plan), resting_windows(plan, previous)
    before = () if previous is None else previous.buckets
    kept = (
        *retain(before, {**windows, **resting}, watermark).kept,
        *retain(delta, windows, watermark).kept,
    )
    return Manifest(
        batch=batch,
        watermark_us=watermark,
        plan=plan_id,
        sources=progress,
        queries=queries_after(previous, plan, results_by_query(probed)),
        buckets=kept,
        windows=_stream_windows(plan, {**resting, **windows}, kept),
        publications=tuple(letter for report in ingested for letter in report.publications) + publications,
        backlog=backlog,
        probe_tuples=_added(() if previous is None else previous.probe_tuples, probed),
    )


def _stream_windows(plan: Plan, windows: Mapping[str, int | None], kept: tuple[Bucket, ...]) -> tuple[StoreWindow, ...]:
    """Return the windows to remember: intermediate stores can be filled again, tables loaded again."""
    others = {store.id for store in plan.stores if store.intermediate is not None or store.is_table}
    filled = {bucket.store for bucket in kept} - others
    return tuple(StoreWindow(store=store, window_us=windows[store]) for store in sorted(filled))


def results_by_query(probed: Iterable[ProbeReport]) -> dict[str, int]:
    """Return the rows each query produced."""
    rows: dict[str, int] = {}
    for report in probed:
        for file in report.results:
            rows[file.query] = rows.get(file.query, 0) + file.rows
    return rows


def _added(before: tuple[tuple[str, int], ...], probed: Iterable[ProbeReport]) -> tuple[tuple[str, int], ...]:
    total = dict(before)
    for report in probed:
        for edge, count in report.probe_tuples:
            total[edge] = total.get(edge, 0) + count
    return tuple(sorted(total.items()))


__all__ = [
    "live_buckets",
    "next_manifest",
    "progress_after",
    "queries_after",
    "results_by_query",
    "windows_of",
]
