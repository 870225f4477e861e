"""What other queries would cost, and share, as far as can be estimated before they are there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from plait.adapt.planning import PlanRequest
from plait.plan.explain.costs import expected_cost, total
from plait.plan.explain.document import cost_document, rounded
from plait.plan.explain.sharing import sharing_of
from plait.plan.model import Plan
from plait.plan.traversals import probes
from plait.sinks import Sink
from plait.state.model import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A query that could be added; its fields as the arguments of `Engine.query`."""

    name: str
    select: str
    sink: Sink
    windows: Mapping[str, str | None] = field(default_factory=dict)


def previewed(now: PlanRequest, then: PlanRequest, manifest: Manifest | None, added: Collection[str]) -> dict[str, Any]:
    """Return what plans for the queries `now` and `then` cost with today's statistics, and of those `added` how many
    steps they take, which of these are theirs alone and what they cost, and with whom the others are shared.
    """
    before = now.plan(manifest) if now.queries else None
    after = then.plan(manifest) if then.queries else None
    return {
        "before": None if before is None else cost_document(expected_cost(before)),
        "after": None if after is None else cost_document(expected_cost(after)),
        "added": {} if after is None else {name: _of_query(after, name) for name in added},
    }


def _of_query(plan: Plan, name: str) -> dict[str, Any]:
    needs = sharing_of(plan).needs
    taken = [step for _, step in probes(plan) if name in needs[step.edge]]
    own = [step for step in taken if set(needs[step.edge]) == {name}]
    others = {other for step in taken for other in needs[step.edge]} - {name}
    return {
        "steps": len(taken),
        "own_steps": len(own),
        "own_probe_tuples_per_s": rounded(total(step.estimate.probe_tuples_per_s for step in own)),
        "shares_with": sorted(others),
    }


__all__ = ["Wanted", "previewed"]
