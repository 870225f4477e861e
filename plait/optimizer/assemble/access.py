"""How stores are reached: the index and the partitioning that suit the tuples that probe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from plait.optimizer.assemble.draft import Draft
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import extent_of
from plait.plan.model import Store


def choose_indexes_and_partitionings(draft: Draft) -> Draft:
    """Let stores be indexed and partitioned as suits most of the tuples that probe them.

    The stores of sources that are placed at random are partitioned by nothing, intermediate stores by no key of theirs:
    what is frequent there is frequent in a join with it.
    """
    stores, at_random = draft.stores, draft.options.at_random
    traffic: dict[str, dict[tuple[str, ...], float]] = {store.id: {} for store in stores}
    routed: dict[str, dict[tuple[str, ...], float]] = {store.id: {} for store in stores}
    by_id = {store.id: store for store in stores}
    for tree in draft.trees:
        for _, step in tree.walk():
            store = by_id[step.member.store]
            telling = tuple(name for name in step.index if source_of_key(store, name, by_id) not in at_random)
            arriving = draft.flows[step.edge].arriving_per_s
            _count(traffic[store.id], step.index, arriving)
            if step.equalities and telling:
                _count(routed[store.id], telling, arriving)
    keys = _Keys(stores=by_id, cardinality=draft.cardinality)
    reached = (
        replace(
            store,
            indexes=_indexes(traffic[store.id]),
            partition_by=_partitioning(store, routed[store.id], keys),
        )
        for store in stores
    )
    return replace(draft, stores=tuple(reached))


def _count(probes: dict[tuple[str, ...], float], keys: tuple[str, ...], arriving: float) -> None:
    probes[keys] = probes.get(keys, 0.0) + arriving


def source_of_key(store: Store, key: str, stores: Mapping[str, Store]) -> str | None:
    """Return the source that a key of a store comes from."""
    part = store.key(key).part
    if store.intermediate is None or part is None:
        return store.source
    return stores[store.intermediate.parts[part].store].source


def _indexes(traffic: Mapping[tuple[str, ...], float]) -> tuple[tuple[str, ...], ...]:
    """Put the index with most traffic first, because buckets are sorted by it; the others follow by name."""
    used = [index for index in traffic if index]
    if not used:
        return ()
    first = min(used, key=lambda index: (-traffic[index], index))
    return (first, *sorted(set(used) - {first}))


def _partitioning(store: Store, traffic: Mapping[tuple[str, ...], float], keys_known: _Keys) -> tuple[str, ...]:
    """Return the keys that let most probes know their one partition; () if none ever does.

    A single key of a composite routes at least as many probes as the composite, so the composite is taken only where
    the single key has too few distinct values to fill all partitions. Remaining ties: fewer keys, then the name.
    """

    def rank(keys: tuple[str, ...]) -> tuple[float, float, int, tuple[str, ...]]:
        routed = sum(tuples for index, tuples in sorted(traffic.items()) if set(keys) <= set(index))
        distinct = prod(keys_known.distinct(store, key) for key in keys)
        spread = min(distinct, float(store.parallelism))
        return -routed, -spread, len(keys), keys

    choices = {(key,) for index in traffic for key in index} | set(traffic)
    return min(choices, key=rank, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """How many values the keys of stores have."""

    stores: Mapping[str, Store]
    cardinality: Cardinality

    def distinct(self, store: Store, name: str) -> float:
        """Return the distinct values of a key; in an intermediate store those of the part it belongs to."""
        key = store.key(name)
        if store.intermediate is not None and key.part is not None:
            store = self.stores[store.intermediate.parts[key.part].store]
        return self.cardinality.distinct(extent_of(store, store.window_us), key)
