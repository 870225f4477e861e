"""To reconsider a plan as a question and its answer: plain values, so that another process can be asked as well."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from plait.adapt.other_orders import plan_to_sample
from plait.adapt.planning import GROUPING, Known, PlanRequest
from plait.adapt.reconsidering import Decision, Policy, Standing, reconsider
from plait.plan.model import Plan
from plait.state.model import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether the plan should be another after the batch of this manifest."""

    request: PlanRequest
    manifest: Manifest
    standing: Standing
    policy: Policy

    @property
    def plans(self) -> tuple[Plan | None, ...]:
        """The plans that whoever answers is told of."""
        return self.standing.running, self.standing.before, self.standing.in_force

    def without_files(self) -> Question:
        """Return the same question to somebody who cannot look at what is stored: with what is to be seen there."""
        request, sampled = self.request, self.request.sampled
        if sampled is None:
            return self
        looked_at = sampled(self.manifest) if request.options.strategy in GROUPING else ()
        return replace(self, request=replace(request, sampled=Known(looked_at)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The decision, which orders to sample if the plan stays, and the seconds of a core that took."""

    decision: Decision
    sample: Plan | None
    seconds: float


def answer(question: Question) -> Answer:
    """Return what to do. What a strategy or its solver raises goes through."""
    request, manifest, standing = question.request, question.manifest, question.standing
    began = time.thread_time()
    decision = reconsider(request, manifest, standing, question.policy)
    sample = None if decision.change is not None else plan_to_sample(request, manifest, standing.in_force)
    seconds = time.thread_time() - began
    if decision.change is not None:
        decision = replace(decision, change=replace(decision.change, planning_s=seconds))
    return Answer(decision=decision, sample=sample, seconds=seconds)


__all__ = ["Answer", "Question", "answer"]
