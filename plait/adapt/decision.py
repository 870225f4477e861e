"""Whether a plan is taken in the place of the one in force: only if it gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from plait.optimizer.assemble.flows import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.plan.changelog import PlanChange, changelog, text_of
from plait.plan.explain.costs import total
from plait.plan.model import Plan
from plait.plan.traversals import probes
from plait.stats.model import Statistics

MARGIN = 0.02
"""Which share of the cost a plan must save to be taken: estimates of nearly equal plans change places all the time."""

_WEIGHS_STORES = "ilp"

Reason: TypeAlias = Literal["cheaper", "storage budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of plan. `cost_before` and `cost_after`: of the plan in force and of the new one per second of event
    time, forecast from the same statistics, in weighted probe tuples and rows kept (`cost_of`); None where unknown.
    """

    reason: Reason
    changes: tuple[PlanChange, ...]
    cost_before: float | None
    cost_after: float | None

    @property
    def gain(self) -> float | None:
        """The share of the cost that the new plan saves; below 0 where a budget forces a dearer one."""
        if self.cost_before is None or self.cost_after is None or self.cost_before <= 0:
            return None
        return (self.cost_before - self.cost_after) / self.cost_before

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "reason": self.reason,
            "cost_before": _rounded(self.cost_before),
            "cost_after": _rounded(self.cost_after),
            "gain": _rounded(self.gain),
            "changes": list(map(text_of, self.changes)),
        }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def decide(running: Plan, wanted: Plan, statistics: Statistics, options: PlanOptions) -> Change | None:
    """Return the change from the plan in force to the one wanted; None if it does not gain enough.

    What is unknown of both cannot be compared, and then nothing changes.
    """
    change = change_between(running, wanted, statistics, options, reason="cheaper")
    gain = change.gain
    return change if change.changes and gain is not None and gain > MARGIN else None


def change_between(
    running: Plan, wanted: Plan, statistics: Statistics, options: PlanOptions, *, reason: Reason
) -> Change:
    """Return the change from one plan to the other, whatever it gains."""
    return Change(
        reason=reason,
        changes=changelog(running, wanted),
        cost_before=cost_of(running, statistics, options),
        cost_after=cost_of(wanted, statistics, options),
    )


def cost_of(plan: Plan, statistics: Statistics, options: PlanOptions) -> float | None:
    """Return what a plan is forecast to cost per second of event time; None if that is unknown.

    It is what the strategy minimizes, lest its plan be judged by what it was not made for: probe tuples; `ilp` counts
    `probe_weight` for each, and `store_weight` for a row that enters an intermediate store.
    """
    forecast = reestimated(plan, Cardinality(statistics=statistics))
    steps = [step for _, step in probes(forecast)]
    probing = total(step.estimate.probe_tuples_per_s for step in steps)
    keeping = total(step.estimate.results_per_s for step in steps for _ in step.fills)
    if probing is None or keeping is None:
        return None
    if options.strategy != _WEIGHS_STORES:
        return probing
    return options.probe_weight * probing + options.store_weight * keeping


__all__ = ["MARGIN", "Change", "Reason", "change_between", "cost_of", "decide"]
