"""Take a few of a batch's tuples along orders that are not in force, to see what these would find.

The sample is every so manieth row of each bucket, in the order of its keys: spread over all of them, and the same
whoever repeats the batch. Nothing is delivered and nothing kept. Whatever goes wrong concerns statistics alone: a
predicate may fail for pairs that the plan in force never compares.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from plait.adapt.other_orders import Allowance
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport, Sample
from plait.operators.traversal.driving import may_run_here, work_of
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import by_store
from plait.operators.traversal.traverse import Traversal
from plait.plan.model import Plan
from plait.sinks.delivery import Discarded
from plait.state.model import Bucket

MOST_SORTED = 100_000
"""A batch waits about 30 ms for so many rows to be sorted by another key."""

Indexed: TypeAlias = Mapping[str, frozenset[tuple[str, ...]]]
"""The indexes of stores."""

_LOG = logging.getLogger(__name__)


class Sampler:
    """Samples with one batch after a `plan` to sample has been given, if that is allowed; in the driver, as so few
    tuples are not worth a job.
    """

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.allowance = Allowance()

    def take(
        self,
        context: ProbeContext,
        live: tuple[Bucket, ...],
        delta: tuple[Bucket, ...],
        probed: Iterable[ProbeReport],
    ) -> Sample | None:
        """Return what a sample of the batch shows; None if none is taken. `context`, `live` and `delta`: what the batch
        has probed with, `probed`: what that took.
        """
        probe_tuples = sum(count for report in probed for _, count in report.probe_tuples)
        if self.plan is None:
            self.allowance.pass_by(probe_tuples)
            return None
        starts = {tree.start.store for tree in self.plan.trees}
        rows = sum(bucket.rows for bucket in delta if bucket.store in starts)
        every = self.allowance.every(rows, probe_tuples, sum(1 for tree in self.plan.trees for _ in tree.walk()))
        if every is None:
            return None
        plan, self.plan = self.plan, None
        indexed = {store.id: frozenset(store.indexes) for store in context.plan.stores}
        return self._taken(replace(context, plan=plan, buckets=by_store((*live, *delta))), indexed, delta, every)

    def _taken(self, context: ProbeContext, indexed: Indexed, delta: tuple[Bucket, ...], every: int) -> Sample | None:
        stores = by_store(delta)
        task = ProbeTask(
            number=0,
            starts=tuple(
                (number, bucket, 0, bucket.rows)
                for number, tree in enumerate(context.plan.trees)
                for bucket in stores.get(tree.start.store, ())
            ),
            every=every,
        )
        if not self._may_take(context, task, indexed):
            return None
        nowhere = {query: Discarded(query=query, columns=()) for query in context.plan.queries}
        try:
            report = Traversal(replace(context, wanted=dict.fromkeys(nowhere, ())), nowhere, "sample").run_local(task)
        except Exception as error:  # whatever an expression raises
            _LOG.info("no sample of other probe orders could be taken: %s: %s", type(error).__name__, error)
            return None
        if report.failures:
            _LOG.info("no sample of other probe orders could be taken: %s", report.failures[0].reason)
            return None
        rows = sum(-(-stop // every) for _, _, _, stop in task.starts)
        self.allowance.note(rows, sum(count for _, count in report.probe_tuples))
        return Sample(plan=context.plan, report=report)

    @staticmethod
    def _may_take(context: ProbeContext, task: ProbeTask, indexed: Indexed) -> bool:
        """Tell whether a batch can wait for the sample: its buckets are on this machine, and not too many rows would
        have to be sorted by keys that the plan in force does not look up (`indexed`: what it does).
        """
        if not context.storage.is_local or not may_run_here(work_of((task,), context)):
            return False
        steps = (step for tree in context.plan.trees for _, step in tree.walk())
        unsorted = {(step.member.store, step.index) for step in steps if step.index}
        rows = sum(
            bucket.rows
            for store, index in unsorted
            if index not in indexed.get(store, ())
            for bucket in context.buckets.get(store, ())
        )
        return rows <= MOST_SORTED


__all__ = ["Sampler"]
