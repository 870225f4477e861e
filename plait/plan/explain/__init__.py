"""Show a plan to people (text), programs (JSON) and browsers (Mermaid); equal plans give equal output to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from plait.errors import OptionError
from plait.plan.explain.closings import Closing
from plait.plan.explain.costs import Comparison, PlanCost, expected_cost
from plait.plan.explain.document import to_json
from plait.plan.explain.explanation import EVERYTHING, Explanation, Shown
from plait.plan.explain.mermaid import to_mermaid
from plait.plan.explain.plain_text import to_text
from plait.plan.explain.run_counts import EdgeCount, Measured, StoreCount
from plait.plan.model import Plan

ExplainFormat: TypeAlias = Literal["text", "json", "mermaid"]

FORMATS: Mapping[ExplainFormat, Callable[[Explanation], str]] = MappingProxyType(
    {"text": to_text, "json": to_json, "mermaid": to_mermaid}
)

__all__ = [
    "EVERYTHING",
    "FORMATS",
    "Comparison",
    "EdgeCount",
    "ExplainFormat",
    "Measured",
    "PlanCost",
    "Shown",
    "StoreCount",
    "checked_format",
    "expected_cost",
    "explain",
]


def explain(
    plan: Plan,
    format: ExplainFormat = "text",
    *,
    comparison: Comparison | None = None,
    measured: Measured | None = None,
    notes: tuple[str, ...] = (),
    closings: tuple[Closing, ...] = (),
    shown: Shown = EVERYTHING,
) -> str:
    """Return the plan in one of `FORMATS`, ending in a newline; raises OptionError for another format.

    `comparison`: other plans for the same queries. `measured`: what a run has counted. `notes`: what the reader should
    know, a line each. `closings`: what of its queries comes by the watermark. `shown`: which part of it; OptionError if
    it names what is not there.
    """
    show, part = FORMATS[checked_format(format)], shown.part(plan)
    notes = notes if shown == EVERYTHING else (*notes, shown.note)
    closings = tuple(each for each in closings if each.query in part.queries)
    return show(
        Explanation(plan=plan, part=part, comparison=comparison, measured=measured, notes=notes, closings=closings)
    )


def checked_format(format: str) -> ExplainFormat:
    """Return the format of this name. Raises OptionError if there is none."""
    for known in FORMATS:
        if known == format:
            return known
    raise OptionError(f"unknown EXPLAIN format '{format}'; expected one of {', '.join(FORMATS)}")
