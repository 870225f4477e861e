"""From manifest b−1 to manifest b: what the whole state is after a micro-batch.

Everything in between (buckets, spooled results, staged files) is invisible until manifest b is committed, and garbage
if it never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.operators.close.closing import Closed
from plait.operators.close.keeping import generations_after
from plait.operators.close.unused_counts import edges_of
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.filling_up import pasts_of
from plait.operators.traversal.slicing import fillings_after
from plait.plan.key_groups import Generation
from plait.plan.model import Plan
from plait.sinks.staging import Publication
from plait.state.model import TABLE_BATCH, Bucket, Manifest, QueryProgress, Undelivered


def queries_after(
    previous: Manifest | None, plan: Plan, results: Mapping[str, int], kept: Iterable[Bucket]
) -> tuple[QueryProgress, ...]:
    """Return rows out per query after a batch that produced `results` and left these buckets.

    One that is gone is remembered while rows are stored of which its sink may have results: if it came back as one that
    was never there, it would be filled up with them once more. Results without such rows it cannot have had.
    """
    before = {} if previous is None else {progress.query: progress for progress in previous.queries}
    live = tuple(
        QueryProgress(query=query, rows_out=(before[query].rows_out if query in before else 0) + results.get(query, 0))
        for query in plan.queries
    )
    oldest = min((bucket.batch_min for bucket in kept if bucket.batch_min != TABLE_BATCH), default=None)
    last = None if previous is None else previous.batch
    left = (
        replace(before[query], left=last if before[query].left is None else before[query].left)
        for query in sorted(before.keys() - frozenset(plan.queries))
    )
    return live + tuple(gone for gone in left if oldest is not None and gone.left is not None and oldest <= gone.left)


def next_manifest(
    previous: Manifest | None,
    closed: Closed,
    *,
    plan: Plan,
    plan_id: str,
    batch: int,
    ingested: tuple[IngestReport, ...],
    probed: tuple[ProbeReport, ...],
    publications: tuple[Publication, ...],
    undelivered: tuple[Undelivered, ...],
    sampled: int = 0,
    is_fed: bool = True,
    ended: bool = False,
    generation: Generation | None = None,
) -> Manifest:
    """Return manifest `batch`: the state after everything this batch did. What could not be published so far, which is
    what `previous` names, is to be published with it. `sampled`: probe tuples of samples. `is_fed`: Spark has read
    something for it; `ended`: nothing more will come. `generation`: the tables in force.
    """
    reports = (*probed, *closed.found)
    going_on = () if previous is None else tuple(each for each in previous.filling_up if each.left)
    return Manifest(
        batch=batch,
        watermark_us=closed.watermark_us,
        plan=plan_id,
        sources=closed.sources,
        queries=queries_after(previous, plan, results_by_query(reports), closed.kept),
        buckets=closed.kept,
        windows=closed.windows,
        cycles=closed.cycles,
        live_keys=closed.live_keys,
        fillings=fillings_after(() if previous is None else previous.fillings, plan, closed.kept),
        filling_up=going_on,
        pasts=() if previous is None else pasts_of(going_on, previous.pasts),
        publications=(
            *(() if previous is None else previous.publications),
            *(letter for report in ingested for letter in report.publications),
            *publications,
        ),
        undelivered=undelivered,
        sampled=sampled + (0 if previous is None else previous.sampled),
        probe_tuples=_added(() if previous is None else previous.probe_tuples, reports, edges_of(plan)),
        groups=closed.groups,
        made=closed.made,
        ended=ended,
        unfed=(0 if previous is None else previous.unfed) + (not is_fed),
        generations=generations_after(() if previous is None else previous.generations, generation, closed.kept),
        copies=closed.copies,
    )


def results_by_query(probed: Iterable[ProbeReport]) -> dict[str, int]:
    """Return the rows each query produced."""
    rows: dict[str, int] = {}
    for report in probed:
        for file in report.results:
            rows[file.query] = rows.get(file.query, 0) + file.rows
    return rows


def _added(
    before: tuple[tuple[str, int], ...], probed: Iterable[ProbeReport], edges: frozenset[str]
) -> tuple[tuple[str, int], ...]:
    """Return the counts of these edges: what others have counted means nothing to a plan that has not got them."""
    total = dict(before)
    for report in probed:
        for edge, count in report.probe_tuples:
            total[edge] = total.get(edge, 0) + count
    return tuple((edge, total[edge]) for edge in sorted(edges & total.keys()))


__all__ = ["next_manifest", "queries_after", "results_by_query"]
