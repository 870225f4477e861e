"""What the tasks of a batch are given: what they probe with, and what they do with results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.operators.close.certain_sql import finds_core
from plait.operators.close.keeping import generations_after, windows_of
from plait.operators.probe.layers import Tables
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.residuals import Predicates
from plait.operators.traversal.scheduling import Spread
from plait.plan.pruning import without_answers
from plait.runtime.batch.handing_over import Handover
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.settings import Settings
from plait.sinks.delivery import Delivery
from plait.state.model import Bucket, Manifest
from plait.state.retention import retain
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Makes it for a batch under an epoch, on top of the manifest before. `checkpoint`: its id."""

    storage: Storage
    settings: Settings
    checkpoint: str
    handover: Handover

    @property
    def spread(self) -> Spread:
        """How starting rows are spread over tasks."""
        return Spread(slots=self.settings.slots)

    def context(self, epoch: Epoch, batch: int, before: Manifest | None, predicates: Predicates) -> ProbeContext:
        """Return what every probe task of a batch knows."""
        found_late = (name for name, each in epoch.bindings.items() if each.query.joins and not finds_core(each.query))
        return ProbeContext(
            plan=without_answers(epoch.plan, frozenset(found_late)),
            batch=batch,
            storage=self.storage,
            buckets={},
            wanted={name: binding.probed for name, binding in epoch.bindings.items()},
            capacity=self.settings.capacity,
            predicates=predicates,
            readings=epoch.readings,
            beside=() if before is None else tuple(dict.fromkeys(before.of_pasts)),
        )

    def tables(self, work: Batch, before: Manifest | None, buckets: Iterable[Bucket]) -> Tables | None:
        """Return what has put these rows where they lie; None where all of them are within reach of every task."""
        if self.settings.routing == "local":
            return None
        plan, known = work.epoch.plan, () if before is None else before.generations
        live = () if before is None else retain(before.copies, windows_of(plan), before.oldest_us).kept
        copies = (*live, *(copy for report in work.ingested for copy in report.copies))
        stored = tuple(buckets)
        generations = generations_after(known, work.epoch.generation, stored)
        return Tables.of(generations, stored, copies) if generations else None

    def deliveries(self, epoch: Epoch, before: Manifest | None, queries: Iterable[str]) -> dict[str, Delivery]:
        """Return what becomes of rows that are joined for these queries."""
        failing = self._failing(epoch, before)
        return {name: epoch.bindings[name].found_by_probing(self.checkpoint, spool=name in failing) for name in queries}

    def final_deliveries(self, epoch: Epoch, before: Manifest | None) -> dict[str, Delivery]:
        """Return how results are handed over that no traversal finds."""
        failing = self._failing(epoch, before)
        return {name: each.delivery(self.checkpoint, spool=name in failing) for name, each in epoch.bindings.items()}

    def _failing(self, epoch: Epoch, before: Manifest | None) -> set[str]:
        """Return the queries whose results wait in the checkpoint."""
        waiting = () if before is None else before.undelivered
        return {late.query for late in waiting} | self.handover.unclaimed(epoch, before)


__all__ = ["Equipment"]
