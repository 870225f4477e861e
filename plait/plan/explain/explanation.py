"""All that an explanation shows."""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.explain.costs import Comparison
from plait.plan.explain.run_counts import Measured
from plait.plan.model import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A plan; what else could be done, what was counted, and what the reader should know, where there is any of it."""

    plan: Plan
    comparison: Comparison | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()
