"""What is under way between two starts of the streaming query: a prepared checkpoint, its batches, changes of plan.

In: what is to run, as `Asked`. Out: the streaming query, whose batches it carries out. What must hold: a change of plan
takes effect between two batches, and what is registered changes only by another start.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change
from plait.adapt.planning import PlanRequest
from plait.adapt.rule import NO_MEMORY, Memory
from plait.filesystems import for_spark
from plait.operators.close.lacking import Lacking
from plait.operators.probe.residuals import Predicates
from plait.plan.model import Plan
from plait.query.model import Query
from plait.runtime.admission.bounding import Admission
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.microbatch import BatchProcessor
from plait.runtime.batch.stream import ingest_frame, start_query
from plait.runtime.batch.totals import Totals
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.plan_history import entry_of, note_epoch, note_outcome
from plait.runtime.checkpoint.preparing import Asked, Prepared, prepare
from plait.runtime.inputs.opening import OpenSource
from plait.runtime.losses.empty import Evidence, hints_for
from plait.runtime.losses.malformed import Explainer, read_in_part
from plait.runtime.losses.remembered import changed_outside
from plait.runtime.notice import Notice
from plait.runtime.outputs.deliverer import MemoryResults
from plait.state.model import Bucket, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What outlasts a start for the same queries and options: the `change` that Spark's query is started anew for, None
    if it is for something else, and what is remembered of changes.
    """

    change: Change | None = None
    memory: Memory = NO_MEMORY

    @property
    def plan(self) -> Plan | None:
        """The plan to start with."""
        return None if self.change is None else self.change.restarts


@dataclass(slots=True, kw_only=True)
class Course:
    """What `asked` has come to. `admission` is told what batches bring, and says when streams should be bounded
    otherwise; `adapter` too, and says when the plan should be another.
    """

    asked: Asked
    prepared: Prepared
    processor: BatchProcessor
    adapter: Adapter
    admission: Admission
    clock: Callable[[], float]
    awaited: Change | None = None

    @classmethod
    def begin(
        cls,
        asked: Asked,
        *,
        batch_rows: int | None,
        listener: Callable[[BatchEvent], None],
        clock: Callable[[], float],
        predicates: Predicates,
        memory: dict[str, MemoryResults],
        carried: Carried | None = None,
    ) -> Course:
        """Bring the checkpoint up to date with what is asked. `memory`: where the results of memory sinks are kept,
        `carried`: what the start before leaves.
        """
        prepared, carried = prepare(asked), carried or Carried()
        processor = BatchProcessor(
            asked.spark,
            prepared.storage,
            asked.settings,
            listener=listener,
            clock=clock,
            predicates=predicates,
            claimed=prepared.claimed,
        )
        processor.handover.deliverer.memory = memory
        processor.govern(prepared.epoch, prepared.before, prepared.lacking)
        processor.tell(carried.change)
        batch = 0 if prepared.before is None else prepared.before.batch + 1
        note_epoch(prepared.storage, entry_of(prepared.epoch, batch, asked.clock_ms, carried.change))
        admission = Admission(asked.spark, asked.checkpoint, batch_rows)
        admission.settle(prepared.epoch.streams, () if prepared.before is None else prepared.before.sources)
        return cls(
            asked=asked,
            prepared=prepared,
            processor=processor,
            adapter=Adapter(asked.request, asked.settings.habits, carried.memory),
            admission=admission,
            clock=clock,
        )

    def carried(self, request: PlanRequest) -> Carried:
        """Return what another start for this request takes over."""
        if request != self.asked.request:
            return Carried()
        return Carried(change=self.awaited, memory=self.adapter.memory)

    def warnings(self, explainer: Explainer) -> Iterator[Notice]:
        """Yield what tables lost when they were read, and what has changed outside the checkpoint."""
        prepared, opened = self.prepared, self.asked.sources
        yield from read_in_part(prepared.loaded, opened, explainer)
        yield from changed_outside(
            prepared.storage,
            prepared.epoch.plan,
            self.stored,
            {name: each.frame for name, each in opened.items()},
            self.asked.bindings.values(),
        )

    def start(self, trigger: str | None, process: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the streaming query, which calls `process` with every batch."""
        settings = self.asked.settings
        frames = [
            ingest_frame(
                self._bounded(spec.source),
                spec,
                self.prepared.storage,
                slots=settings.slots,
                shuffle=settings.routing == "shuffle",
                chunk_rows=settings.chunk_rows,
            )
            for spec in self.prepared.stream_specs
        ]
        return start_query(
            self.asked.spark,
            frames,
            checkpoint=for_spark(posixpath.join(self.asked.checkpoint, "spark")),
            trigger=trigger,
            process=process,
        )

    def _bounded(self, source: str) -> OpenSource:
        return self.admission.bounded(self.asked.sources[source])

    def carry_out(self, frame: DataFrame, batch: int) -> Manifest | None:
        """Change the plan if that gains, then carry out a batch; return its manifest, None if it had happened."""
        self._change_plan(batch)
        manifest = self.processor.process(frame, batch)
        if manifest is not None:
            self.adapter.batch_done(manifest, self.epoch.plan, self.processor.dropped)
        return manifest

    def _change_plan(self, batch: int) -> None:
        """Let the batch begin with another plan if that gains; or let there be a restart after it, if it takes one."""
        if self.awaited is not None:
            return
        storage, change = self.prepared.storage, self.adapter.next_change(self.epoch.plan)
        outcome = self.adapter.last_outcome()
        if outcome is not None:
            note_outcome(storage, self.epoch.number, outcome)
            self.processor.tell(outcome=outcome)
        if change is not None and change.restarts is not None:
            self.awaited = change
        elif change is not None:
            epoch = self.prepared.next_epoch(self.epoch, change)
            self.processor.change(epoch, change)
            note_epoch(storage, entry_of(epoch, batch, int(self.clock() * 1000), change))

    def needs_restart(self, last: BatchEvent | None, manifest: Manifest) -> bool:
        """Tell whether there should be another start: for a plan that reads or places rows otherwise, or because the
        batch shows that streams should be bounded otherwise.
        """
        if self.awaited is not None:
            return True
        if last is None:
            return False
        return self.admission.batch_done({counts.source: counts.rows for counts in last.sources}, manifest.sources)

    @property
    def epoch(self) -> Epoch:
        """What governs the next batch."""
        if self.processor.epoch is None:
            raise RuntimeError("no plan is in force")
        return self.processor.epoch

    @property
    def lacking(self) -> tuple[Lacking, ...]:
        """What queries find nothing of in the rows that came before them."""
        return self.processor.lacking

    @property
    def stored(self) -> tuple[Bucket, ...]:
        """What the start found stored."""
        return () if self.prepared.before is None else self.prepared.before.buckets

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the user should know of this start."""
        lacking = (
            Notice(kind="rows lacking", of=f"{each.query} {each.stream}", text=each.text)
            for each in self.prepared.lacking
        )
        return (*self.prepared.notices, *lacking)

    def hints(self, queries: Iterable[Query], totals: Totals) -> tuple[tuple[str, str], ...]:
        """Return why those of these queries that had input have no result."""
        before = self.processor.before
        if before is None:
            return ()
        progress = {known.source: known for known in before.sources}
        evidence = Evidence(plan=self.epoch.plan, progress=progress, flows=totals.flows)
        arrived = frozenset(name for name, counts in totals.sources.items() if counts.rows)
        return hints_for(queries, totals.queries, arrived, evidence)

    def close(self, *, is_replaced: bool = False) -> None:
        """Wait for background work. One that `is_replaced` by another start leaves the solver alone, whose plan is of
        no use any more: it may take as long as its time limit, and cannot be interrupted.
        """
        self.processor.close()
        self.adapter.close(wait=not is_replaced)


__all__ = ["Course"]
