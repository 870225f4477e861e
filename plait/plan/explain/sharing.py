"""The probe orders of every query, and with whom it shares their steps."""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.model import Plan, Step
from plait.plan.walks import endings, queries_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStep:
    """One step of a probe order; `others`: the other queries that use it, sorted."""

    step: Step
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOrder:
    """A probe order in the aliases of its query."""

    aliases: tuple[str, ...]
    steps: tuple[SharedStep, ...]

    @property
    def probe_tuples(self) -> float | None:
        """Return the estimate for all steps, shared or not; None if any step's is unknown."""
        known = [shared.step.estimate.probe_tuples for shared in self.steps]
        return None if None in known else sum(estimate for estimate in known if estimate is not None)


def orders_of(plan: Plan, query: str) -> tuple[QueryOrder, ...]:
    """Return the probe orders of a query, ordered by starting alias."""
    found = [
        QueryOrder(
            aliases=tuple(alias for alias, _ in sorted(output.positions, key=lambda place: place[1])),
            steps=tuple(SharedStep(step=step, others=tuple(sorted(queries_behind(step) - {query}))) for step in steps),
        )
        for _, steps, output in endings(plan)
        if output.query == query
    ]
    return tuple(sorted(found, key=lambda order: order.aliases))
