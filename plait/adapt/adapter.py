"""When the plan is reconsidered, and what comes of it: the one thing of this package that the runtime talks to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Final

from plait.adapt.asked_to_plan import Answer, Question
from plait.adapt.decision import Change, Outcome, change_between
from plait.adapt.forecast import forecast
from plait.adapt.planners import Planned, Planners
from plait.adapt.planning import PlanRequest, probing_only
from plait.adapt.reconsidering import Policy, Standing, UnderWay
from plait.adapt.rule import NO_MEMORY, Memory
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.cycles import TEN_SECONDS, CycleLength

_LOG = logging.getLogger(__name__)

YOUNG: Final = frozenset({1, 4, 16})
"""After how many batches of a run the plan is reconsidered although no cycle is over: by then the sample of what has
arrived says something new.
"""

MOST_PLANNING: Final = 0.02
"""Planning takes at most this share of the time of one core, once a run is no longer young."""

_HALVINGS = 8
_BARE = "greedy"
"""A strategy without intermediate stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Whether plans `adapt` to the data, by which `policy`, and how long a `cycle` is."""

    adapts: bool = True
    policy: Policy = field(default_factory=Policy)
    cycle: CycleLength = TEN_SECONDS


class Adapter:
    """Plans beside the stream; a change is taken at a later batch boundary.

    Ask for `next_change` before each batch, and tell `batch_done` after it. Results never depend on what it finds, so
    planning that fails is told in the log and changes nothing. `memory`: what is remembered of an earlier start. Where
    queries come and go, each set of them has one, made by `successor`: all of a run have the same `planners`, who plan
    for one after the other, and within one share of its time.
    """

    def __init__(
        self,
        request: PlanRequest,
        habits: Habits | None = None,
        memory: Memory = NO_MEMORY,
        clock: Callable[[], float] = time.monotonic,
        planners: Planners | None = None,
    ) -> None:
        self._request, self._habits = request, habits or Habits()
        self._planners = planners or Planners()
        self._planning: tuple[Plan, Future[Answer]] | None = None
        self._sample: tuple[Plan, Plan] | None = None
        self._forced: Change | None = None
        self._batches = 0
        self._clock, self._began = clock, clock()
        self._before: Plan | None = None
        self._outcome: Outcome | None = None
        self._is_urgent, self._is_closed = True, False
        self.memory = memory

    @property
    def planned(self) -> Planned:
        """What planning has taken so far."""
        return self._planners.planned

    def successor(self, request: PlanRequest, habits: Habits, memory: Memory) -> Adapter:
        """Return the one that takes the place of this one, which is asked for nothing more; what it is planning is
        forgotten. For other queries a plan made from scratch is no more urgent than at the end of a cycle.
        """
        self.forget()
        if self._is_closed:  # with the run before
            return Adapter(request, habits, memory, self._clock)
        other = Adapter(request, habits, memory, self._clock, self._planners)
        other._began = self._began
        other._is_urgent = self._is_urgent and request == self._request
        return other

    def next_change(self, running: Plan) -> Change | None:
        """Return the change that the next batch begins with; None if the plan in force stays."""
        forced, self._forced = self._forced, None
        if forced is not None:
            return forced
        if self._planning is None or not self._planning[1].done():
            return None
        (reconsidered, planning), self._planning = self._planning, None
        try:
            answer = planning.result()
        except Exception as error:  # whatever a strategy or its solver raises
            _warn_of(error)
            return None
        if reconsidered is not running:  # a storage budget has come between
            return None
        decision, sample = answer.decision, answer.sample
        self.memory, self._before = decision.after.memory, decision.after.before
        self._outcome = decision.outcome or self._outcome
        if sample is not None and decision.change is None:
            self._sample = running, sample
        return decision.change

    def next_sample(self, running: Plan) -> Plan | None:
        """Return orders to try with a few tuples of the next batch, once; None if there are none. They are on the
        stores of the plan that was in force when they were chosen.
        """
        chosen, self._sample = self._sample, None
        return chosen[1] if chosen is not None and chosen[0] is running else None

    def last_outcome(self) -> Outcome | None:
        """Return what the last change has come to, once."""
        outcome, self._outcome = self._outcome, None
        return outcome

    def batch_done(
        self,
        manifest: Manifest,
        running: Plan,
        dropped: frozenset[str] = frozenset(),
        under_way: UnderWay | None = None,
    ) -> None:
        """Count a finished batch, and begin to plan if it is time to. `running`: the plan that was decided for last,
        `under_way`: what governed the batch. `dropped`: intermediate stores it left behind to
        hold the storage budget, which the next plan must not want.
        """
        if dropped:
            self._forced = self._without(dropped, manifest, running)
        self._batches += 1
        if self._planning is not None or not self._habits.adapts:
            return
        is_young = self._batches in YOUNG
        is_due = is_young or self._habits.cycle.is_over(manifest.cycles)
        if is_due and ((is_young and self._is_urgent) or self._may_plan()):
            standing = Standing(running=running, before=self._before, memory=self.memory, under_way=under_way)
            policy = replace(self._habits.policy, is_young=is_young)
            question = Question(request=self._request, manifest=manifest, standing=standing, policy=policy)
            self._planning = running, self._planners.submit(question)

    def _may_plan(self) -> bool:
        return self.planned.seconds <= MOST_PLANNING * (self._clock() - self._began)

    def _without(self, dropped: frozenset[str], manifest: Manifest, running: Plan) -> Change | None:
        """Return the change to a plan that does not want the stores that were just dropped; from now on plans take as
        little as this one. What was being planned is forgotten. None: no such plan works on the stores there are.

        Estimates were too low, so the plan is made for half of the room and half again until the stores are gone;
        whatever the estimates, a plan without any intermediate store is the last. A batch waits for this, so all of
        them share the time limit of one.
        """
        self._planning, self._before, self.memory = None, None, NO_MEMORY
        options = self._request.options
        hurried = replace(options, time_limit_s=options.time_limit_s / _HALVINGS)
        shares = (options.storage_share / 2**halving for halving in range(1, _HALVINGS))
        statistics = forecast(options.sources, manifest)
        for changed in (*({"storage_share": share} for share in shares), {"strategy": _BARE}):
            self._request = replace(self._request, options=replace(options, **changed))
            try:
                wanted = replace(self._request, options=replace(hurried, **changed)).plan(manifest)
            except Exception as error:  # as above
                _warn_of(error)
                continue
            fitting = probing_only(running, wanted)
            if fitting is not None and dropped.isdisjoint(store.id for store in fitting.stores):
                return change_between(running, fitting, statistics, options, reason="storage budget")
        return None

    def wait(self) -> None:
        """Wait until the plan being made is there."""
        if self._planning is not None:
            wait((self._planning[1],))

    def forget(self) -> None:
        """Drop the plan being made: what has begun goes on, as a solver cannot be interrupted, and is of no use."""
        if self._planning is not None:
            self._planning[1].cancel()
            self._planning = None

    def close(self, *, wait: bool = True) -> None:
        """Drop the plan being made. `wait`: until its solver, which cannot be interrupted, has come to its end."""
        self._is_closed = True
        self._planners.close(wait=wait)


def _warn_of(error: Exception) -> None:
    _LOG.warning(
        "the plan could not be reconsidered, so the one in force stays: %s: %s",
        type(error).__name__,
        error,
        exc_info=error,
    )


__all__ = ["MOST_PLANNING", "YOUNG", "Adapter", "Habits", "Planned"]
