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
from plait.adapt.forecast import NEXT_CYCLE
from plait.adapt.forecast import Outlook as Forecasting
from plait.adapt.planning import PlanRequest, probing_only
from plait.adapt.rule import NO_MEMORY, Memory, Outlook, Rule, Taken, Verdict, consider
from plait.adapt.weighing import Stored, advance_s, change_cost, cost_of, delay_s, measured_cost, restart_cost
from plait.plan.changelog import changelog
from plait.plan.coming import settled_id
from plait.plan.model import Plan
from plait.state.fillings import left_rows
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
class UnderWay:
    """What governed the last batch: `plan`, which is another than was decided for while the intermediate stores of that
    one come. `slice_s`: how long a batch may fill such stores, in seconds of one core; None if that is not known.
    """

    plan: Plan
    slice_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The plan that was decided for last, the one before that change, and what the rule remembers. `under_way`: what
    governs by now, None if it is that plan.
    """

    running: Plan
    before: Plan | None = None
    memory: Memory = NO_MEMORY
    under_way: UnderWay | None = None

    @property
    def in_force(self) -> Plan:
        """The plan that governs."""
        return self.running if self.under_way is None else self.under_way.plan

    @property
    def is_filling(self) -> bool:
        """Whether the plan that was decided for waits for its intermediate stores."""
        return self.in_force is not self.running


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
    statistics = request.statistics(manifest, policy.outlook)
    wanted = request.plan(manifest, policy.outlook)
    horizon_s = horizon(standing.running, manifest)
    seen, best = _seen(request, manifest, standing, statistics, wanted, horizon_s)
    restarts = best.restarts
    rule = _rule(policy, horizon_s)
    if standing.is_filling:
        standing = replace(standing, memory=_not_yet_in_force(standing.memory, seen.cycle))
    verdict, memory = consider(seen, rule, standing.memory)
    if policy.is_young:
        memory = replace(memory, changes=standing.memory.changes)
    waits = memory.unjudged is standing.memory.unjudged
    outcome = None if waits else _outcome(standing.memory.unjudged, seen, rule, verdict)
    if verdict.action == "keep":
        return Decision(verdict=verdict, change=None, after=replace(standing, memory=memory), outcome=outcome)
    taken = best.plan
    if verdict.action == "take back" and standing.before is not None:
        taken, restarts = _back(standing.running, standing.before)
        change = Change(
            reason="turned out worse",
            changes=changelog(standing.running, taken),
            cost_before=seen.measured,
            cost_after=seen.before_cost,
        )
    else:
        change = Change(
            reason="cheaper",
            changes=changelog(standing.running, taken),
            cost_before=seen.running_cost,
            cost_after=seen.wanted_cost,
            change_cost=seen.change_cost,
            delay_s=best.delay_s,
        )
    change = replace(change, horizon_s=horizon_s, restarts=taken if restarts else None)
    # What waits for its stores has never answered a query: it is nothing to go back to.
    before = standing.before if standing.is_filling else standing.running
    after = Standing(running=taken, before=before, memory=memory)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A plan there may be: its cost once it governs, from `delay_s` on, and that of changing to it, with what is missed
    until then.
    """

    plan: Plan
    cost: float
    changing: float = 0.0
    delay_s: float = 0.0
    restarts: bool = False

    def total(self, horizon_s: float) -> float:
        """Return what it comes to."""
        return self.cost * horizon_s + self.changing


def _seen(
    request: PlanRequest,
    manifest: Manifest,
    standing: Standing,
    statistics: Statistics,
    wanted: Plan,
    horizon_s: float,
) -> tuple[Outlook, _Choice]:
    """Return what is known, and the better of the two plans to change to; it is the one decided for last if neither is
    better than that.

    A plan with intermediate stores that are to be filled saves nothing until they are: so long what governs now goes
    on. That holds for the one decided for last too, as long as it waits.
    """
    running, options, in_force = standing.running, request.options, standing.in_force
    stored, now = _stored(manifest), cost_of(in_force, statistics, options)
    slice_s = None if standing.under_way is None else standing.under_way.slice_s

    def choice(plan: Plan, *, restarts: bool = False) -> _Choice:
        cost = cost_of(plan, statistics, options)
        filling, sorting = change_cost(in_force, plan, statistics, options, stored)
        delay = min(delay_s(filling, options, manifest.cycles, slice_s), horizon_s)
        changing = filling + sorting + (restart_cost(options) if restarts else 0.0) + max(now - cost, 0.0) * delay
        return _Choice(plan=plan, cost=cost, changing=changing, delay_s=delay, restarts=restarts)

    best = choice(running) if standing.is_filling else _Choice(plan=running, cost=now)
    # What the plan decided for last comes to in all is what others are compared with: to go on with it is no change.
    best = replace(best, cost=best.total(horizon_s) / horizon_s, changing=0.0)
    running_cost = best.cost
    fitting = probing_only(running, wanted)
    for candidate, restart in ((fitting, False), (wanted, True)):
        if candidate is None or (restart and fitting is not None and identity(fitting) == identity(wanted)):
            continue
        if not changelog(running, candidate):
            continue
        other = choice(candidate, restarts=restart)
        if other.total(horizon_s) < best.total(horizon_s):
            best = other
    before = standing.before
    measured = None if standing.is_filling else measured_cost(running, statistics, options, manifest.cycles)
    seen = Outlook(
        cycle=manifest.cycles.number,
        running=identity(running),
        running_cost=running_cost,
        wanted=identity(best.plan),
        wanted_cost=best.cost,
        change_cost=best.changing,
        measured=measured,
        before_cost=None if before is None else cost_of(before, statistics, options),
    )
    return seen, best


def _stored(manifest: Manifest) -> Stored:
    rows = Counter[str]()
    for bucket in manifest.buckets:
        rows[bucket.store] += bucket.rows
    left = left_rows(manifest.fillings, manifest.buckets)
    return Stored(
        rows=rows,
        left={
            settled_id(each.store): left[each.store] / max(each.rows, 1)
            for each in manifest.fillings
            if each.store != settled_id(each.store)
        },
    )


def _not_yet_in_force(memory: Memory, cycle: int) -> Memory:
    """Return the memory of a change that is judged from when it takes effect, which it has not by now."""
    taken = memory.unjudged
    return memory if taken is None else replace(memory, unjudged=replace(taken, cycle=cycle))


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


__all__ = ["Decision", "Policy", "Standing", "UnderWay", "horizon", "identity", "reconsider"]
