"""The driver's side of a micro-batch, without effects: which tasks probe, what the next manifest says.

A batch goes from manifest b−1 to manifest b. Everything in between (buckets, spooled results, staged files) is
invisible until manifest b is committed, and garbage if it never is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from plait.operators.ingest import highest, lowest, union_sketches
from plait.operators.observing import merged_joins, observed_joins
from plait.operators.probing import ProbeContext
from plait.operators.projection import layout_of
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.walking import ProbeTask
from plait.plan.model import Plan, Store
from plait.plan.phases import phases
from plait.plan.pruning import last_filling
from plait.plan.walks import intermediates, kept_stores
from plait.query.model import Stream
from plait.state.model import Backlog, Bucket, Manifest, Publication, QueryProgress, SourceProgress
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


def by_store(buckets: Iterable[Bucket]) -> dict[str, tuple[Bucket, ...]]:
    """Group buckets by store."""
    grouped: dict[str, list[Bucket]] = {}
    for bucket in buckets:
        grouped.setdefault(bucket.store, []).append(bucket)
    return {store: tuple(found) for store, found in grouped.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Over how many tasks starting tuples are spread, and the most of them that one walk takes from one bucket."""

    slots: int
    rows_per_start: int = 250_000


def probe_tasks(plan: Plan, trees: Iterable[int], delta: Iterable[Bucket], spread: Spread) -> tuple[ProbeTask, ...]:
    """Spread the starting tuples of a batch for these trees (by number) over tasks of about equal rows, largest pieces
    first.
    """
    pieces = []
    stores = by_store(delta)
    for number in trees:
        for bucket in stores.get(plan.trees[number].start.store, ()):
            count = max(1, -(-bucket.rows // spread.rows_per_start))
            bounds = [bucket.rows * part // count for part in range(count + 1)]
            pieces += [(number, bucket, low, high) for low, high in pairwise(bounds)]
    pieces.sort(key=lambda piece: (piece[2] - piece[3], piece[0], piece[1].path, piece[2]))
    bins: list[list[tuple[int, Bucket, int, int]]] = [[] for _ in range(min(spread.slots, len(pieces)))]
    loads = [0] * len(bins)
    fair = sum(piece[3] - piece[2] for piece in pieces) / max(len(bins), 1)
    for piece in pieces:
        # One partition's tuples mostly stay in it, so that a task maps few buckets; but not at the price of balance.
        chosen = piece[1].partition % len(bins)
        if loads[chosen] + piece[3] - piece[2] > 1.25 * fair:
            chosen = loads.index(min(loads))
        bins[chosen].append(piece)
        loads[chosen] += piece[3] - piece[2]
    return tuple(ProbeTask(number=number, starts=tuple(starts)) for number, starts in enumerate(filter(None, bins)))


Probe: TypeAlias = Callable[[tuple[ProbeTask, ...], ProbeContext], tuple[ProbeReport, ...]]
"""Carries out probe tasks, by Spark or otherwise."""


def probe_in_phases(
    context: ProbeContext, live: tuple[Bucket, ...], delta: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[ProbeReport, ...]:
    """Walk all trees with a batch's tuples (`delta`); what one phase keeps in intermediate stores the next can find."""
    found: tuple[ProbeReport, ...] = ()
    made: tuple[Bucket, ...] = ()
    for trees in phases(context.plan):
        tasks = probe_tasks(context.plan, trees, delta, spread)
        reports = probe(tasks, replace(context, buckets=by_store((*live, *delta, *made))))
        made += tuple(bucket for report in reports for bucket in report.buckets)
        found += reports
    return found


def walk_past(context: ProbeContext, live: tuple[Bucket, ...], probe: Probe, spread: Spread) -> tuple[ProbeReport, ...]:
    """Walk all trees of the plan with what is stored, as if it had all arrived just now."""
    tasks = probe_tasks(context.plan, range(len(context.plan.trees)), live, spread)
    return probe(tasks, replace(context, buckets=by_store(live)))


def with_intermediates(
    context: ProbeContext, buckets: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[Bucket, ...]:
    """Return the stored buckets with every intermediate store of the plan filled from what the others hold.

    One that has buckets is complete, because every batch since it was filled has kept it so; but if they lack something
    that is needed now, it is filled anew. Smaller ones come first: larger ones may be filled from them.
    """
    plan = context.plan
    stores = {store.id: store for store, _ in intermediates(plan)}
    lacking = {bucket.store for bucket in buckets if bucket.store in stores and lacks(bucket, stores[bucket.store])}
    kept = tuple(bucket for bucket in buckets if bucket.store not in lacking)
    filled = {bucket.store for bucket in kept}
    for store, _ in intermediates(plan):
        if store.id not in filled:
            past = replace(context, plan=last_filling(plan, store.id), kept_before=True)
            reports = walk_past(past, kept, probe, spread)
            kept += tuple(bucket for report in reports for bucket in report.buckets)
    return kept


def lacks(bucket: Bucket, store: Store) -> bool:
    """Tell whether the bucket lacks a column, key or selection of the store's layout."""
    have, want = bucket.layout, layout_of(store)
    return not (set(have.carried).issuperset(want.carried) and set(have.selections).issuperset(want.selections))


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
        )
    return tuple(known[source] for source in sorted(known))


def is_idle(stream: Stream, progress: SourceProgress | None, clock_ms: int) -> bool:
    """Tell whether the stream has been silent for its idle timeout and so no longer holds the watermark back."""
    if stream.idle_us is None or progress is None or progress.active_ms is None:
        return False
    return (clock_ms - progress.active_ms) * 1000 >= stream.idle_us


def watermark_after(
    streams: Iterable[Stream], progress: tuple[SourceProgress, ...], before: int | None, clock_ms: int
) -> int | None:
    """Return the watermark of the next batch: the smallest (largest τ seen − delay) over streams that are not idle.

    It never goes back, not even when an idle stream wakes up: what it let go is gone. None: some stream has sent
    nothing yet.
    """
    known = {found.source: found for found in progress}
    marks = []
    for stream in streams:
        found = known.get(stream.name)
        if is_idle(stream, found, clock_ms):
            continue
        if found is None or found.tau_max is None:
            return before
        marks.append(found.tau_max - stream.delay_us)
    return highest(before, min(marks, default=None))


def laggard(streams: Iterable[Stream], progress: tuple[SourceProgress, ...], clock_ms: int) -> str | None:
    """Return the stream that holds the watermark back; None if there is none."""
    known = {found.source: found for found in progress}
    awake = [stream for stream in streams if not is_idle(stream, known.get(stream.name), clock_ms)]

    def mark(stream: Stream) -> tuple[bool, int]:
        found = known.get(stream.name)
        tau = None if found is None else found.tau_max
        return (tau is not None, 0 if tau is None else tau - stream.delay_us)

    return min(awake, key=mark).name if awake else None


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
    "by_store",
    "is_idle",
    "lacks",
    "laggard",
    "live_buckets",
    "next_manifest",
    "probe_in_phases",
    "probe_tasks",
    "progress_after",
    "results_by_query",
    "walk_past",
    "watermark_after",
    "windows_of",
    "with_intermediates",
]
