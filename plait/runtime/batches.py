"""Batch after batch, and the changes of plan between them.

What must hold: a change of plan takes effect between two batches; one that reads or places rows otherwise, only by
another start of the streaming query. One that brings intermediate stores leads to its plan in stages
(`plait.plan.coming`): queries read them once they are filled, and a change may come before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change, Reason
from plait.adapt.reconsidering import UnderWay
from plait.operators.traversal.slicing import filled
from plait.plan.changelog import StoreRemoved, applied, changelog
from plait.plan.coming import Way, settled_id
from plait.runtime.admission.bounding import Admission
from plait.runtime.batch.building_indexes import MOST_AT_ONCE, Unindexed, unindexed
from plait.runtime.batch.microbatch import BatchProcessor
from plait.runtime.batch.reading_again import Refresher
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.plan_history import entry_of, note_epoch, note_outcome
from plait.runtime.checkpoint.preparing import Prepared
from plait.runtime.checkpoint.taken_back import note_taken_back
from plait.runtime.inputs.opening import OpenSource
from plait.state.model import END_OF_TIME_US, Filling


@dataclass(slots=True, kw_only=True)
class Batches:
    """Carries them out. `adapter` and `admission` are told what they bring, and say when the plan should be another,
    and when streams should be bounded otherwise; `refresher` when tables of the `sources` are to be read again.
    `awaited`: the change that takes another start; `done`: how many batches there were.
    """

    prepared: Prepared
    processor: BatchProcessor
    adapter: Adapter
    admission: Admission
    refresher: Refresher
    sources: Mapping[str, OpenSource]
    clock: Callable[[], float]
    awaited: Change | None = None
    done: int = 0
    _ran: Epoch | None = None
    _broken: bool = False

    def carry_out(self, frame: DataFrame, batch: int, take_up: Callable[[], None] = lambda: None) -> bool:
        """Change the plan if that gains, then carry out what Spark calls batch `batch`, unless it had happened.
        `take_up` is called when its rows are stored. Tell whether there should be another start after it: for a plan
        that reads or places rows otherwise, or because the batch shows that streams should be bounded otherwise.
        """
        batch += 0 if self.processor.before is None else self.processor.before.unfed
        self._change_plan(batch)
        self._refresh()
        self.processor.sampler.plan = self.adapter.next_sample(self.processor.in_force.heading)
        work = self.processor.process(frame, batch, take_up)
        if work is None:
            return False
        self.done, self._ran = self.done + 1, work.epoch
        self._broken = bool(work.dropped.intersection(store.id for store in work.epoch.base.stores))
        self.adapter.batch_done(
            work.settled,
            work.epoch.heading,
            frozenset(map(settled_id, work.dropped)),
            UnderWay(plan=work.epoch.plan, slice_s=self.processor.throttle.slice_s),
        )
        if self.awaited is not None:
            return True
        watch = self.admission.watch
        if watch is None or not watch.batch_done(work.rows):
            return False
        return watch.settled(*self.admission.look(work.settled.sources))

    def pass_time(self) -> None:
        """Carry out a batch that nothing is read for, if the watermark moves by itself and something waits for that. To
        be called between two batches.
        """
        if self.processor.pass_time() is not None:
            self.done += 1

    def settle(self) -> None:
        """Carry out what batches are left for queries over the groups of others, once all there is has been read."""
        while self.processor.settle() is not None:
            self.done += 1

    def end(self) -> None:
        """Carry out the last batches, unless they have been: nothing more will come."""
        while not self.has_ended:
            self.processor.end()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        before = self.processor.before
        return before is not None and before.ended

    @property
    def is_ending(self) -> bool:
        """Whether nothing more will come, but not all that waited has been decided."""
        before = self.processor.before
        return before is not None and not before.ended and before.watermark_us == END_OF_TIME_US

    def begin_with(self, prepared: Prepared, adapter: Adapter, sources: Mapping[str, OpenSource]) -> None:
        """Let the next batch begin with what the checkpoint was prepared for, in place of what it was before."""
        self.sources = sources
        self.refresher.note(prepared.loaded, int(self.clock() * 1000))
        self.prepared, self.adapter, self.awaited, self.done, self._broken = prepared, adapter, None, 0, False
        self.processor.govern(prepared.epoch, prepared.before, prepared.lacking)

    def _change_plan(self, batch: int) -> None:
        """Let the batch begin with another plan if that gains; or let there be a restart after it, if it takes one."""
        if self.awaited is not None:
            return
        self._go_on(batch)
        epoch = self.processor.in_force
        change, outcome = self.adapter.next_change(epoch.heading), self.adapter.last_outcome()
        if outcome is not None:
            note_outcome(self.prepared.storage, epoch.number, outcome)
            self.processor.tell(outcome=outcome)
            if outcome.taken_back:
                note_taken_back(self.prepared.storage, self.adapter.memory.refused)
        if change is not None and change.restarts is not None:
            self.awaited = change
        elif change is not None:
            goal = applied(change.changes, epoch.heading)
            # What answers the queries now has lost a store that it reads, so the new plan cannot wait for anything.
            base = goal if self._broken else epoch.base
            way = Way(base=base, goal=goal, filled=filled(goal, self._fillings()))
            work = self._unindexed(way)
            rows = sum(bucket.rows for bucket, _ in work)
            if rows > MOST_AT_ONCE:
                self.processor.indexer.start(work)
                way, change = replace(way, indexed=False), replace(change, indexing=rows)
            self._begin(way, change, batch)

    def _refresh(self) -> None:
        """Let the batch begin with tables as they are now, where they are to be read again."""
        before = self.processor.before
        if before is not None:
            plan, now_ms = self.processor.in_force.plan, int(self.clock() * 1000)
            for found in self.refresher.refresh(self.sources, plan, before, now_ms):
                self.processor.begin_with(found)

    def _unindexed(self, way: Way) -> tuple[Unindexed, ...]:
        """Return the indexes that stored buckets lack on a way."""
        before = self.processor.before
        buckets = () if before is None else before.buckets
        return tuple(unindexed(way.base, (way.plan, way.goal), buckets, self.prepared.storage))

    def _go_on(self, batch: int) -> None:
        """Let the next stage begin if what it waits for is there, or a store has been given up that this one reads to
        fill others.
        """
        way = self.processor.in_force.way
        if way is None or self.processor.in_force is not self._ran:
            return
        come = filled(way.goal, self._fillings())
        waits = come == way.filled if way.indexed else not self.processor.indexer.is_done
        if waits:
            return
        onward, before = replace(way, filled=come, indexed=True), self.processor.in_force.plan
        changes = tuple(
            change
            for change in changelog(before, onward.plan)
            if not (isinstance(change, StoreRemoved) and change.store in before.coming)
        )
        reason: Reason = "filled" if way.indexed else "indexed"
        self._begin(onward, Change(reason=reason, changes=changes, cost_before=None, cost_after=None), batch)

    def _begin(self, way: Way, change: Change, batch: int) -> None:
        """Let the batch begin with the next stage of a way."""
        epoch = self.prepared.next_epoch(self.processor.in_force, way)
        change = replace(change, filling=tuple(sorted(way.lacking)))
        self.processor.change(epoch, change)
        note_epoch(self.prepared.storage, entry_of(epoch, batch, int(self.clock() * 1000), change))

    def _fillings(self) -> tuple[Filling, ...]:
        before = self.processor.before
        return () if before is None else before.fillings


__all__ = ["Batches"]
