"""What a policy of choosing plans takes, on a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.simulator.recording import Cycle, EdgeCounts, Recording, plan_options, plans_of
from plait.adapt.adapter import YOUNG
from plait.adapt.history import Batch, batch_counts, with_sample
from plait.adapt.other_orders import Allowance, plan_to_sample
from plait.adapt.planning import PlanRequest, probing_only
from plait.adapt.reconsidering import Policy as Deciding
from plait.adapt.reconsidering import Standing, reconsider
from plait.operators.reports import ProbeReport
from plait.optimizer.options import PROBE_COSTS, ProbeCosts
from plait.optimizer.planner import plan as make_plan
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.state.model import Manifest
from plait.stats.cycles import HISTORY, CycleLength, Cycles, with_batch
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How plans are chosen: by which strategy and costs, and how that is decided. `adapts` False: never. `samples`:
    whether orders that are not in force are tried with a few tuples. `cycle`: how many batches one has; `history`: how
    many of them are kept. `until`: after so many batches the plan stays, None for never.
    """

    name: str
    strategy: StrategyName
    costs: ProbeCosts = PROBE_COSTS
    how: Deciding = field(default_factory=Deciding)
    adapts: bool = True
    samples: bool = True
    cycle: int = 1
    history: int = HISTORY
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Counts of one cycle: tuples that probed (look-ups) and their matches."""

    probes: int
    matches: int

    @property
    def operations(self) -> int:
        """Query and match operations together, as paper 003 counts work."""
        return self.probes + self.matches


@dataclass(slots=True, kw_only=True)
class Replayed:
    """What a policy did and took. `began`: the edges of the plan at the start; `changes`: after which cycles plans
    changed, and to which edges. `sampled`: probe tuples of samples, which are counted as taken too.
    """

    began: tuple[str, ...]
    taken: list[Taken] = field(default_factory=list)
    changes: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    sampled: int = 0

    @property
    def operations(self) -> int:
        """All of them."""
        return sum(each.operations for each in self.taken)

    @property
    def probes(self) -> int:
        """All probe tuples."""
        return sum(each.probes for each in self.taken)


def replay(recording: Recording, policy: Policy, first: Plan | None = None) -> Replayed:
    """Return what a policy takes. `first`: the plan at the start, else that of FROM."""
    options = plan_options(recording.streams)
    stores = plans_of(recording.query, recording.orders, options)[0]
    running = _on(stores, first or make_plan((recording.query,), Statistics(), options))
    request = PlanRequest(
        queries=(recording.query,), options=replace(options, strategy=policy.strategy, costs=policy.costs)
    )
    standing, cycles, found = Standing(running=running), Cycles(), Replayed(began=edges_of(running))
    samples, length = _Samples(), CycleLength(batches=policy.cycle)
    for number, cycle in enumerate(recording.cycles):
        counts = {edge: cycle.edges.get(edge, EdgeCounts()) for edge in edges_of(standing.running)}
        own = taken(counts.values())
        counted = batch_counts(_batch(standing.running, cycle, counts))
        sampled = samples.take(cycle, own.probes) if policy.adapts and policy.samples else None
        if sampled is not None:
            counted = with_sample(counted, sampled[0])
            own = Taken(probes=own.probes + sampled[1].probes, matches=own.matches + sampled[1].matches)
            found.sampled += sampled[1].probes
        found.taken.append(own)
        cycles = with_batch(cycles, number * 10_000, counted, length, policy.history)
        stays = not policy.adapts or (policy.until is not None and number >= policy.until)
        if stays or not (number + 1 in YOUNG or length.is_over(cycles)):
            continue
        manifest = _manifest(number, cycle, cycles)
        how = replace(policy.how, is_young=number + 1 in YOUNG)
        decision = reconsider(request, manifest, standing, how)
        if decision.change is not None:
            _on(stores, decision.after.running)
            found.changes.append((number, edges_of(decision.after.running)))
        standing = decision.after
        samples.plan = None if decision.change is not None else plan_to_sample(request, manifest, standing.running)
    return found


class _Samples:
    """Samples as a run would take them: of what was recorded of an order, the share that so many tuples would show."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self._allowance, self._random = Allowance(), np.random.default_rng(7)

    def take(self, cycle: Cycle, probe_tuples: int) -> tuple[Batch, Taken] | None:
        """Return what a sample of this cycle shows, and what it took; None if none is taken."""
        if self.plan is None:
            self._allowance.pass_by(probe_tuples)
            return None
        starts = {tree.start.store for tree in self.plan.trees}
        rows = sum(bucket.rows for bucket in cycle.arrived if bucket.store in starts)
        every = self._allowance.every(rows, probe_tuples, len(edges_of(self.plan)))
        if every is None:
            return None
        counts = {edge: self._thinned(cycle.edges.get(edge, EdgeCounts()), every) for edge in edges_of(self.plan)}
        own = taken(counts.values())
        self._allowance.note(rows // every, own.probes)
        plan, self.plan = self.plan, None
        return _batch(plan, cycle, counts), own

    def _thinned(self, counts: EdgeCounts, every: int) -> EdgeCounts:
        probes = int(self._random.binomial(counts.probes, 1 / every))
        matched = int(self._random.binomial(probes, counts.matched / counts.probes)) if probes else 0
        each = counts.matches / counts.matched if counts.matched else 0.0
        return EdgeCounts(probes=probes, matched=matched, matches=round(matched * each))


def _manifest(number: int, cycle: Cycle, cycles: Cycles) -> Manifest:
    return Manifest(
        batch=number,
        watermark_us=None,
        plan="",
        buckets=(*cycle.stored, *cycle.arrived),
        sources=tuple(cycle.after[name] for name in sorted(cycle.after)),
        cycles=cycles,
    )


def edges_of(plan: Plan) -> tuple[str, ...]:
    """Return the edges of a plan."""
    return tuple(step.edge for tree in plan.trees for _, step in tree.walk())


def taken(counts: object) -> Taken:
    """Return the sums of some steps' counts."""
    listed = list(counts)  # type: ignore[call-overload]
    return Taken(probes=sum(each.probes for each in listed), matches=sum(each.matches for each in listed))


def _on(stores: Plan, wanted: Plan) -> Plan:
    fitting = probing_only(stores, wanted)
    if fitting is None or any(store.intermediate is not None for store in fitting.stores):
        raise AssertionError("only plans without intermediate stores, on the stores of the recording, can be replayed")
    return fitting


def _batch(plan: Plan, cycle: Cycle, counts: Mapping[str, EdgeCounts]) -> Batch:
    report = ProbeReport(
        probe_tuples=tuple((edge, each.probes) for edge, each in counts.items()),
        matched=tuple((edge, each.matched) for edge, each in counts.items()),
        matches=tuple((edge, each.matches) for edge, each in counts.items()),
    )
    return Batch(
        plan=plan,
        stored=cycle.stored,
        arrived=cycle.arrived,
        probed=(report,),
        before=cycle.before,
        after=cycle.after,
    )


__all__ = ["Policy", "Replayed", "Taken", "edges_of", "replay", "taken"]
