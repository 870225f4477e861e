"""What a policy of choosing plans takes, on a recording, and what the best plans in hindsight would have taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from benchmarks.simulator.recording import EVERY_BATCH, Cycle, EdgeCounts, Recording, plan_options, plans_of
from plait.adapt.forecast import NEXT_CYCLE, Outlook, forecast
from plait.adapt.history import Batch, counts_of
from plait.adapt.planning import probing_only
from plait.adapt.rule import NO_MEMORY, Memory, Rule, consider
from plait.adapt.rule import Outlook as Seen
from plait.operators.reports import ProbeReport
from plait.optimizer.options import PROBE_COSTS, ProbeCosts
from plait.optimizer.pick.plan_cost import edge_costs, plan_cost
from plait.optimizer.planner import plan as make_plan
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.cycles import Cycles, with_batch
from plait.stats.model import Statistics

OVER_THIRTY_SECONDS: Final = Rule(horizon_s=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How plans are chosen: by which strategy and costs, on which outlook, by which rule. `adapts` False: never."""

    name: str
    strategy: str
    costs: ProbeCosts = PROBE_COSTS
    outlook: Outlook = NEXT_CYCLE
    rule: Rule = OVER_THIRTY_SECONDS
    adapts: bool = True


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
    """What a policy did and took. `changes`: after which cycles, and to which orders."""

    taken: list[Taken] = field(default_factory=list)
    changes: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    errors: list[tuple[float, float]] = field(default_factory=list)

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
    stores = plans_of(recording.query, recording.orders, plan_options(recording.streams))[0]
    running = _on(stores, first or _planned(recording, "fixed", PROBE_COSTS, Statistics()))
    cycles, memory, found = Cycles(), NO_MEMORY, Replayed()
    before: Plan | None = None
    for number, cycle in enumerate(recording.cycles):
        counts = {edge: cycle.edges.get(edge, EdgeCounts()) for edge in edges_of(running)}
        found.taken.append(taken(counts.values()))
        cycles = with_batch(cycles, number * 10_000, counts_of(_batch(running, cycle, counts)), EVERY_BATCH)
        if not policy.adapts:
            continue
        statistics = _statistics(cycle, cycles, policy.outlook)
        wanted = _on(stores, _planned(recording, policy.strategy, policy.costs, statistics))
        seen = _seen(number, running, wanted, before, statistics, policy, counts, cycle)
        running, before, memory = _decided(seen, running, wanted, before, memory, policy, found)
    return found


def _decided(
    seen: Seen, running: Plan, wanted: Plan, before: Plan | None, memory: Memory, policy: Policy, found: Replayed
) -> tuple[Plan, Plan | None, Memory]:
    verdict, memory = consider(seen, policy.rule, memory)
    if verdict.action == "keep":
        return running, before, memory
    new = wanted if verdict.action == "take" or before is None else before
    found.changes.append((seen.cycle, edges_of(new)))
    return new, running, memory


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


def _planned(recording: Recording, strategy: str, costs: ProbeCosts, statistics: Statistics) -> Plan:
    options = replace(plan_options(recording.streams, strategy), costs=costs)
    return make_plan((recording.query,), statistics, options)


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


def _statistics(cycle: Cycle, cycles: Cycles, outlook: Outlook) -> Statistics:
    sources = tuple(cycle.after[name] for name in sorted(cycle.after))
    return forecast((), Manifest(batch=0, watermark_us=None, plan="", sources=sources, cycles=cycles), outlook)


def _seen(
    number: int,
    running: Plan,
    wanted: Plan,
    before: Plan | None,
    statistics: Statistics,
    policy: Policy,
    counts: Mapping[str, EdgeCounts],
    cycle: Cycle,
) -> Seen:
    same = edges_of(running) == edges_of(wanted)
    return Seen(
        cycle=number,
        running=" ".join(edges_of(running)),
        running_cost=plan_cost(running, statistics, policy.costs),
        wanted=" ".join(edges_of(running if same else wanted)),
        wanted_cost=plan_cost(wanted, statistics, policy.costs),
        measured=measured_cost(running, statistics, policy.costs, counts, cycle),
        before_cost=None if before is None else plan_cost(before, statistics, policy.costs),
    )


def measured_cost(
    plan: Plan, statistics: Statistics, costs: ProbeCosts, counts: Mapping[str, EdgeCounts], cycle: Cycle
) -> float | None:
    """Return what a plan did cost in a cycle per second of event time: look-ups at their price, by what was counted."""
    advances = [
        after.tau_max - (cycle.before[name].tau_max or 0)
        for name, after in cycle.after.items()
        if after.tau_max is not None and name in cycle.before and cycle.before[name].tau_max is not None
    ]
    seconds = max(advances, default=0) / 1_000_000
    if seconds <= 0:
        return None
    cost = 0.0
    for edge in edge_costs(plan, statistics, costs):
        counted = counts[edge.edge]
        look_up = max(edge.step.price - edge.step.growth * costs.match, 0.0)
        cost += counted.probes * look_up + counted.matches * costs.match
    return cost / seconds


def best_by_cycle(recording: Recording, by: str = "operations") -> list[int]:
    """Return what the best orders of each cycle take, chosen in hindsight for each starting relation."""
    return [sum(min(costs.values()) for costs in starts.values()) for starts in _by_start(recording, by)]


def best_single(recording: Recording, by: str = "operations") -> int:
    """Return what the best orders for all cycles together take, chosen in hindsight."""
    sums: dict[str, dict[str, int]] = {}
    for starts in _by_start(recording, by):
        for start, costs in starts.items():
            for order, cost in costs.items():
                sums.setdefault(start, {})[order] = sums.get(start, {}).get(order, 0) + cost
    return sum(min(costs.values()) for costs in sums.values())


def _by_start(recording: Recording, by: str) -> Sequence[Mapping[str, Mapping[str, int]]]:
    plans = plans_of(recording.query, recording.orders, plan_options(recording.streams))
    paths: dict[str, dict[str, tuple[str, ...]]] = {}
    for plan in plans:
        for tree in plan.trees:
            edges = tuple(step.edge for _, step in tree.walk())
            paths.setdefault(tree.start.store, {})[edges[-1]] = edges
    return [
        {
            start: {
                order: getattr(taken([cycle.edges.get(edge, EdgeCounts()) for edge in edges]), by)
                for order, edges in orders.items()
            }
            for start, orders in paths.items()
        }
        for cycle in recording.cycles
    ]


__all__ = ["Policy", "Replayed", "Taken", "best_by_cycle", "best_single", "edges_of", "replay", "taken"]
