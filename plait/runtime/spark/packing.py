"""What the probe tasks of many batches have in common, sent as bytes and unpacked once per worker.

With hundreds of queries a plan has thousands of steps: to pickle it for every batch, and to unpickle it in every task,
takes as long as probing a few thousand rows. Where queries come and go it changes with nearly every batch, but for the
most part it is the same: so it is packed in parts, of which only those are packed and unpacked that have changed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from plait.operators.ingest.readings import Readings
from plait.operators.probe.demand import Demands, Wanted
from plait.operators.probe.probing import ProbeContext
from plait.plan.model import Plan
from plait.sinks.delivery import Delivery

_NO_PLAN: Final = Plan(strategy="", queries=(), ranks=(), stores=(), trees=())
_DEMANDS: Final = Demands()
"""A worker's: it carries out one task after the other."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan without its parts; its trees; its stores, each with how its rows are read; and of each query what columns
    are wanted and where its results go.
    """

    plan: bytes
    trees: tuple[bytes, ...]
    stores: tuple[bytes, ...]
    queries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """The same unpacked, with what a worker finds out about it."""

    plan: Plan
    wanted: Wanted
    readings: Readings
    deliveries: Mapping[str, Delivery]
    demands: Demands = _DEMANDS


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
    """Packs what lasts, once for as long as it stays the same: `_parts` by what they are of, each with its bytes."""

    _packed: tuple[Lasting, Packed] | None = None
    _parts: dict[object, tuple[Any, bytes]] = field(default_factory=dict)

    def pack(self, context: ProbeContext, deliveries: Mapping[str, Delivery]) -> Shipment:
        """Return a context and deliveries as they are sent to tasks."""
        if self._packed is None or not _is_same(self._packed[0], context, deliveries):
            lasting = Lasting(
                plan=context.plan, wanted=context.wanted, readings=context.readings, deliveries=deliveries
            )
            self._packed = lasting, self._pack(lasting)
        return Shipment(context=replace(context, plan=_NO_PLAN, wanted={}, readings={}), packed=self._packed[1])

    def _pack(self, lasting: Lasting) -> Packed:
        known, self._parts = self._parts, {}
        plan, readings = lasting.plan, lasting.readings
        names = dict.fromkeys((*lasting.wanted, *lasting.deliveries))
        return Packed(
            plan=pickle.dumps(replace(plan, trees=(), stores=())),
            trees=self._packed_parts(known, (("tree", place, (tree,)) for place, tree in _by_identity(plan.trees))),
            stores=self._packed_parts(
                known, (("store", store.id, (store, readings.get(store.id))) for store in plan.stores)
            ),
            queries=self._packed_parts(
                known, (("query", name, (lasting.wanted.get(name), lasting.deliveries.get(name))) for name in names)
            ),
        )

    def _packed_parts(
        self, known: Mapping[object, tuple[Any, bytes]], parts: Iterable[tuple[str, object, tuple[Any, ...]]]
    ) -> tuple[bytes, ...]:
        packed = []
        for kind, name, part in parts:
            before = known.get((kind, name))
            is_same = before is not None and all(
                old is new or (kind == "query" and old == new) for old, new in zip(before[0], part, strict=True)
            )
            content = before[1] if before is not None and is_same else pickle.dumps((name, part))
            self._parts[kind, name] = part, content
            packed.append(content)
        return tuple(packed)


def _by_identity(trees: Iterable[object]) -> Iterable[tuple[int, object]]:
    """Yield each tree with a number that no other has as long as it is there."""
    return ((id(tree), tree) for tree in trees)


def _is_same(lasting: Lasting, context: ProbeContext, deliveries: Mapping[str, Delivery]) -> bool:
    is_same = lasting.plan is context.plan and lasting.readings is context.readings
    return is_same and lasting.wanted == context.wanted and lasting.deliveries == deliveries


@lru_cache(maxsize=2)
def _unpacked(packed: Packed) -> Lasting:
    stores = dict(map(_part, packed.stores))
    queries = dict(map(_part, packed.queries))
    plan = replace(
        pickle.loads(packed.plan),
        trees=tuple(tree for _, (tree,) in map(_part, packed.trees)),
        stores=tuple(store for store, _ in stores.values()),
    )
    return Lasting(
        plan=plan,
        wanted={name: wanted for name, (wanted, _) in queries.items() if wanted is not None},
        readings={name: reading for name, (_, reading) in stores.items() if reading is not None},
        deliveries={name: delivery for name, (_, delivery) in queries.items() if delivery is not None},
    )


@lru_cache(maxsize=1 << 12)
def _part(content: bytes) -> tuple[Any, Any]:
    name, part = pickle.loads(content)
    return name, part


__all__ = ["Packer", "Shipment"]
