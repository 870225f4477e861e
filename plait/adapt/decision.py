"""What a change of plan does, what it is forecast to bring, and what it brought: the records people are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from plait.adapt.weighing import cost_of
from plait.optimizer.options import PlanOptions
from plait.plan.changelog import PlanChange, changelog, text_of
from plait.plan.model import Plan
from plait.stats.model import Statistics

Reason: TypeAlias = Literal["cheaper", "turned out worse", "storage budget", "indexed", "filled"]
"""Why a plan begins; "indexed", "filled": what a change before this one waits for is there, indexes of what is stored
or intermediate stores.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of plan. `cost_before` and `cost_after`: of the plan in force and of the new one per second of event
    time, forecast from the same statistics, in what the strategy minimizes (`plait.adapt.weighing`); None where
    unknown. `change_cost`: of changing to it, once, in the same unit; it has to be earned within `horizon_s`.
    `restarts` names the plan if Spark's query has to be started anew for it. `planning_s`: what deciding took.
    `delay_s`: after so much event time the gain begins, as forecast, because intermediate stores are filled first.
    `filling`: those that come with this change; until they are there the probe orders stay as they are. `indexing`:
    how many stored rows are sorted by other keys before anything else changes.
    """

    reason: Reason
    changes: tuple[PlanChange, ...]
    cost_before: float | None
    cost_after: float | None
    change_cost: float = 0.0
    horizon_s: float | None = None
    restarts: Plan | None = None
    planning_s: float = 0.0
    delay_s: float = 0.0
    filling: tuple[str, ...] = ()
    indexing: int = 0

    @property
    def goes_on(self) -> bool:
        """Whether it is the next stage of a change before it."""
        return self.reason in ("indexed", "filled")

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
            "change_cost": _rounded(self.change_cost),
            "horizon_s": _rounded(self.horizon_s),
            "restart": self.restarts is not None,
            "planning_s": _rounded(self.planning_s),
            "delay_s": _rounded(self.delay_s),
            "filling": list(self.filling),
            "indexing": self.indexing,
            "changes": list(map(text_of, self.changes)),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the last change brought: `measured` is the cost of the plan in force, `forecast` what it was to be, and
    `before` what the plan before it would cost by now.
    """

    forecast: float
    measured: float
    before: float | None
    taken_back: bool

    @property
    def gain(self) -> float | None:
        """The share of the cost that the change saves."""
        return None if not self.before else (self.before - self.measured) / self.before

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "forecast": _rounded(self.forecast),
            "measured": _rounded(self.measured),
            "before": _rounded(self.before),
            "gain": _rounded(self.gain),
            "taken_back": self.taken_back,
        }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


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


__all__ = ["Change", "Outcome", "Reason", "change_between"]
