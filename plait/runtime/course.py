"""What is under way between two starts of the streaming query: a prepared checkpoint and its batches.

In: what is to run, as `Asked`. Out: the streaming query. What must hold: what is registered changes between two
batches, and what Spark's query does for it only by another start.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change
from plait.adapt.forecast import NEXT_CYCLE
from plait.adapt.planning import PlanRequest
from plait.adapt.rule import NO_MEMORY, Memory
from plait.adapt.within_cycle import WithinCycle
from plait.errors import OptionError
from plait.filesystems import for_spark
from plait.operators.close.lacking import Lacking
from plait.operators.ingest.governing import changes_path, note_changes
from plait.operators.ingest.projection import IngestSpec
from plait.operators.probe.residuals import Predicates
from plait.optimizer.incremental.former import Former
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query, changes
from plait.runtime.admission.bounding import Admission
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.microbatch import BatchProcessor
from plait.runtime.batch.reading_again import Refresher
from plait.runtime.batch.streaming_query import ingest_frame, start_query
from plait.runtime.batch.totals import Totals
from plait.runtime.batch.trial import Tried, trial_frames
from plait.runtime.batch.waiting import failing_at_start
from plait.runtime.batches import Batches
from plait.runtime.checkpoint.asked import Asked
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.offsets import complete_offsets
from plait.runtime.checkpoint.plan_history import entry_of, note_epoch
from plait.runtime.checkpoint.preparing import Prepared, go_on, prepare
from plait.runtime.checkpoint.stored_for_planning import sampling
from plait.runtime.checkpoint.taken_back import read_taken_back
from plait.runtime.losses.empty import Evidence, hints_for
from plait.runtime.losses.malformed import Explainer, read_in_part
from plait.runtime.losses.remembered import changed_outside
from plait.runtime.notice import Notice
from plait.runtime.outputs.binding import Binding
from plait.spelling import plural
from plait.state.model import Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What outlasts a start for the same queries and options: the `change` that Spark's query is started anew for, None
    if it is for something else, and what is remembered of changes. `former`: the plan beside which that for other
    queries is made, None if all are to be planned anew; `adapter`: the one that planned beside the start before.
    """

    change: Change | None = None
    memory: Memory = NO_MEMORY
    former: Former | None = None
    adapter: Adapter | None = None

    @property
    def plan(self) -> Plan | None:
        """The plan to start with."""
        return None if self.change is None else self.change.restarts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A plan for queries that are asked for, and how many have changed since all were planned at once, made `beside`
    one that was in force or was to be: of these, one still has to be when it is taken up.
    """

    made: Former
    beside: tuple[Plan, ...]

    def goes_on_from(self, in_force: Plan) -> bool:
        """Tell whether it can follow a plan: equal ones were not made at the same time."""
        return any(plan is in_force for plan in (*self.beside, self.made.plan))

    def since(self, in_force: Plan) -> tuple[Plan, ...]:
        """Return all that it, and what is made beside it, may follow, without what has been followed already."""
        plans = (*self.beside, self.made.plan)
        places = [place for place, plan in enumerate(plans) if plan is in_force]
        return plans[places[0] :] if places else plans


@dataclass(slots=True, kw_only=True)
class Course:
    """What `asked` has come to. `warnings`: what tables lost when they were read, and what has changed outside the
    checkpoint. `running`: what the streaming query's tasks were started for; `changes`: where they find what else they
    are to do since. `ahead`: the plan that was made last for what is asked meanwhile; `changed`: how many queries have
    come or gone since all were planned at once. `known`: what plans are made on.
    """

    asked: Asked
    prepared: Prepared
    batches: Batches
    warnings: tuple[Notice, ...]
    offered: tuple[tuple[str, int], ...]
    running: tuple[IngestSpec, ...]
    changes: str
    ahead: Ahead | None = None
    changed: int = 0
    known: WithinCycle = field(default_factory=WithinCycle)

    @classmethod
    def begin(
        cls,
        asked: Asked,
        *,
        batch_rows: int | None,
        listener: Callable[[BatchEvent], None],
        clock: Callable[[], float],
        predicates: Predicates,
        explainer: Explainer,
        carried: Carried | None = None,
        is_endless: bool = True,
    ) -> Course:
        """Bring the checkpoint up to date with what is asked. `carried`: what the start before leaves; `is_endless`: it
        goes on until somebody stops it.
        """
        prepared, carried = prepare(asked), carried or Carried()
        memory_of_plans = carried.memory
        if not memory_of_plans.refused:
            memory_of_plans = replace(memory_of_plans, refused=read_taken_back(prepared.storage))
        begin_adapter = Adapter if carried.adapter is None else carried.adapter.successor
        processor = BatchProcessor(
            asked.spark,
            prepared.storage,
            asked.settings,
            listener=listener,
            clock=clock,
            predicates=predicates,
            checkpoint=prepared.identity,
            claimed=prepared.claimed,
            is_endless=is_endless,
        )
        processor.govern(prepared.epoch, prepared.before, prepared.lacking)
        processor.tell(carried.change)
        offered = processor.offer()
        batch = 0 if prepared.before is None else prepared.before.batch + 1
        note_epoch(prepared.storage, entry_of(prepared.epoch, batch, asked.clock_ms, carried.change))
        admission = Admission(asked.spark, asked.checkpoint, batch_rows)
        admission.settle(prepared.epoch.streams, asked.sources, prepared.before)
        return cls(
            asked=asked,
            prepared=prepared,
            batches=Batches(
                prepared=prepared,
                processor=processor,
                adapter=begin_adapter(
                    sampling(asked.request, prepared.storage), asked.settings.habits, memory_of_plans
                ),
                admission=admission,
                refresher=Refresher(asked.spark, prepared.storage, asked.settings, prepared.loaded, asked.clock_ms),
                sources=asked.sources,
                clock=clock,
            ),
            offered=offered,
            warnings=(
                *read_in_part(prepared.loaded, asked.sources, explainer),
                *changed_outside(
                    prepared.storage,
                    prepared.epoch.plan,
                    prepared.committed,
                    () if prepared.before is None else prepared.before.buckets,
                    {name: each.frame for name, each in asked.sources.items() if not changes(each.source)},
                    asked.bindings.values(),
                ),
            ),
            running=prepared.stream_specs,
            changes=changes_path(prepared.epoch.number),
            changed=_changed_since(asked.former, prepared.epoch.heading, asked.request),
        )

    def take_up(
        self, asked: Asked, predicates: Predicates, ahead: Ahead | None = None, *, within: bool = False
    ) -> bool:
        """Let the next batch begin with what is asked now; tell whether the streaming query can go on for it. If not,
        nothing has changed. To be called between two batches. `ahead`: the plan that was made for just this; `within`:
        let a batch go on with it that has stored its rows; false if that cannot be.
        """
        before = self.batches.processor.before
        if before is None or before.batch < 0 or asked.settings != self.asked.settings:
            return False
        in_force = self.epoch.heading
        is_planned = ahead is not None and ahead.goes_on_from(in_force)
        former = ahead.made if ahead is not None and is_planned else self._former(asked, in_force)
        running = Former(plan=self.epoch.base, queries=self.asked.request.queries)
        made = former.plan if former is not None and is_planned else None
        wanted = replace(asked, plan=made, former=_patient(former, asked), running=running)
        plan, prepared = go_on(wanted, self.prepared, before, self.running, within=within)
        if not is_planned:
            self._note_ahead(former, plan, asked.request, in_force)
        if prepared is None:
            return False
        self._begin_with(asked, prepared, before.batch + 1, predicates)
        self.changed = _changed_since(former, plan, asked.request)
        if self.ahead is ahead or not is_planned:
            self.ahead = None
        return True

    def _begin_with(self, asked: Asked, prepared: Prepared, batch: int, predicates: Predicates) -> None:
        """Let a batch begin, or go on, with what the checkpoint was prepared for."""
        note_epoch(prepared.storage, entry_of(prepared.epoch, batch, asked.clock_ms, None))
        note_changes(prepared.storage, self.changes, batch, prepared.taken_in)
        same = {name for name, binding in asked.bindings.items() if self.asked.bindings.get(name) is binding}
        self.batches.processor.handover.keep_claims(same)
        self.batches.processor.predicates = dict(predicates)
        request = sampling(asked.request, prepared.storage)
        adapter = self.batches.adapter
        memory = adapter.memory.for_other_queries()
        self.batches.begin_with(prepared, adapter.successor(request, asked.settings.habits, memory), asked.sources)
        self.asked, self.prepared = asked, prepared

    def plan_ahead(self, asked: Asked) -> Ahead | None:
        """Plan for what is asked now, beside the batch that is under way: on what the last one has shown. None if
        options have changed with it. The batch may begin with another plan meanwhile; if that is not one of those that
        this one was made beside, it is of no use.
        """
        before, in_force = self.batches.processor.before, self.epoch.heading
        if asked.settings != self.asked.settings:
            return None
        former = self._former(asked, in_force)
        request = sampling(asked.request, self.prepared.storage)
        plan = request.plan(self.known.of(before), NEXT_CYCLE, _patient(former, asked))
        self.prepared.written.learn(plan)  # no batch is to wait for that
        return self._note_ahead(former, plan, asked.request, in_force)

    def _note_ahead(self, former: Former | None, plan: Plan, request: PlanRequest, in_force: Plan) -> Ahead:
        made = Former(plan=plan, queries=request.queries, changed=_changed_since(former, plan, request))
        last = self.ahead
        beside = last.since(self.epoch.heading) if last is not None and former is last.made else (in_force,)
        self.ahead = Ahead(made=made, beside=beside)
        return self.ahead

    def _former(self, asked: Asked, in_force: Plan) -> Former | None:
        """Return the plan beside which that for what is asked now is made; None if options have changed with it."""
        if _bare(self.asked.request) != _bare(asked.request):
            return None
        if self.ahead is not None and self.ahead.goes_on_from(in_force):
            return self.ahead.made
        # One that came by reconsidering was made for all queries at once.
        changed = self.changed if in_force is self.prepared.epoch.heading else 0
        return Former(plan=in_force, queries=self.asked.request.queries, changed=changed)

    def unknown(self, bindings: Mapping[str, Binding]) -> frozenset[str]:
        """Return the names under which no batch answers these queries yet."""
        return frozenset(name for name, each in bindings.items() if self.asked.bindings.get(name) is not each)

    @property
    def next_batch(self) -> int:
        """The number of the batch that comes next."""
        before = self.batches.processor.before
        return 0 if before is None else before.batch + 1

    def carried(self, request: PlanRequest) -> Carried:
        """Return what another start for this request takes over."""
        adapter = self.batches.adapter
        if request != self.asked.request:
            ahead, is_alike = self.ahead, _bare(request) == _bare(self.asked.request)
            is_ahead = is_alike and ahead is not None and ahead.goes_on_from(self.epoch.heading)
            memory, former = adapter.memory.for_other_queries(), ahead.made if ahead is not None and is_ahead else None
            return Carried(memory=memory, former=_patient(former, self.asked), adapter=adapter)
        return Carried(change=self.batches.awaited, memory=adapter.memory, adapter=adapter)

    def start(self, trigger: str | None, process: Callable[[DataFrame, int], None]) -> StreamingQuery | None:
        """Start the streaming query, which calls `process` with every batch. None: the input has ended, and all there
        is to do is to offer what waited for sinks, or to decide what is not decided yet.
        """
        if self.batches.has_ended or self.batches.is_ending:
            if trigger is None:
                return None
            raise OptionError(
                f"the input of checkpoint '{self.asked.checkpoint}' has ended, and results wait; run it with "
                "--available-now (in Python run_available()) to hand these over"
            )
        settings = self.asked.settings
        frames = [
            ingest_frame(
                self.batches.admission.opened[spec.source],
                spec,
                self.prepared.taken_in.get(spec.source),
                self.prepared.storage,
                slots=settings.slots,
                shuffle=settings.routing == "shuffle",
                chunk_rows=settings.chunk_rows,
                changes=self.changes,
                generation=self.epoch.generation,
            )
            for spec in self.running
        ]
        return start_query(
            self.asked.spark,
            frames,
            checkpoint=for_spark(posixpath.join(self.asked.checkpoint, "spark")),
            trigger=trigger,
            process=process,
        )

    @property
    def tried(self) -> tuple[Tried, ...]:
        """What Spark computes of arriving rows, stream by stream."""
        opened = self.batches.admission.opened
        return tuple(Tried(opened[spec.source], spec) for spec in self.running)

    def start_trial(self, trigger: str | None, process: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the streaming query for the batch that has failed, whose rows `process` gets as they are."""
        complete_offsets(self.asked.checkpoint)
        checkpoint = for_spark(posixpath.join(self.asked.checkpoint, "spark"))
        frames = trial_frames(self.tried)
        return start_query(self.asked.spark, frames, checkpoint=checkpoint, trigger=trigger, process=process)

    @property
    def dropped(self) -> frozenset[str]:
        """The queries of which nothing is left, since a batch has been committed without them."""
        return self.asked.dropped if self.batches.done else frozenset()

    @property
    def epoch(self) -> Epoch:
        """What governs the next batch."""
        return self.batches.processor.in_force

    @property
    def lacking(self) -> tuple[Lacking, ...]:
        """What queries find nothing of in the rows that came before them."""
        return self.batches.processor.lacking

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
        taken = (
            Notice(
                kind="results taken",
                of=query,
                text=f"the sink of query '{query}' has taken {plural(rows, 'row')} of results that had waited for it",
            )
            for query, rows in self.offered
        )
        return (*self.prepared.notices, *taken, *lacking)

    @property
    def failing(self) -> tuple[tuple[str, str], ...]:
        """Whose results wait, and why, as of the last batch or the start."""
        processor = self.batches.processor
        return failing_at_start(processor.in_force, processor.before)

    def hints(self, queries: Iterable[Query], totals: Totals) -> tuple[tuple[str, str], ...]:
        """Return why those of these queries that had input have no result."""
        before = self.batches.processor.before
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
        self.batches.processor.close()
        if is_replaced:
            self.batches.adapter.forget()
        else:
            self.batches.adapter.close()


def _bare(request: PlanRequest) -> PlanOptions:
    """Return the options without the sources, which may come beside a plan that goes on."""
    return replace(request.options, sources=())


def _patient(former: Former | None, asked: Asked) -> Former | None:
    """Return a former plan beside which others are made however many queries have changed since it was, where the whole
    plan is reconsidered beside the stream anyway: nobody who asks for a query is to wait until all are planned anew.
    """
    return former if former is None or not asked.settings.habits.adapts else replace(former, changed=0)


def _changed_since(former: Former | None, plan: Plan, request: PlanRequest) -> int:
    """Return how many queries have come or gone since all were planned at once."""
    return 0 if former is None else former.after(plan, request.queries).changed


__all__ = ["Ahead", "Carried", "Course"]
