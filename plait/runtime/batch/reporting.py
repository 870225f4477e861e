"""What is told of a batch: its event, but for what only its run knows (`plait.runtime.telling`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.adapt.decision import Change, Outcome
from plait.operators.close.lacking import Lacking
from plait.operators.close.next_manifest import results_by_query
from plait.operators.close.watermark import laggard
from plait.plan.coming import settled_id
from plait.runtime.batch.events import BatchEvent, FillingCounts
from plait.runtime.batch.record import Batch
from plait.runtime.batch.waiting import failing_after
from plait.runtime.losses.counts import counts_of, edge_flows, relation_counts
from plait.state.fillings import left_rows


@dataclass(slots=True, kw_only=True)
class Story:
    """What events say of the plan in force: since when, the change it came by and what the last one brought, each told
    once, and the share of the cost it saves; `promised`: what it is to save once its intermediate stores are there.
    """

    since_ms: int = 0
    change: Change | None = None
    outcome: Outcome | None = None
    gain: float | None = None
    promised: float | None = None

    def told(self) -> None:
        """Forget what an event has said."""
        self.change, self.outcome = None, None

    def begun_with(self, change: Change, since_ms: int) -> Story:
        """Return the story of an epoch that begins with this change."""
        promised = self.promised if change.goes_on else change.gain
        gain = None if change.filling or change.indexing else promised
        return Story(since_ms=since_ms, change=change, outcome=self.outcome, gain=gain, promised=promised)


def event_of(work: Batch, story: Story, lacking: tuple[Lacking, ...], seconds: Mapping[str, float]) -> BatchEvent:
    """Return the event of a batch. `lacking`: what queries find nothing of in the rows that came before them;
    `seconds`: of each phase, and under ``""`` of the batch.
    """
    epoch, manifest, probed = work.epoch, work.settled, work.found
    derived = {stream.name for stream in epoch.derived}
    ingested = tuple(report for report in work.ingested if report.source not in derived)
    rows, published_ms = results_by_query(probed), work.published_ms or work.clock_ms
    queries = tuple(binding.query for binding in epoch.bindings.values())
    return BatchEvent(
        batch=manifest.batch,
        unfed=manifest.unfed,
        rows_in=work.rows.total(),
        late=sum(report.late for report in ingested),
        bad=sum(report.bad for report in ingested),
        results=tuple((query, rows.get(query, 0)) for query in sorted(epoch.bindings)),
        epoch=epoch.number,
        probe_tuples=sum(count for report in probed for _, count in report.probe_tuples),
        sampled_tuples=0 if work.sample is None else work.sample.probe_tuples,
        filling_tuples=work.past_tuples + (0 if work.taken is None else work.taken.probe_tuples),
        filling=_filling(work),
        shuffled_bytes=sum(report.shuffled_bytes for report in probed),
        stored_tuples=sum(bucket.rows for bucket in manifest.buckets),
        stored_bytes=sum(bucket.bytes for bucket in manifest.buckets),
        seconds=seconds[""],
        published_ms=published_ms,
        phases=tuple((phase, took) for phase, took in seconds.items() if phase),
        watermark_us=manifest.watermark_us,
        laggard=laggard(epoch.streams, manifest.sources, work.clock_ms),
        failing=failing_after(work),
        dropped=tuple(sorted(map(settled_id, work.dropped))),
        sources=counts_of(ingested, queries),
        relations=relation_counts(queries, ingested),
        flows=edge_flows(probed),
        lacking=lacking,
        change=story.change,
        outcome=story.outcome,
        epoch_ms=published_ms - story.since_ms,
        epoch_gain=story.gain,
    )


def _filling(work: Batch) -> tuple[FillingCounts, ...]:
    """Return how far the intermediate stores are that come."""
    taken = {} if work.taken is None else work.taken.rows
    left = left_rows(work.settled.fillings, work.settled.buckets)
    return tuple(
        FillingCounts(
            store=settled_id(each.store), taken=taken.get(each.store, 0), left=left[each.store], rows=each.rows
        )
        for each in work.settled.fillings
        if each.store in work.epoch.plan.coming
    )


__all__ = ["Story", "event_of"]
