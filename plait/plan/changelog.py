"""The difference between two plans: what an epoch change carries out.

Estimates and the strategy's name are no difference: two plans that do the same have an empty changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from plait.plan.model import Estimate, Member, Plan, ProbeTree, Requirement, Step, Store

Index: TypeAlias = tuple[str, ...]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAdded:
    """A store that did not exist. `source` None: of an intermediate result."""

    store: str
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRemoved:
    """A store nobody needs any more. `source` None: of an intermediate result."""

    store: str
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChanged:
    """New buckets of the store carry other columns (`columns_*`) or keys (`keys_*`, by name)."""

    store: str
    columns_added: tuple[str, ...]
    columns_removed: tuple[str, ...]
    keys_added: tuple[str, ...]
    keys_removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsChanged:
    """The store keeps tuples for other reasons; its selections may have other bits."""

    store: str
    added: tuple[Requirement, ...]
    removed: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexesChanged:
    """The store is probed in other ways. `first_before`/`first_after`: what buckets are sorted by, () for nothing."""

    store: str
    added: tuple[Index, ...]
    removed: tuple[Index, ...]
    first_before: Index
    first_after: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitioningChanged:
    """New buckets of the store are placed differently."""

    store: str
    keys_before: tuple[str, ...]
    keys_after: tuple[str, ...]
    parallelism_before: int
    parallelism_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChanged:
    """The store keeps its tuples longer or shorter; None is for ever."""

    store: str
    before_us: int | None
    after_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingChanged:
    """The store keeps tuples nobody probes from now on (`keeps_all`), or no longer."""

    store: str
    keeps_all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAdded:
    """Tuples of a relation start to probe, or are a result by themselves."""

    start: Member


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRemoved:
    """Tuples of a relation no longer probe."""

    start: Member


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeChanged:
    """Tuples of a relation probe in another way. Edges with the same name may still send to other queries."""

    start: Member
    edges_added: tuple[str, ...]
    edges_removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAdded:
    """A query that was not answered before."""

    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRemoved:
    """A query that is not answered any more."""

    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksChanged:
    """Who is last inside one batch is settled in another order from now on."""

    before: tuple[str, ...]
    after: tuple[str, ...]


StoreChange: TypeAlias = (
    LayoutChanged | RequirementsChanged | IndexesChanged | PartitioningChanged | WindowChanged | KeepingChanged
)
Change: TypeAlias = (
    StoreAdded
    | StoreRemoved
    | StoreChange
    | TreeAdded
    | TreeRemoved
    | TreeChanged
    | QueryAdded
    | QueryRemoved
    | RanksChanged
)


def changelog(old: Plan, new: Plan) -> tuple[Change, ...]:
    """Return what has to change for `new` to govern after `old`: queries, ranks, stores, trees, each in order."""
    return (*_queries(old, new), *_ranks(old, new), *_stores(old, new), *_trees(old, new))


def changes_ingest(old: Plan, new: Plan) -> bool:
    """Tell whether rows have to be read, filtered, keyed, placed or laid out differently when they arrive.

    Then the underlying streaming query restarts on its own offset log. Tables count, since they are read again.
    Indexes, windows, ranks, trees and intermediate stores do not: they are looked up batch by batch.
    """
    kinds = (StoreAdded, StoreRemoved, LayoutChanged, RequirementsChanged, PartitioningChanged)
    of_sources = {store.id for plan in (old, new) for store in plan.stores if store.intermediate is None}
    return any(isinstance(change, kinds) and change.store in of_sources for change in _stores(old, new))


def _queries(old: Plan, new: Plan) -> Iterator[Change]:
    yield from (QueryRemoved(query=query) for query in _without(old.queries, new.queries))
    yield from (QueryAdded(query=query) for query in _without(new.queries, old.queries))


def _ranks(old: Plan, new: Plan) -> Iterator[Change]:
    if old.ranks != new.ranks:
        yield RanksChanged(before=old.ranks, after=new.ranks)


def _stores(old: Plan, new: Plan) -> Iterator[Change]:
    before = {store.id: store for store in old.stores}
    after = {store.id: store for store in new.stores}
    for store_id in sorted(before.keys() | after.keys()):
        if store_id not in after:
            yield StoreRemoved(store=store_id, source=before[store_id].source)
        elif store_id not in before:
            yield StoreAdded(store=store_id, source=after[store_id].source)
        elif _is_other(before[store_id], after[store_id]):
            yield StoreRemoved(store=store_id, source=before[store_id].source)
            yield StoreAdded(store=store_id, source=after[store_id].source)
        else:
            yield from _store(before[store_id], after[store_id])


def _is_other(old: Store, new: Store) -> bool:
    """Tell whether two stores merely have the same name: nothing of the old one can be used."""
    return (old.source, old.is_table, old.intermediate) != (new.source, new.is_table, new.intermediate)


def _store(old: Store, new: Store) -> Iterator[StoreChange]:
    old_keys, new_keys = ([key.name for key in store.keys] for store in (old, new))
    if (old.columns, old_keys) != (new.columns, new_keys):
        yield LayoutChanged(
            store=new.id,
            columns_added=_without(new.columns, old.columns),
            columns_removed=_without(old.columns, new.columns),
            keys_added=_without(new_keys, old_keys),
            keys_removed=_without(old_keys, new_keys),
        )
    if old.requirements != new.requirements:
        yield RequirementsChanged(
            store=new.id,
            added=_without(new.requirements, old.requirements),
            removed=_without(old.requirements, new.requirements),
        )
    if old.indexes != new.indexes:
        yield IndexesChanged(
            store=new.id,
            added=_without(new.indexes, old.indexes),
            removed=_without(old.indexes, new.indexes),
            first_before=old.indexes[0] if old.indexes else (),
            first_after=new.indexes[0] if new.indexes else (),
        )
    if (old.partition_by, old.parallelism) != (new.partition_by, new.parallelism):
        yield PartitioningChanged(
            store=new.id,
            keys_before=old.partition_by,
            keys_after=new.partition_by,
            parallelism_before=old.parallelism,
            parallelism_after=new.parallelism,
        )
    if old.window_us != new.window_us:
        yield WindowChanged(store=new.id, before_us=old.window_us, after_us=new.window_us)
    if old.keeps_all != new.keeps_all:
        yield KeepingChanged(store=new.id, keeps_all=new.keeps_all)


def _trees(old: Plan, new: Plan) -> Iterator[Change]:
    before, after = _by_start(old), _by_start(new)
    yield from (TreeRemoved(start=start) for start in before if start not in after)
    for start, tree in after.items():
        if start not in before:
            yield TreeAdded(start=start)
        elif tree != before[start]:
            old_edges, new_edges = _edges(before[start]), _edges(tree)
            yield TreeChanged(
                start=start,
                edges_added=_without(new_edges, old_edges),
                edges_removed=_without(old_edges, new_edges),
            )


def _by_start(plan: Plan) -> Mapping[Member, ProbeTree]:
    return {tree.start: replace(tree, children=_without_estimates(tree.children)) for tree in plan.trees}


def _without_estimates(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, estimate=Estimate(), children=_without_estimates(step.children)) for step in steps)


def _edges(tree: ProbeTree) -> list[str]:
    return [step.edge for _, step in tree.walk()]


def _without(items: Iterable[_Item], others: Iterable[_Item]) -> tuple[_Item, ...]:
    excluded = set(others)
    return tuple(item for item in items if item not in excluded)
