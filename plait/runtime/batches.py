"""Batch after batch, and the changes of plan between them.

What must hold: a change of plan takes effect between two batches; one that reads or places rows otherwise, only by
another start of the streaming query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change
from plait.runtime.admission.bounding import Admission
from plait.runtime.batch.microbatch import BatchProcessor
from plait.runtime.checkpoint.plan_history import entry_of, note_epoch, note_outcome
from plait.runtime.checkpoint.preparing import Prepared
from plait.runtime.checkpoint.taken_back import note_taken_back


@dataclass(slots=True, kw_only=True)
class Batches:
    """Carries them out. `adapter` and `admission` are told what they bring, and say when the plan should be another,
    and when streams should be bounded otherwise. `awaited`: the change that takes another start; `done`: how many
    batches there were.
    """

    prepared: Prepared
    processor: BatchProcessor
    adapter: Adapter
    admission: Admission
    clock: Callable[[], float]
    awaited: Change | None = None
    done: int = 0

    def carry_out(self, frame: DataFrame, batch: int) -> bool:
        """Change the plan if that gains, then carry out a batch, unless it had happened. Tell whether there should be
        another start after it: for a plan that reads or places rows otherwise, or because the batch shows that streams
        should be bounded otherwise.
        """
        self._change_plan(batch)
        self.processor.sampler.plan = self.adapter.next_sample(self.processor.in_force.plan)
        work = self.processor.process(frame, batch)
        if work is None:
            return False
        self.done += 1
        self.adapter.batch_done(work.settled, work.epoch.plan, work.dropped)
        if self.awaited is not None:
            return True
        watch = self.admission.watch
        if watch is None or not watch.batch_done(work.rows):
            return False
        return watch.settled(*self.admission.look(work.settled.sources))

    def begin_with(self, prepared: Prepared, adapter: Adapter) -> None:
        """Let the next batch begin with what the checkpoint was prepared for, in place of what it was before."""
        self.adapter.close(wait=False)
        self.prepared, self.adapter, self.awaited, self.done = prepared, adapter, None, 0
        self.processor.govern(prepared.epoch, prepared.before, prepared.lacking)

    def _change_plan(self, batch: int) -> None:
        """Let the batch begin with another plan if that gains; or let there be a restart after it, if it takes one."""
        if self.awaited is not None:
            return
        storage, epoch = self.prepared.storage, self.processor.in_force
        change, outcome = self.adapter.next_change(epoch.plan), self.adapter.last_outcome()
        if outcome is not None:
            note_outcome(storage, epoch.number, outcome)
            self.processor.tell(outcome=outcome)
            if outcome.taken_back:
                note_taken_back(storage, self.adapter.memory.refused)
        if change is not None and change.restarts is not None:
            self.awaited = change
        elif change is not None:
            epoch = self.prepared.next_epoch(epoch, change)
            self.processor.change(epoch, change)
            note_epoch(storage, entry_of(epoch, batch, int(self.clock() * 1000), change))


__all__ = ["Batches"]
