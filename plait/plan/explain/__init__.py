"""Show a plan to people (text), programs (JSON) and browsers (Mermaid); equal plans give equal output to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from plait.errors import OptionError
from plait.plan.explain.document import to_json
from plait.plan.explain.mermaid import to_mermaid
from plait.plan.explain.text import to_text
from plait.plan.model import Plan

FORMATS: Mapping[str, Callable[[Plan], str]] = MappingProxyType(
    {"text": to_text, "json": to_json, "mermaid": to_mermaid}
)

__all__ = ["FORMATS", "explain"]


def explain(plan: Plan, format: str = "text") -> str:
    """Return the plan in one of `FORMATS`, ending in a newline; raises OptionError for another format."""
    show = FORMATS.get(format)
    if show is None:
        raise OptionError(f"unknown EXPLAIN format '{format}'; expected one of {', '.join(FORMATS)}")
    return show(plan)
