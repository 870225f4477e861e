"""One micro-batch, from the streaming query's call to the committed manifest: the only place where effects are ordered.

ingest    Spark runs the ingest tasks: buckets are written
probe     starting tuples traverse the probe trees; results are spooled or staged; so does a slice of what is stored, if
          intermediate stores come
close     the watermark moves: what is final now becomes results as those of probing are, and buckets expire
deliver   spooled results go to their sinks (staged where the sink is files)
commit    manifest b is written; from here on the batch has happened
publish   staged files are renamed into sight, and sinks that remember batches get this one
tidy      the spool goes; deleting old manifests and garbage, and merging, begin beside the next batches

Killed before the commit, the batch runs again on the same offsets and nothing of the first try was visible. Killed
after it, the manifest says what to publish and that the batch is done. A sink that fails keeps its results
undelivered; the batch goes on.

Two kinds of batches read nothing, and are none of Spark's: one in which the watermark moves by itself, because a
stream has been silent for too long, or one for queries that read the groups of others (`pass_time`, `settle`); and the
last ones of an input that ends, whose watermark is the end of time (`end`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from plait.adapt.decision import Change, Outcome
from plait.faults import reach
from plait.operators.close.closing import Closed, close
from plait.operators.close.keeping import live_buckets, resting_buckets
from plait.operators.close.lacking import Lacking, lacking_after
from plait.operators.close.levels import taken_after
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.residuals import Predicates
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.filling_up import AT_ONCE_ROWS, AllAtOnce, begun, fill_up, rows_left
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.refreshing import Refreshed
from plait.operators.traversal.sampler import Sampler
from plait.operators.traversal.scheduling import Probe, probe_in_phases, with_intermediates
from plait.operators.traversal.slicing import arranged, take
from plait.plan.model import Store
from plait.plan.traversals import intermediates
from plait.runtime.batch.awaiting import awaits
from plait.runtime.batch.building_indexes import Indexer
from plait.runtime.batch.closing_groups import close_groups
from plait.runtime.batch.committing import Committer
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.equipment import Equipment
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.finding_certain import with_certain
from plait.runtime.batch.handing_over import Handover
from plait.runtime.batch.made_groups import take_groups
from plait.runtime.batch.prober import Prober
from plait.runtime.batch.record import Batch
from plait.runtime.batch.reporting import Story, event_of
from plait.runtime.batch.sweeping import Sweeper
from plait.runtime.batch.throttle import Throttle
from plait.runtime.batch.tidying import Tidier
from plait.runtime.batch.waiting import offer
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.settings import Settings
from plait.runtime.spark.tasks import reports
from plait.sinks.staging import publish
from plait.state.batch_numbers import note_unfed
from plait.state.manifest import ManifestLog
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage

Listener = Callable[[BatchEvent], None]

Concerns: TypeAlias = Callable[[Batch], bool]
Finder: TypeAlias = Callable[[Batch, Closed], Closed]
"""Adds to what a batch has closed the results that this makes final, and takes what was kept for them out of it."""
_Phase: TypeAlias = tuple[str, "str | None", Callable[[Batch], Batch]]


class BatchProcessor:
    """Carries out micro-batches on top of the last manifest. `before` is that manifest, or what recovery made of it;
    `lacking`: what queries find nothing of in the rows that came before them. `checkpoint`: its id; `claimed`: the
    queries whose sinks are known to be theirs; `is_endless`: batches go on to come until somebody ends that.
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
        checkpoint: str,
        claimed: Collection[str] = (),
        is_endless: bool = True,
    ) -> None:
        self._spark, self._storage, self._settings = spark, storage, settings
        self._listener, self._clock = listener, clock
        self.predicates = dict(predicates or {})
        self._is_endless = is_endless
        self._prober = Prober(spark, settings.routing, settings.slots)
        self._slicer = Prober(spark, settings.routing, settings.slots)
        self.throttle = Throttle()
        self.indexer = Indexer(spark, storage)
        self.sampler = Sampler()
        self.handover = Handover(spark, storage, checkpoint, slots=settings.slots, claimed=claimed)
        self._equipment = Equipment(storage=storage, settings=settings, checkpoint=checkpoint, handover=self.handover)
        self._compactor = compactor = Compactor(spark, storage)
        self._committer = Committer(storage=storage, compactor=compactor, budget=settings.budget)
        self._sweeper = Sweeper(storage)
        self._tidier = Tidier(storage=storage, compactor=compactor, sweeper=self._sweeper, merges=settings.compaction)
        self.before: Manifest | None = None
        self._epoch: Epoch | None = None
        self._is_caught_up = False
        self._complete: dict[str, Store] = {}
        self.lacking: tuple[Lacking, ...] = ()
        self._story, self._phase = Story(), ""
        self._finders: tuple[tuple[Concerns, Finder], ...] = (
            (Batch.has_joins, self._find_certain),
            (Batch.has_groups, self._close_groups),
        )

    @property
    def in_force(self) -> Epoch:
        """What governs the next batch."""
        if self._epoch is None:
            raise RuntimeError("no plan is in force")
        return self._epoch

    @property
    def is_taking_in(self) -> bool:
        """Whether the batch under way takes rows in, or the last one ended with that."""
        return self._phase == "ingest"

    def govern(self, epoch: Epoch, before: Manifest | None, lacking: tuple[Lacking, ...] | None = None) -> None:
        """Let an epoch begin with the next batch, on top of manifest `before`. `lacking`: what its queries find nothing
        of, None if that is as it was.
        """
        self._epoch, self.before, self._is_caught_up, self._complete = epoch, before, False, {}
        # What no event has told yet is still to be told: the batch may have begun with another plan.
        self._story = replace(self._story, since_ms=self._now_ms(), gain=None, promised=None)
        if lacking is not None:
            self.lacking = lacking

    def change(self, epoch: Epoch, change: Change) -> None:
        """Let the epoch that a change leads to begin with the next batch, on top of the last manifest."""
        self._epoch, self._is_caught_up = epoch, False
        self.tell(change)

    def tell(self, change: Change | None = None, outcome: Outcome | None = None) -> None:
        """Let the next batch's event say that the epoch began with a change, or what the one before has brought."""
        if outcome is not None:
            self._story.outcome, self._story.gain = outcome, outcome.gain
        if change is not None:
            self._story = self._story.begun_with(change, self._now_ms())

    def begin_with(self, refreshed: Refreshed) -> None:
        """Let the next batch begin with other rows of tables."""
        self.before, self._is_caught_up = refreshed.manifest, self._is_caught_up and not refreshed.given_up
        self._complete = {name: store for name, store in self._complete.items() if name not in refreshed.given_up}

    def process(self, frame: DataFrame, batch: int, take_up: Callable[[], None] = lambda: None) -> Batch | None:
        """Carry out batch `batch`; return what was done, None if it had been committed already. `take_up` is called
        when its rows are stored: whatever governs from then on has them as it has all that was stored before.
        """
        before = self.before
        if before is not None and batch <= before.batch:
            return None
        return self._carry_out(batch, lambda: reports(frame.collect()), take_up)

    def pass_time(self) -> Batch | None:
        """Carry out a batch that nothing is read for, if streams have been silent for so long that the watermark moves
        without them, and something waits for that; return None if not.
        """
        return self._go_on(self._now_ms())

    def settle(self) -> Batch | None:
        """Carry out a batch that nothing is read for, if queries over the groups of others have not come as far as the
        watermark, and something waits for that; return None if not.
        """
        return self._go_on(None)

    def _go_on(self, clock_ms: int | None) -> Batch | None:
        before, epoch = self.before, self.in_force
        if before is None or before.batch < 0 or before.ended:
            return None
        if not awaits(before, epoch, clock_ms):
            return None
        work = self._carry_out(before.batch + 1, tuple, lambda: None, is_fed=False)
        note_unfed(self._storage, work.settled.unfed)
        return work

    def end(self) -> Batch:
        """Carry out the last batch, or the next one of the last: nothing more will come, so all that waits is decided,
        level by level where queries read the groups of others.
        """
        batch = 0 if self.before is None else self.before.batch + 1
        return self._carry_out(batch, tuple, lambda: None, is_fed=False, is_end=True)

    def _carry_out(
        self,
        batch: int,
        ingest: Callable[[], tuple[IngestReport, ...]],
        take_up: Callable[[], None],
        *,
        is_fed: bool = True,
        is_end: bool = False,
    ) -> Batch:
        """Carry out a batch of what `ingest` takes in."""
        epoch, started = self.in_force, time.perf_counter()
        self.throttle.begun()
        self._catch_up(epoch, batch)
        work = Batch(
            number=batch,
            epoch=epoch,
            before=self.before,
            clock_ms=self._now_ms(),
            is_fed=is_fed,
            is_end=is_end,
        )
        seconds, ends = dict[str, float](), time.perf_counter()
        for name, done, phase in self._phases(ingest, take_up):
            self._phase = name
            work = phase(work)
            self.before = work.after
            if done is not None:
                reach(done)
            began, ends = ends, time.perf_counter()
            seconds[name] = ends - began
        self._is_caught_up = not work.dropped
        self._complete = {name: store for name, store in self._complete.items() if name not in work.dropped}
        if self.lacking:  # it can only become less while an epoch lasts
            queries = (binding.query for binding in work.epoch.bindings.values())
            known = replace(work.settled, buckets=work.epoch.seen(work.settled.buckets))
            self.lacking = lacking_after(queries, work.epoch.plan, known)
        self._listener(event_of(work, self._story, self.lacking, {**seconds, "": time.perf_counter() - started}))
        self._story.told()
        self.throttle.over()
        return work

    def offer(self) -> tuple[tuple[str, int], ...]:
        """Offer to sinks what waits for them; return how many rows were taken of which query."""
        if self.before is None:
            return ()
        offered = offer(self.handover, ManifestLog(self._storage), self.in_force, self.before)
        self.before = offered.before
        return offered.rows

    def _phases(
        self, ingest: Callable[[], tuple[IngestReport, ...]], take_up: Callable[[], None]
    ) -> tuple[_Phase, ...]:
        """Return what is done with a batch, in order: each phase with its name, and with the name of the moment when it
        is over, at which a kill has other consequences than before.
        """
        return (
            ("ingest", "stored", lambda work: replace(work, ingested=(*ingest(), *self._take_groups(work)))),
            ("probe", "probed", lambda work: self._probe_all(self._with_taken_up(work, take_up))),
            ("close", "closed", self._close),
            ("deliver", "delivered", self.handover.deliver),
            ("commit", "committed", self._committer.commit),
            (
                "publish",
                "published",
                lambda work: replace(
                    self.handover.settle(replace(work, unpublished=publish(work.settled.publications))),
                    published_ms=self._now_ms(),
                ),
            ),
            ("tidy", None, self._tidier.tidy),
        )

    def _take_groups(self, work: Batch) -> tuple[IngestReport, ...]:
        return take_groups(self._spark, self._storage, work, self._settings.chunk_rows)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _with_taken_up(self, work: Batch, take_up: Callable[[], None]) -> Batch:
        """Let the batch go on under the plan that governs once more has been taken up."""
        take_up()
        if self._epoch is work.epoch:
            return work
        self.sampler.plan = None  # it was made beside the plan before
        self._catch_up(self.in_force, work.number)
        return replace(work, epoch=self.in_force, before=self.before)

    def _probe_all(self, work: Batch) -> Batch:
        """Let the new rows traverse the probe trees; and those of the past for queries that want their results."""
        live = live_buckets(work.epoch.plan, self.before)
        context, probe = self._context(work.epoch, work.number), self._probe(work.epoch, self._prober)
        delta = tuple(bucket for report in work.ingested for bucket in report.buckets)
        tables = self._equipment.tables(work, self.before, (*live, *delta))
        probed = probe_in_phases(replace(context, tables=tables), live, delta, probe, self._equipment.spread)
        work = replace(work, probed=probed, sample=self.sampler.take(context, live, delta, probed))
        return self._fill_up(self._take(work, live, context), context)

    def _take(self, work: Batch, live: tuple[Bucket, ...], context: ProbeContext) -> Batch:
        """Take a slice of what was stored before, for intermediate stores that come."""
        before = work.before
        if before is None or not any(filling.left for filling in before.fillings):
            return work

        def probe(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
            return self._slicer.run(tasks, context, {})

        taken = take(context, before.fillings, live, probe, self._equipment.spread, self.throttle)
        before = replace(before, buckets=before.buckets + taken.buckets, fillings=taken.fillings)
        return replace(work, before=before, taken=taken)

    def close(self) -> None:
        """Wait for background work, and note what sinks have taken since the last manifest."""
        self.handover.close(ManifestLog(self._storage))
        self._compactor.close()
        self.indexer.close()
        self._sweeper.close()

    def _close(self, work: Batch) -> Batch:
        """Move the watermark, and see what that makes final."""
        closed = close(
            work.before,
            work.epoch.plan,
            work.epoch.streams,
            work.ingested,
            work.probed,
            work.clock_ms,
            self._settings.habits.cycle,
            self._settings.history,
            work.sample,
            is_end=work.is_end,
            taken=taken_after(work.before, work.epoch.makers),
        )
        for concerns, find in self._finders:
            if concerns(work):
                closed = find(work, closed)
        return replace(work, closed=closed)

    def _close_groups(self, work: Batch, closed: Closed) -> Closed:
        return close_groups(
            self._spark, self._storage, work, closed, lambda: self._equipment.final_deliveries(work.epoch, self.before)
        )

    def _find_certain(self, work: Batch, closed: Closed) -> Closed:
        """Find the rows without a partner, and those that have the first one, that are certain now."""
        waiting = [name for name, each in work.epoch.bindings.items() if each.query.joins]
        deliveries = self._equipment.deliveries(work.epoch, self.before, waiting)
        live = live_buckets(work.epoch.plan, work.before)
        return with_certain(self._storage, work, closed, live, deliveries)

    def _context(self, epoch: Epoch, batch: int) -> ProbeContext:
        return self._equipment.context(epoch, batch, self.before, self.predicates)

    def _probe(self, epoch: Epoch, prober: Prober) -> Probe:
        deliveries = self._equipment.deliveries(epoch, self.before, epoch.bindings)
        return lambda tasks, context: prober.run(tasks, context, deliveries)

    def _catch_up(self, epoch: Epoch, batch: int) -> None:
        """Let intermediate stores come that a new epoch brought, and fill those at once that it reads already."""
        if self._is_caught_up:
            return
        if self.before is not None:
            self.before = begun(epoch.past, self.before, batch)
            found = arranged(epoch.plan, self.before.buckets, self.before.fillings, batch, self._complete)
            self.before = replace(self.before, buckets=found.buckets, fillings=found.fillings)
            context, live = self._context(epoch, batch), live_buckets(epoch.plan, self.before)
            probe = self._probe(epoch, self._prober)
            filled = with_intermediates(context, live, probe, self._equipment.spread, found.complete)
            self.before = replace(self.before, buckets=filled + resting_buckets(epoch.plan, self.before))
        stores = (store for store, _ in intermediates(epoch.plan))
        self._complete = {store.id: store for store in stores if store.id not in epoch.plan.coming}
        self._is_caught_up = True

    def _fill_up(self, work: Batch, context: ProbeContext) -> Batch:
        """Take a slice of what was stored before queries came that are to have its results: all there is, if that is
        little, or nothing comes after this run.
        """
        before = work.before
        if before is None or not before.filling_up:
            return work
        is_little = not self._is_endless or rows_left(before) <= AT_ONCE_ROWS
        allowance = AllAtOnce() if is_little else self.throttle
        probe = self._probe(work.epoch, self._slicer)
        filled = fill_up(context, work.epoch.past, before, probe, self._equipment.spread, allowance)
        return replace(
            work, before=filled.manifest, probed=work.probed + filled.reports, past_tuples=filled.probe_tuples
        )


__all__ = ["BatchProcessor"]
