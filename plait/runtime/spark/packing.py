"""What the probe tasks of many batches have in common, sent as bytes and unpacked once per worker.

With hundreds of queries a plan has thousands of steps: to pickle it for every batch, and to unpickle it in every task,
takes as long as probing a few thousand rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from plait.operators.ingest.readings import Readings
from plait.operators.probe.demand import Demands, Wanted
from plait.operators.probe.probing import ProbeContext
from plait.plan.model import Plan
from plait.sinks.delivery import Delivery

_NO_PLAN: Final = Plan(strategy="", queries=(), ranks=(), stores=(), trees=())


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan, the columns that are wanted of each query, how stored rows are read, and where results go."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """The same unpacked, with what a worker finds out about it."""

    plan: Plan
    wanted: Wanted
    readings: Readings
    deliveries: Mapping[str, Delivery]
    demands: Demands = field(default_factory=Demands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """What is sent with a batch: the rest of the context, and what lasts."""

    context: ProbeContext
    packed: Packed

    def unpacked(self) -> tuple[ProbeContext, Lasting]:
        """Return the whole context, and what lasts."""
        lasting = _unpacked(self.packed)
        context = replace(self.context, plan=lasting.plan, wanted=lasting.wanted, readings=lasting.readings)
        return context, lasting


@dataclass(slots=True)
class Packer:
    """Packs what lasts, once for as long as it stays the same."""

    _packed: tuple[Lasting, Packed] | None = None

    def pack(self, context: ProbeContext, deliveries: Mapping[str, Delivery]) -> Shipment:
        """Return a context and deliveries as they are sent to tasks."""
        if self._packed is None or not _is_same(self._packed[0], context, deliveries):
            lasting = Lasting(
                plan=context.plan, wanted=context.wanted, readings=context.readings, deliveries=deliveries
            )
            content = pickle.dumps((context.plan, dict(context.wanted), dict(context.readings), dict(deliveries)))
            self._packed = lasting, Packed(content)
        return Shipment(context=replace(context, plan=_NO_PLAN, wanted={}, readings={}), packed=self._packed[1])


def _is_same(lasting: Lasting, context: ProbeContext, deliveries: Mapping[str, Delivery]) -> bool:
    is_same = lasting.plan is context.plan and lasting.readings is context.readings
    return is_same and lasting.wanted == context.wanted and lasting.deliveries == deliveries


@lru_cache(maxsize=2)
def _unpacked(packed: Packed) -> Lasting:
    plan, wanted, readings, deliveries = pickle.loads(packed.content)
    return Lasting(plan=plan, wanted=wanted, readings=readings, deliveries=deliveries)


__all__ = ["Packer", "Shipment"]
