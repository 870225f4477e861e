"""What governs a span of batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plait.operators.close.levels import Maker
from plait.operators.ingest.readings import Readings
from plait.operators.probe.reader import seen
from plait.operators.traversal.filling_up import PastPlan
from plait.plan.coming import Way
from plait.plan.key_groups import Generation
from plait.plan.model import Plan
from plait.query.model import Stream
from plait.runtime.outputs.binding import Binding
from plait.state.model import Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What governs a span of batches: one plan, the queries it answers and the streams it reads, those that sources
    deliver and those `derived` from the groups of its queries. `way`: where the plan
    leads to, while intermediate stores are filled for another one. `readings`: how rows are read that earlier plans
    stored with less, by store. `past`: how the queries that want the results of before they came get these.
    `generation`: the tables that arriving rows are sent by, None if they are not.
    """

    number: int
    plan: Plan
    plan_id: str
    bindings: Mapping[str, Binding]
    streams: tuple[Stream, ...]
    derived: tuple[Stream, ...] = ()
    way: Way | None = None
    readings: Readings = field(default_factory=dict)
    past: tuple[PastPlan, ...] = ()
    generation: Generation | None = None

    @property
    def makers(self) -> dict[str, Maker]:
        """The queries whose groups others read, by name."""
        makers = (self.bindings[stream.name] for stream in self.derived)
        return {
            each.query.name: Maker(query=each.query, window=each.grouping.window, identity=each.grouping.identity)
            for each in makers
            if each.grouping is not None
        }

    @property
    def heading(self) -> Plan:
        """The plan that is in force, or will be once its intermediate stores are filled."""
        return self.plan if self.way is None else self.way.goal

    @property
    def base(self) -> Plan:
        """The plan whose probe orders answer the queries."""
        return self.plan if self.way is None else self.way.base

    def seen(self, buckets: Iterable[Bucket]) -> tuple[Bucket, ...]:
        """Return stored buckets with the layouts that the plan reads them under."""
        return tuple(seen(bucket, self.readings) for bucket in buckets)


__all__ = ["Epoch"]
