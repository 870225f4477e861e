"""A run whose plan follows the data, without Spark: the product's operators carry out the plan that is in force, with
its intermediate stores, and the product's own decision changes it after each batch.

`replay` tries many policies on one recording, but knows no intermediate stores; here these come and go.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from benchmarks.simulator.experiments import Experiment
from benchmarks.simulator.operators import CLOCK_MS, EVERY_BATCH, Operators, storage_in_memory
from plait.adapt.adapter import YOUNG
from plait.adapt.decision import Change, Outcome
from plait.adapt.other_orders import plan_to_sample
from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy, Standing, reconsider
from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets
from plait.operators.close.next_manifest import next_manifest, results_by_query
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.sampler import Sampler
from plait.operators.traversal.scheduling import Spread, probe_in_phases, with_intermediates
from plait.plan.model import Plan
from plait.plan.traversals import intermediates
from plait.state.model import Bucket, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class LivedCycle:
    """What a cycle took: `probes` and `matches` of what arrived, those of `filling` intermediate stores apart,
    and the probe tuples of what was `sampled`; `results`; the intermediate `stores` there were.
    """

    probes: int
    matches: int
    filling: int
    sampled: int
    results: int
    stores: tuple[str, ...]

    @property
    def operations(self) -> int:
        """Query and match operations together, filling and samples included."""
        return self.probes + self.matches + self.filling + self.sampled


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
    with storage_in_memory("plait-lived-") as storage:
        living = _Living(experiment, request, Operators(experiment.query, storage))
        return living.run(policy, first or request.plan(None), until)


class _Living:
    def __init__(self, experiment: Experiment, request: PlanRequest, operators: Operators) -> None:
        self._experiment, self._request, self._operators = experiment, request, operators
        self._sampler = Sampler()

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
            self._sampler.plan = (
                None if decision.change is not None else plan_to_sample(self._request, manifest, standing.running)
            )
            if decision.outcome is not None:
                found.outcomes.append((number, decision.outcome))
            if decision.change is not None:
                found.changes.append((number, decision.change))
        return found

    def _batch(self, plan: Plan, manifest: Manifest, number: int) -> tuple[LivedCycle, Manifest]:
        streams = {stream.name: stream for stream in self._experiment.streams}
        ingested = tuple(
            self._operators.ingested(plan, streams[name], rows, number)
            for name, rows in self._experiment.batches[number].items()
        )
        arrived = tuple(bucket for report in ingested for bucket in report.buckets)
        filled: list[ProbeReport] = []
        stored = self._filled(plan, live_buckets(plan, manifest), number, filled)
        context = self._operators.context(plan, number)
        probed = probe_in_phases(context, stored, arrived, self._operators.probed, Spread(slots=1))
        sample = self._sampler.take(context, stored, arrived, probed)
        before = replace(manifest, buckets=stored)
        closed = close(
            before,
            plan,
            self._experiment.streams,
            ingested,
            probed,
            CLOCK_MS + number,
            EVERY_BATCH,
            sample=sample,
        )
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
            sampled=0 if sample is None else sample.probe_tuples,
            results=sum(results_by_query(probed).values()),
            stores=tuple(store.id for store, _ in intermediates(plan)),
        )
        return cycle, following

    def _filled(self, plan: Plan, live: tuple[Bucket, ...], number: int, told: list[ProbeReport]) -> tuple[Bucket, ...]:
        def probed(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
            reports = self._operators.probed(tasks, context)
            told.extend(reports)
            return reports

        return with_intermediates(self._operators.context(plan, number), live, probed, Spread(slots=1))


def _sum(reports: tuple[ProbeReport, ...] | list[ProbeReport], what: str) -> int:
    return sum(count for report in reports for _, count in getattr(report, what))


__all__ = ["Lived", "LivedCycle", "live"]
