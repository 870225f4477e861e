"""One micro-batch, from the streaming query's call to the committed manifest: the only place where effects are ordered.

ingest    Spark runs the ingest tasks: buckets are written
probe     starting tuples traverse the probe trees; results are spooled or staged
close     the watermark moves: what is final now, and which buckets expire
deliver   spooled results go to their sinks (staged where the sink is files)
commit    manifest b is written; from here on the batch has happened
publish   staged files are renamed into sight
tidy      spool and old manifests go; merging begins

Killed before the commit, the batch runs again on the same offsets and nothing of the first try was visible. Killed
after it, the manifest says what to publish and that the batch is done. A sink that fails keeps its results
undelivered; the batch goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from plait.adapt.budget import stores_to_drop
from plait.adapt.decision import Change, Outcome
from plait.faults import reach
from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets, resting_buckets, stored_buckets
from plait.operators.close.lacking import Lacking, lacking_after
from plait.operators.close.next_manifest import next_manifest, results_by_query
from plait.operators.close.watermark import laggard
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.residuals import Predicates
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.results import SPOOL
from plait.operators.traversal.sampler import Sampler
from plait.operators.traversal.scheduling import Probe, Spread, probe_in_phases, probe_stored, with_intermediates
from plait.plan.changelog import needs_filling
from plait.plan.pruning import last_starts
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.handing_over import Handover
from plait.runtime.batch.prober import Prober
from plait.runtime.batch.record import Batch
from plait.runtime.batch.waiting import failing_after, offer
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.losses.counts import counts_of, edge_flows, relation_counts
from plait.runtime.settings import Settings
from plait.runtime.spark.tasks import reports
from plait.sinks.staging import publish, require_staged
from plait.state.garbage import collect
from plait.state.identity import identity_of
from plait.state.manifest import ManifestLog
from plait.state.model import Bucket, Manifest, Undelivered
from plait.state.storage import Storage
from plait.state.trust import trust

_KEPT_MANIFESTS = 10
_TIDY_EVERY = 16


Listener = Callable[[BatchEvent], None]


@dataclass(slots=True, kw_only=True)
class Story:
    """What events say of the plan in force: since when, the change it came by and what the last one brought, each told
    once, and the share of the cost it saves.
    """

    since_ms: int = 0
    change: Change | None = None
    outcome: Outcome | None = None
    gain: float | None = None

    def told(self) -> None:
        """Forget what an event has said."""
        self.change, self.outcome = None, None


class BatchProcessor:
    """Carries out micro-batches on top of the last manifest. `before` is that manifest, or what recovery made of it;
    `dropped`: intermediate stores that the last batch left behind to hold the storage budget. `lacking`: what queries
    find nothing of in the rows that came before them. `claimed`: the queries whose sinks are known to be theirs.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: Settings,
        *,
        listener: Listener,
        clock: Callable[[], float] = time.time,
        predicates: Predicates | None = None,
        claimed: Collection[str] = (),
    ) -> None:
        self._spark, self._storage, self._settings = spark, storage, settings
        self._listener, self._clock = listener, clock
        self._predicates = dict(predicates or {})
        self._log = ManifestLog(storage)
        self._checkpoint = identity_of(storage)
        self._prober = Prober(spark, settings.routing, settings.slots)
        self.sampler = Sampler()
        self.handover = Handover(spark, storage, self._checkpoint, slots=settings.slots, claimed=claimed)
        self._compactor = Compactor(spark, storage)
        self.before: Manifest | None = None
        self._epoch: Epoch | None = None
        self._is_caught_up = False
        self.dropped: frozenset[str] = frozenset()
        self.lacking: tuple[Lacking, ...] = ()
        self._story = Story()

    @property
    def in_force(self) -> Epoch:
        """What governs the next batch."""
        if self._epoch is None:
            raise RuntimeError("no plan is in force")
        return self._epoch

    def govern(self, epoch: Epoch, before: Manifest | None, lacking: tuple[Lacking, ...] | None = None) -> None:
        """Let an epoch begin with the next batch, on top of manifest `before`. `lacking`: what its queries find nothing
        of, None if that is as it was.
        """
        self._epoch, self.before, self._is_caught_up = epoch, before, False
        self._story = Story(since_ms=int(self._clock() * 1000))
        if lacking is not None:
            self.lacking = lacking

    def change(self, epoch: Epoch, change: Change) -> None:
        """Let the epoch that a change leads to begin with the next batch, on top of the last manifest."""
        self._epoch = epoch
        self.tell(change)
        self._is_caught_up = self._is_caught_up and not needs_filling(change.changes)

    def tell(self, change: Change | None = None, outcome: Outcome | None = None) -> None:
        """Let the next batch's event say that the epoch began with a change, or what the one before has brought."""
        if outcome is not None:
            self._story.outcome, self._story.gain = outcome, outcome.gain
        if change is not None:
            now_ms = int(self._clock() * 1000)
            self._story = Story(since_ms=now_ms, change=change, outcome=self._story.outcome, gain=change.gain)

    def process(self, frame: DataFrame, batch: int) -> Batch | None:
        """Carry out batch `batch`; return what was done, None if it had been committed already."""
        epoch, before = self.in_force, self.before
        if before is not None and batch <= before.batch:
            return None
        started = time.perf_counter()
        self._catch_up(epoch, batch)
        work = Batch(number=batch, epoch=epoch, before=self.before, clock_ms=int(self._clock() * 1000))
        phases: dict[str, Callable[[Batch], Batch]] = {
            "ingest": lambda work: self._ingest(work, frame),
            "probe": self._probe_all,
            "close": self._close,
            "deliver": self._deliver,
            "commit": self._commit,
            "publish": self._publish,
            "tidy": self._tidy,
        }
        ends = {"before": time.perf_counter()}
        for name, phase in phases.items():
            work = phase(work)
            ends[name] = time.perf_counter()
        seconds = tuple((name, ends[name] - earlier) for name, earlier in zip(phases, ends.values(), strict=False))
        self._listener(self._event(work, time.perf_counter() - started, seconds))
        self._story.told()
        return work

    def offer(self) -> tuple[tuple[str, int], ...]:
        """Offer to sinks what waits for them; return how many rows were taken of which query."""
        if self.before is None:
            return ()
        offered = offer(self.handover, self._log, self.in_force, self.before)
        self.before = offered.before
        return offered.rows

    def _ingest(self, work: Batch, frame: DataFrame) -> Batch:
        """Let Spark take the rows in."""
        ingested: tuple[IngestReport, ...] = reports(frame.collect())
        reach("stored")
        return replace(work, ingested=ingested)

    def _probe_all(self, work: Batch) -> Batch:
        """Let the new rows traverse the probe trees; with `backfill` the stored ones too, for queries that are new."""
        live, added = self._live(work.epoch), self._to_fill_up(work.epoch)
        delta = tuple(bucket for report in work.ingested for bucket in report.buckets)
        context, probe = self._context(work.epoch, work.number), self._probe(work.epoch)
        probed = probe_in_phases(context, live, delta, probe, self._spread)
        if added:
            probed += self._fill_up(work.epoch, added, live, context, probe)
        sample = self.sampler.take(context, live, delta, probed)
        reach("probed")
        return replace(work, probed=probed, sample=sample)

    def _close(self, work: Batch) -> Batch:
        """Move the watermark, and see what that makes final."""
        epoch = work.epoch
        closed = close(
            work.before,
            epoch.plan,
            epoch.streams,
            work.ingested,
            work.probed,
            work.clock_ms,
            self._settings.habits.cycle,
            self._settings.history,
            work.sample,
        )
        reach("closed")
        return replace(work, closed=closed)

    def _deliver(self, work: Batch) -> Batch:
        """Hand results to their sinks, and make sure that what is staged is in sight of this process."""
        publications, undelivered = self.handover.deliver(work)
        require_staged((*(letter for report in work.ingested for letter in report.publications), *publications))
        reach("delivered")
        return replace(work, publications=publications, undelivered=undelivered)

    def _commit(self, work: Batch) -> Batch:
        """Write the manifest. From here on the batch has happened."""
        if work.closed is None:
            raise RuntimeError("a batch is closed before it is committed")
        manifest = next_manifest(
            work.before,
            work.closed,
            plan=work.epoch.plan,
            plan_id=work.epoch.plan_id,
            batch=work.number,
            ingested=work.ingested,
            probed=work.probed,
            publications=work.publications,
            undelivered=work.undelivered,
            sampled=0 if work.sample is None else work.sample.probe_tuples,
        )
        adopted = replace(manifest, buckets=self._compactor.adopt(manifest.buckets))
        manifest = self._within_budget(adopted, work.epoch)
        self._log.commit(manifest)
        trust(self._storage, manifest.buckets)
        self.before = manifest
        reach("committed")
        return replace(work, manifest=manifest)

    def _publish(self, work: Batch) -> Batch:
        """Rename staged files into sight. What cannot be renamed now is tried again with the next batch."""
        failed = publish(work.settled.publications)
        self.before = replace(work.settled, publications=tuple(each.publication for each in failed))
        reach("published")
        return replace(work, unpublished=failed, published_ms=int(self._clock() * 1000))

    def _tidy(self, work: Batch) -> Batch:
        """Let go of what is not needed any more, and begin to merge what is."""
        self._delete_spooled(work.settled)
        if self.lacking:  # it can only become less while an epoch lasts
            queries = (binding.query for binding in work.epoch.bindings.values())
            self.lacking = lacking_after(queries, work.epoch.plan, work.settled)
        if self._settings.compaction:
            self._compactor.start(work.settled.buckets, work.epoch.plan)
        return work

    def close(self) -> None:
        """Wait for background work."""
        self._compactor.close()

    def _within_budget(self, manifest: Manifest, epoch: Epoch) -> Manifest:
        """Return the manifest without the intermediate stores that have become too large. If the plan stays in force
        nevertheless, they are filled anew before the next batch.
        """
        budget = self._settings.budget
        self.dropped = frozenset() if budget is None else stores_to_drop(budget, epoch.plan, manifest.buckets)
        if not self.dropped:
            return manifest
        self._is_caught_up = False
        return replace(
            manifest, buckets=tuple(bucket for bucket in manifest.buckets if bucket.store not in self.dropped)
        )

    def _context(self, epoch: Epoch, batch: int) -> ProbeContext:
        return ProbeContext(
            plan=epoch.plan,
            batch=batch,
            storage=self._storage,
            buckets={},
            wanted={name: binding.joined for name, binding in epoch.bindings.items()},
            capacity=self._settings.capacity,
            predicates=self._predicates,
        )

    def _probe(self, epoch: Epoch) -> Probe:
        failing = {late.query for late in self._undelivered()} | self.handover.unclaimed(epoch, self.before)
        deliveries = {
            name: binding.delivery(self._checkpoint, spool=name in failing) for name, binding in epoch.bindings.items()
        }
        return lambda tasks, context: self._prober.run(tasks, context, deliveries)

    @property
    def _spread(self) -> Spread:
        return Spread(slots=self._settings.slots)

    def _catch_up(self, epoch: Epoch, batch: int) -> None:
        """Fill the intermediate stores that a new epoch brought from what the others hold."""
        if not self._is_caught_up and self.before is not None:
            live = self._live(epoch)
            filled = with_intermediates(self._context(epoch, batch), live, self._probe(epoch), self._spread)
            self.before = replace(self.before, buckets=filled + resting_buckets(epoch.plan, self.before))
        self._is_caught_up = True

    def _live(self, epoch: Epoch) -> tuple[Bucket, ...]:
        """Return the stored buckets that the next batch works with."""
        find = stored_buckets if self._to_fill_up(epoch) else live_buckets
        return find(epoch.plan, self.before)

    def _to_fill_up(self, epoch: Epoch) -> frozenset[str]:
        """Return the queries that are new to what is stored and wait for the results of the past."""
        if not self._settings.backfill or self.before is None or self.before.batch < 0:
            return frozenset()
        return frozenset(epoch.bindings) - {progress.query for progress in self.before.queries}

    def _fill_up(
        self, epoch: Epoch, added: frozenset[str], live: tuple[Bucket, ...], context: ProbeContext, probe: Probe
    ) -> tuple[ProbeReport, ...]:
        """Send what is kept through the trees of the queries that are new, as if it had all arrived just now."""
        # A query over one stream looks nothing up, so nothing that it would find again is live.
        kept = live + resting_buckets(epoch.plan, self.before)
        return probe_stored(replace(context, plan=last_starts(epoch.plan, added)), kept, probe, self._spread)

    def _undelivered(self) -> tuple[Undelivered, ...]:
        return () if self.before is None else self.before.undelivered

    def _delete_spooled(self, manifest: Manifest) -> None:
        """Delete spooled results that were delivered and, now and then, manifests and files nothing needs."""
        kept = {path for late in manifest.undelivered for path in late.paths}
        for file in self._storage.list(SPOOL, recursive=True):
            if file.path not in kept:
                self._storage.delete(file.path)
        self._storage.delete_empty(SPOOL)
        # What a merge under way has written is named by no manifest yet, and may be old by the time it is.
        if manifest.batch % _TIDY_EVERY == 0 and not self._compactor.is_running:
            self._log.prune(_KEPT_MANIFESTS)
            collect(self._storage, tuple(self._log.read(number) for number in self._log.batches()))

    def _event(self, work: Batch, seconds: float, phases: tuple[tuple[str, float], ...]) -> BatchEvent:
        epoch, manifest, ingested, probed = work.epoch, work.settled, work.ingested, work.found
        rows = results_by_query(probed)
        return BatchEvent(
            batch=manifest.batch,
            rows_in=sum(report.rows for report in ingested),
            late=sum(report.late for report in ingested),
            bad=sum(report.bad for report in ingested),
            results=tuple((query, rows.get(query, 0)) for query in sorted(epoch.bindings)),
            epoch=epoch.number,
            probe_tuples=sum(count for report in probed for _, count in report.probe_tuples),
            sampled_tuples=0 if work.sample is None else work.sample.probe_tuples,
            shuffled_bytes=sum(report.shuffled_bytes for report in probed),
            stored_tuples=sum(bucket.rows for bucket in manifest.buckets),
            stored_bytes=sum(bucket.bytes for bucket in manifest.buckets),
            seconds=seconds,
            published_ms=work.published_ms,
            phases=phases,
            watermark_us=manifest.watermark_us,
            laggard=laggard(epoch.streams, manifest.sources, work.clock_ms),
            failing=failing_after(work),
            dropped=tuple(sorted(self.dropped)),
            sources=counts_of(ingested),
            relations=relation_counts((binding.query for binding in epoch.bindings.values()), ingested),
            flows=edge_flows(probed),
            lacking=self.lacking,
            change=self._story.change,
            outcome=self._story.outcome,
            epoch_ms=int(self._clock() * 1000) - self._story.since_ms,
            epoch_gain=self._story.gain,
        )


__all__ = ["BatchProcessor"]
