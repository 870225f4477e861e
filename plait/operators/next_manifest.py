"""From manifest b−1 to manifest b: what the whole state is after a micro-batch.

Everything in between (buckets, spooled results, staged files) is invisible until manifest b is committed, and garbage
if it never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.operators.badrows import merged_bad, shortened
from plait.operators.ingest import highest, lowest, merged_null_keys, union_sketches
from plait.operators.observing import merged_joins, observed_joins
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.watermark import watermark_after
from plait.plan.model import Plan
from plait.plan.walks import kept_stores
from plait.query.model import Stream
from plait.sinks.staging import Publication
from plait.state.model import Backlog, BadRows, Bucket, Manifest, QueryProgress, SourceProgress
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
    return retain(manifest.buckets, windows_of(plan), manifest.watermark_us)


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
    before = None if previous is None else previous.watermark_us
    arrived = tuple(bucket for report in ingested for bucket in report.buckets)
    progress = progress_after(previous, tuple(stream.name for stream in streams), ingested, clock_ms)
    known = {found.source: found for found in progress}
    joins = observed_joins(plan, (() if previous is None else previous.buckets, arrived), probed, known)
    progress = tuple(
        replace(found, joins=merged_joins(found.joins, joins[found.source])) if found.source in joins else found
        for found in progress
    )
    watermark = watermark_after(streams, progress, before, clock_ms)
    delta = arrived + tuple(bucket for report in probed for bucket in report.buckets)
    kept = retain((*live_buckets(plan, previous), *delta), windows_of(plan), watermark)
    return Manifest(
        batch=batch,
        watermark_us=watermark,
        plan=plan_id,
        sources=progress,
        queries=queries_after(previous, plan, results_by_query(probed)),
        buckets=kept,
        publications=tuple(letter for report in ingested for letter in report.publications) + publications,
        backlog=backlog,
        probe_tuples=_added(() if previous is None else previous.probe_tuples, probed),
    )


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
