"""A run whose plan follows the data, without Spark: the product's operators carry out the plan that is in force, with
its intermediate stores, and the product's own decision changes it after each batch.

`replay` tries many policies on one recording, but knows no intermediate stores; here these come and go.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from dataclasses import dataclass, field, replace

from benchmarks.simulator.experiments import Experiment
from benchmarks.simulator.recording import EVERY_BATCH, MEMORY, projected
from plait.adapt.adapter import YOUNG
from plait.adapt.decision import Change, Outcome
from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy, Standing, reconsider
from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets
from plait.operators.close.next_manifest import next_manifest, results_by_query
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.scheduling import Spread, probe_in_phases, with_intermediates
from plait.operators.traversal.traverse import ProbeTask, Traversal
from plait.plan.model import Plan
from plait.plan.traversals import intermediates
from plait.sinks.delivery import Discarded
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage

_CLOCK_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LivedCycle:
    """What a cycle took: `probes` and `matches` of what arrived, those of `filling` intermediate stores apart;
    `results`; the intermediate `stores` there were.
    """

    probes: int
    matches: int
    filling: int
    results: int
    stores: tuple[str, ...]

    @property
    def operations(self) -> int:
        """Query and match operations together, filling included."""
        return self.probes + self.matches + self.filling


@dataclass(slots=True)
class Lived:
    """All cycles; after which of them the plan changed, and what was found of changes."""

    cycles: list[LivedCycle] = field(default_factory=list)
    changes: list[tuple[int, Change]] = field(default_factory=list)
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)


def live(
    experiment: Experiment, request: PlanRequest, policy: Policy, *, first: Plan | None = None, until: int | None = None
) -> Lived:
    """Run an experiment. `first`: the plan at the start, else that of the request; `until`: after so many cycles the
    plan in force stays, None for never.
    """
    directory = tempfile.mkdtemp(prefix="plait-lived-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        return _Living(experiment, request, Storage.open(directory)).run(policy, first or request.plan(None), until)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class _Living:
    def __init__(self, experiment: Experiment, request: PlanRequest, storage: Storage) -> None:
        self._experiment, self._request, self._storage = experiment, request, storage
        query = experiment.query
        self._wanted = {query.name: tuple(ref for column in query.output for ref in column.expression.columns)}
        self._attempts = itertools.count()

    def run(self, policy: Policy, first: Plan, until: int | None) -> Lived:
        found = Lived()
        standing = Standing(running=first)
        manifest = Manifest(batch=-1, watermark_us=None, plan="lived")
        for number in range(len(self._experiment.batches)):
            cycle, manifest = self._batch(standing.running, manifest, number)
            found.cycles.append(cycle)
            if until is not None and number >= until:
                continue
            deciding = replace(policy, is_young=number + 1 in YOUNG)
            decision = reconsider(self._request, manifest, standing, deciding)
            standing = decision.after
            if decision.outcome is not None:
                found.outcomes.append((number, decision.outcome))
            if decision.change is not None:
                found.changes.append((number, decision.change))
        return found

    def _batch(self, plan: Plan, manifest: Manifest, number: int) -> tuple[LivedCycle, Manifest]:
        ingested = tuple(self._ingested(plan, name, number) for name in self._experiment.batches[number])
        arrived = tuple(bucket for report in ingested for bucket in report.buckets)
        filled: list[ProbeReport] = []
        stored = self._filled(plan, live_buckets(plan, manifest), number, filled)
        probed = probe_in_phases(self._context(plan, number), stored, arrived, self._walked, Spread(slots=1))
        before = replace(manifest, buckets=stored)
        closed = close(before, plan, self._experiment.streams, ingested, probed, _CLOCK_MS + number, EVERY_BATCH)
        following = next_manifest(
            before,
            closed,
            plan=plan,
            plan_id="lived",
            batch=number,
            ingested=ingested,
            probed=probed,
            publications=(),
            undelivered=(),
        )
        cycle = LivedCycle(
            probes=_sum(probed, "probe_tuples"),
            matches=_sum(probed, "matches"),
            filling=_sum(filled, "probe_tuples") + _sum(filled, "matches"),
            results=sum(results_by_query(probed).values()),
            stores=tuple(store.id for store, _ in intermediates(plan)),
        )
        return cycle, following

    def _filled(self, plan: Plan, live: tuple[Bucket, ...], number: int, told: list[ProbeReport]) -> tuple[Bucket, ...]:
        def walked(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
            reports = self._walked(tasks, context)
            told.extend(reports)
            return reports

        return with_intermediates(self._context(plan, number), live, walked, Spread(slots=1))

    def _context(self, plan: Plan, number: int) -> ProbeContext:
        return ProbeContext(
            plan=plan,
            batch=number,
            storage=self._storage,
            buckets={},
            wanted=self._wanted,
            attempt=f"a{next(self._attempts)}",
        )

    def _walked(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        deliveries = {name: Discarded(query=name, columns=columns) for name, columns in self._wanted.items()}
        return tuple(Traversal(context, deliveries, f"t{next(self._attempts)}").run_local(task) for task in tasks)

    def _ingested(self, plan: Plan, name: str, number: int) -> IngestReport:
        stream = next(stream for stream in self._experiment.streams if stream.name == name)
        spec = ingest_spec(stream, tuple(store for store in plan.stores if store.source == name))
        context = IngestContext(
            storage=self._storage, batch=number, late_before_us=None, attempt=f"a{next(self._attempts)}"
        )
        return ingest(projected(spec, self._experiment.batches[number][name]).to_batches(), spec, context)


def _sum(reports: tuple[ProbeReport, ...] | list[ProbeReport], what: str) -> int:
    return sum(count for report in reports for _, count in getattr(report, what))


__all__ = ["Lived", "LivedCycle", "live"]
