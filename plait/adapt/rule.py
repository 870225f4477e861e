"""Whether a plan takes the place of the one in force, and whether that is taken back: a pure function, cycle by cycle.

Every cycle the strategy says which plan it would have. That plan is taken if what it is forecast to gain over the
`horizon_s` exceeds the cost of changing to it by some slack. Three things keep plans from changing places all the time:

- a gain must exceed some slack for `patience` cycles, and by how much must add up, as in a CUSUM test: noise does not
  add up, and what swings faster than that does not last. Slack and sum are measured by the **noise**, by how much gains
  mostly differ from what they usually are: of plans that cost the same one always seems to gain, by as much as there is
  noise, and where there is little, a gain of a hundredth that lasts is worth a change. A small gain waits long, a large
  one hardly. Of one cycle at most `burst` counts, which is not enough: whatever a cycle brings, the next has to bear it
  out;
- each change of the last `calm` cycles doubles what must add up for the next. It does not double the slack: a gain of
  a tenth would be missed as long as plans were restless, and not only be taken later;
- a change that turned out dearer than forecast by more than the margin, although what was in force before would cost
  less by now, and that for `patience` cycles too, is taken back, and its plan not taken again for `remember` cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Action: TypeAlias = Literal["keep", "take", "take back"]
Why: TypeAlias = Literal[
    "it is in force", "gains too little", "has to last", "turned out worse before", "gains enough", "turned out worse"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a change is worth it. `least`, which a gain must exceed in any case, and `margin`, by which a change must
    have turned out worse to be taken back, are shares of the cost of the plan in force; `doubt` (the slack), `evidence`
    (the sum) and `burst` count the noise, the others cycles.
    """

    horizon_s: float
    least: float = 0.006
    margin: float = 0.05
    patience: int = 2
    evidence: float = 5.0
    burst: float = 3.3
    doubt: float = 1.5
    calm: int = 12
    settle: int = 1
    remember: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known after a cycle. Costs are per second, forecast unless `measured`: what the plan in force did cost in
    the cycle. `before_cost`: of the plan that was in force before the last change.
    """

    cycle: int
    running: str
    running_cost: float
    wanted: str
    wanted_cost: float
    change_cost: float = 0.0
    measured: float | None = None
    before_cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A change that was made after `cycle`, from one plan to another, of which `forecast` is the cost."""

    cycle: int
    before: str
    plan: str
    forecast: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the rule remembers: in how many `cycles` up to now another plan gained, and the `evidence` of that; the
    `share` that one was to gain last, and by how much that mostly differs from cycle to cycle (`noise`); the last
    change, until it is judged; after which cycles plans changed; which plans are not taken again until which cycle.
    """

    cycles: int = 0
    evidence: float = 0.0
    usual: float | None = None
    noise: float = 0.025
    unjudged: Taken | None = None
    worse: int = 0
    changes: tuple[int, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()

    def for_other_queries(self) -> Memory:
        """Return what holds for plans of other queries too: how restless plans were, and which were taken back, in case
        their queries return.
        """
        return Memory(noise=self.noise, changes=self.changes, refused=self.refused)


NO_MEMORY: Final = Memory()

_LEARNING = 0.15
_FOLLOWING = 0.5
"""So much of a new gain goes into the noise, and into what is usual."""
_FAR = 2.5
"""What differs by more than so many times the noise counts as so much: it is no noise, but a shift of the data."""
_LEAST_NOISE = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do: `plan` is in force from now on. `gain`: what it is forecast to cost less over the horizon, changing
    to it included.
    """

    action: Action
    plan: str
    why: Why
    gain: float


def consider(seen: Outlook, rule: Rule, memory: Memory = NO_MEMORY) -> tuple[Verdict, Memory]:
    """Return what to do after a cycle, and what to remember."""
    memory = _forgetting(memory, seen.cycle, rule)
    taken = memory.unjudged
    if taken is None or seen.measured is None or seen.cycle - taken.cycle <= rule.settle:
        return _weighed(seen, rule, memory)
    worse = memory.worse + 1 if _is_worse(seen, taken, seen.measured, rule) else 0
    refusing = replace(memory, refused=(*memory.refused, (taken.plan, seen.cycle + rule.remember)), unjudged=None)
    if worse >= rule.patience:
        changes = (*memory.changes, seen.cycle)
        gain = (seen.measured - (seen.before_cost or 0.0)) * rule.horizon_s - seen.change_cost
        verdict = Verdict(action="take back", plan=taken.before, why="turned out worse", gain=gain)
        return verdict, replace(refusing, changes=changes, cycles=0, evidence=0.0)
    verdict, after = _weighed(seen, rule, replace(memory, unjudged=taken if worse else None, worse=worse))
    if worse and verdict.action == "take":  # forecasts say by now what is measured
        after = replace(after, refused=refusing.refused)
    return verdict, after


def _is_worse(seen: Outlook, taken: Taken, measured: float, rule: Rule) -> bool:
    """Tell whether a change did not keep what it promised, and that not because everything has become dearer."""
    broken = measured > taken.forecast * (1 + rule.margin)
    return broken and seen.before_cost is not None and measured > seen.before_cost * (1 + rule.margin)


def _weighed(seen: Outlook, rule: Rule, memory: Memory) -> tuple[Verdict, Memory]:
    gain = (seen.running_cost - seen.wanted_cost) * rule.horizon_s - seen.change_cost
    at_stake = seen.running_cost * rule.horizon_s
    share = gain / at_stake if at_stake > 0 else 0.0
    slack = rule.least + rule.doubt * memory.noise
    restless = 2 ** len(memory.changes)
    wanted_evidence, burst = rule.evidence * memory.noise * restless, rule.burst * memory.noise * restless
    if seen.wanted != seen.running:
        memory = _learned(memory, share)

    def kept(why: Why, cycles: int = 0, evidence: float = 0.0) -> tuple[Verdict, Memory]:
        verdict = Verdict(action="keep", plan=seen.running, why=why, gain=gain)
        return verdict, replace(memory, cycles=cycles, evidence=evidence)

    if seen.wanted == seen.running:
        return kept("it is in force")
    if seen.wanted in dict(memory.refused):
        return kept("turned out worse before")
    evidence = max(memory.evidence + min(share - slack, burst), 0.0)
    if share <= slack:
        return kept("gains too little", cycles=0, evidence=evidence if share > 0 else 0.0)
    # Whichever plan it is: while data moves, the best one is another each time.
    cycles = memory.cycles + 1
    if cycles < rule.patience or evidence <= wanted_evidence:
        return kept("has to last", cycles, evidence)
    taken = Taken(cycle=seen.cycle, before=seen.running, plan=seen.wanted, forecast=seen.wanted_cost)
    after = replace(memory, cycles=0, evidence=0.0, usual=None, unjudged=taken, worse=0)
    verdict = Verdict(action="take", plan=seen.wanted, why="gains enough", gain=gain)
    return verdict, replace(after, changes=(*memory.changes, seen.cycle))


def _learned(memory: Memory, share: float) -> Memory:
    """Return the memory with one gain more."""
    usual = share if memory.usual is None else memory.usual
    differs = min(abs(share - usual), _FAR * memory.noise)
    return replace(
        memory,
        usual=usual + _FOLLOWING * (share - usual),
        noise=max(memory.noise + _LEARNING * (differs - memory.noise), _LEAST_NOISE),
    )


def _forgetting(memory: Memory, cycle: int, rule: Rule) -> Memory:
    return replace(
        memory,
        changes=tuple(change for change in memory.changes if cycle - change <= rule.calm),
        refused=tuple((plan, until) for plan, until in memory.refused if until >= cycle),
    )


__all__ = ["NO_MEMORY", "Memory", "Outlook", "Rule", "Taken", "Verdict", "consider"]
