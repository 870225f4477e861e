"""What plans cost, as estimated, so that they can be put side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.plan.model import Plan
from plait.plan.traversals import kept_stores, probes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """A plan in numbers. Probe tuples are per second of event time, the unit in which different trees add up.

    `steps` are different ones: a step that several queries use counts once. None where nothing is known.
    """

    strategy: str
    probe_tuples_per_s: float | None
    stored_rows: float | None
    stored_bytes: float | None
    steps: int
    stores: int
    intermediates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Other plans for the same queries, estimated from the same statistics.

    `assumed` names the numbers that these statistics do not tell and every one of the estimates rests on.
    """

    others: tuple[PlanCost, ...]
    assumed: tuple[str, ...] = ()


def expected_cost(plan: Plan) -> PlanCost:
    """Return what a plan is expected to cost."""
    kept = kept_stores(plan)
    return PlanCost(
        strategy=plan.strategy,
        probe_tuples_per_s=total(step.estimate.probe_tuples_per_s for _, step in probes(plan)),
        stored_rows=plan.stored_rows_estimate,
        stored_bytes=sum(estimate.bytes for estimate in plan.stored) if len(plan.stored) == len(kept) else None,
        steps=sum(1 for _ in probes(plan)),
        stores=len(kept),
        intermediates=sum(store.intermediate is not None for store in plan.stores),
    )


def total(numbers: Iterable[float | None]) -> float | None:
    """Return the sum, None if any number is unknown."""
    listed = list(numbers)
    known = [number for number in listed if number is not None]
    return sum(known) if len(known) == len(listed) else None


def factor(number: float | None, of: float | None) -> float | None:
    """Return how many times `of` a number is; None where either is unknown or `of` is nothing."""
    return None if number is None or not of else number / of
