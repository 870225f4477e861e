"""What governs a span of batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.plan.coming import Way
from plait.plan.model import Plan
from plait.query.model import Stream
from plait.runtime.outputs.binding import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What governs a span of batches: one plan, the queries it answers and the streams it reads. `way`: where the plan
    leads to, while intermediate stores are filled for another one.
    """

    number: int
    plan: Plan
    plan_id: str
    bindings: Mapping[str, Binding]
    streams: tuple[Stream, ...]
    way: Way | None = None

    @property
    def heading(self) -> Plan:
        """The plan that is in force, or will be once its intermediate stores are filled."""
        return self.plan if self.way is None else self.way.goal

    @property
    def base(self) -> Plan:
        """The plan whose probe orders answer the queries."""
        return self.plan if self.way is None else self.way.base


__all__ = ["Epoch"]
