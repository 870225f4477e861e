"""Whether the plan in force should change, judging by the cycles that are done: the strategy says which plan it would
have on the forecast, and the rule says whether it is worth it.

Of what the strategy wants two plans are weighed: the one on the stores as they are, which probing alone changes to at
any batch boundary, and the whole of it, with other partitionings, for which Spark's query is started anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from plait.adapt.decision import Change, Outcome
from plait.adapt.forecast import NEXT_CYCLE, forecast
from plait.adapt.forecast import Outlook as Forecasting
from plait.adapt.planning import PlanRequest, probing_only
from plait.adapt.rule import NO_MEMORY, Memory, Outlook, Rule, Taken, Verdict, consider
from plait.adapt.weighing import advance_s, change_cost, cost_of, measured_cost, restart_cost
from plait.plan.changelog import changelog
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.model import Statistics

_SHORTEST_HORIZON_S: Final = 30.0
_ENDLESS_HORIZON_S: Final = 600.0
"""A history without a window pays for itself within so much event time."""
_CYCLES_AHEAD: Final = 6
"""A plan must pay within so many cycles, if these are longer than the windows: as they are while a backlog is drained.
"""

_US_PER_S = 1_000_000
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The plan in force, the one before the last change, and what the rule remembers."""

    running: Plan
    before: Plan | None = None
    memory: Memory = NO_MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to decide: on which outlook, by which rule. A plan made before anything was measured is not worth patience,
    so while a run `is_young` a gain need not last.
    """

    outlook: Forecasting = NEXT_CYCLE
    rule: Rule = field(default_factory=lambda: Rule(horizon_s=_SHORTEST_HORIZON_S))
    is_young: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What came of it. `change` None: the plan in force stays. `after`: how things stand when that is carried out."""

    verdict: Verdict
    change: Change | None
    after: Standing
    outcome: Outcome | None = None


def reconsider(request: PlanRequest, manifest: Manifest, standing: Standing, policy: Policy) -> Decision:
    """Return what to do after the batch of this manifest. What a strategy or its solver raises goes through."""
    options = request.options
    statistics = forecast(options.sources, manifest, policy.outlook)
    wanted = request.plan(manifest, policy.outlook)
    horizon_s = horizon(standing.running, manifest)
    seen, best, restarts = _seen(request, manifest, standing, statistics, wanted, horizon_s)
    rule = _rule(policy, horizon_s)
    verdict, memory = consider(seen, rule, standing.memory)
    if policy.is_young:
        memory = replace(memory, changes=standing.memory.changes)
    outcome = _outcome(standing.memory.unjudged, seen, rule, verdict)
    if verdict.action == "keep":
        return Decision(verdict=verdict, change=None, after=replace(standing, memory=memory), outcome=outcome)
    if verdict.action == "take back" and standing.before is not None:
        best, restarts = _back(standing.running, standing.before)
        change = Change(
            reason="turned out worse",
            changes=changelog(standing.running, best),
            cost_before=seen.measured,
            cost_after=seen.before_cost,
        )
    else:
        change = Change(
            reason="cheaper",
            changes=changelog(standing.running, best),
            cost_before=seen.running_cost,
            cost_after=seen.wanted_cost,
            change_cost=seen.change_cost,
        )
    change = replace(change, horizon_s=horizon_s, restarts=best if restarts else None)
    after = Standing(running=best, before=standing.running, memory=memory)
    return Decision(verdict=verdict, change=change, after=after, outcome=outcome)


def horizon(plan: Plan, manifest: Manifest) -> float:
    """Return the seconds of event time within which a change must pay: as long as the longest window, at least."""
    windows = [
        _ENDLESS_HORIZON_S if store.window_us is None else store.window_us / _US_PER_S
        for store in plan.stores
        if not store.is_table and store.intermediate is None
    ]
    return max(*windows, _SHORTEST_HORIZON_S, _CYCLES_AHEAD * advance_s(manifest.cycles))


def identity(plan: Plan) -> str:
    """Return what tells a plan from others for the same queries: a digest of its edges, of what they fill, and of its
    partitionings.
    """
    edges = [
        "+".join((step.edge, *(fill.store for fill in step.fills))) for tree in plan.trees for _, step in tree.walk()
    ]
    layouts = [
        f"{store.id}/{store.parallelism}({','.join(store.partition_by)})"
        for store in plan.stores
        if store.parallelism > 1
    ]
    return blake2b(" ".join((*edges, *layouts)).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _rule(policy: Policy, horizon_s: float) -> Rule:
    rule = replace(policy.rule, horizon_s=horizon_s)
    return replace(rule, patience=1, evidence=0.0) if policy.is_young else rule


def _seen(
    request: PlanRequest,
    manifest: Manifest,
    standing: Standing,
    statistics: Statistics,
    wanted: Plan,
    horizon_s: float,
) -> tuple[Outlook, Plan, bool]:
    """Return what is known, the better of the two plans to change to, and whether that takes a restart."""
    running, options = standing.running, request.options
    stored = Counter[str]()
    for bucket in manifest.buckets:
        stored[bucket.store] += bucket.rows
    running_cost = cost_of(running, statistics, options)
    best, best_cost, cost_of_change, restarts = running, running_cost, 0.0, False
    fitting = probing_only(running, wanted)
    for candidate, restart in ((fitting, False), (wanted, True)):
        if candidate is None or (restart and fitting is not None and identity(fitting) == identity(wanted)):
            continue
        if not changelog(running, candidate):
            continue
        cost = cost_of(candidate, statistics, options)
        changing = change_cost(running, candidate, statistics, options, stored)
        changing += restart_cost(options) if restart else 0.0
        if cost * horizon_s + changing < best_cost * horizon_s + cost_of_change:
            best, best_cost, cost_of_change, restarts = candidate, cost, changing, restart
    before = standing.before
    seen = Outlook(
        cycle=manifest.cycles.number,
        running=identity(running),
        running_cost=running_cost,
        wanted=identity(best),
        wanted_cost=best_cost,
        change_cost=cost_of_change,
        measured=measured_cost(running, statistics, options, manifest.cycles),
        before_cost=None if before is None else cost_of(before, statistics, options),
    )
    return seen, best, restarts


def _back(running: Plan, before: Plan) -> tuple[Plan, bool]:
    """Return the plan that was in force before, and whether it takes a restart to have it back."""
    fitting = probing_only(running, before)
    if fitting is not None and identity(fitting) == identity(before):
        return fitting, False
    return before, True


def _outcome(taken: Taken | None, seen: Outlook, rule: Rule, verdict: Verdict) -> Outcome | None:
    """Return what a change that the rule has just judged came to."""
    if taken is None or seen.measured is None or seen.cycle - taken.cycle <= rule.settle:
        return None
    return Outcome(
        forecast=taken.forecast,
        measured=seen.measured,
        before=seen.before_cost,
        taken_back=verdict.action == "take back",
    )


__all__ = ["Decision", "Policy", "Standing", "horizon", "identity", "reconsider"]
