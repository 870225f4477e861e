"""What governs a span of batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.plan.model import Plan
from plait.query.model import Stream
from plait.runtime.outputs.binding import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What governs a span of batches: one plan, the queries it answers and the streams it reads."""

    number: int
    plan: Plan
    plan_id: str
    bindings: Mapping[str, Binding]
    streams: tuple[Stream, ...]


__all__ = ["Epoch"]
