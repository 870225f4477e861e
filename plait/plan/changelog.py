"""The difference between two plans, and how a plan is brought from one to the other.

`applied(changelog(old, new), old)` does what `new` does. Estimates and the strategy's name are no difference: two plans
that do the same have an empty changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import assert_never

from plait.plan.expected import Estimate
from plait.plan.model import Member, Plan, ProbeTree, Step, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesChanged:
    """Other queries are answered, or the streams rank in another order."""

    queries: tuple[str, ...]
    ranks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAdded:
    """A store that did not exist. One of an intermediate result is filled from what the others hold."""

    store: Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRemoved:
    """A store that this plan has no use for."""

    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """A store keeps other columns, keys or rows, keeps them longer or shorter, or is placed or reached differently."""

    store: Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSet:
    """Tuples of a relation probe in this way from now on; before, in another way or not at all."""

    tree: ProbeTree


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRemoved:
    """Tuples of a relation no longer probe."""

    start: Member


PlanChange: TypeAlias = QueriesChanged | StoreAdded | StoreRemoved | StoreChanged | TreeSet | TreeRemoved


def changelog(old: Plan, new: Plan) -> tuple[PlanChange, ...]:
    """Return what has to change for `new` to govern after `old`: queries, stores, trees, each in order."""
    return (*_queries(old, new), *_stores(old, new), *_trees(old, new))


def applied(changes: Iterable[PlanChange], plan: Plan) -> Plan:
    """Return the plan after these changes. Its numbers are those of the plans they come from, in part out of date."""
    stores = {store.id: store for store in plan.stores}
    trees = {tree.start: tree for tree in plan.trees}
    for change in changes:
        match change:
            case QueriesChanged():
                plan = replace(plan, queries=change.queries, ranks=change.ranks)
            case StoreAdded() | StoreChanged():
                stores[change.store.id] = change.store
            case StoreRemoved():
                del stores[change.store]
            case TreeSet():
                trees[change.tree.start] = change.tree
            case TreeRemoved():
                del trees[change.start]
            case _:
                assert_never(change)
    return replace(
        plan,
        stores=tuple(stores[name] for name in sorted(stores)),
        trees=tuple(sorted(trees.values(), key=lambda tree: tree.start.order)),
    )


def needs_filling(changes: Iterable[PlanChange]) -> bool:
    """Tell whether an intermediate store comes or changes, and has to be filled from what the others hold."""
    return any(
        isinstance(change, StoreAdded | StoreChanged) and change.store.intermediate is not None for change in changes
    )


def text_of(change: PlanChange) -> str:
    """Say in a few words what changes."""
    match change:
        case QueriesChanged():
            return f"answer {', '.join(change.queries)}"
        case StoreAdded():
            return f"keep {change.store.id}"
        case StoreRemoved():
            return f"no longer keep {change.store}"
        case StoreChanged():
            return f"keep {change.store.id} in another way"
        case TreeSet():
            return f"probe from {change.tree.start.store} by another order"
        case TreeRemoved():
            return f"no longer probe from {change.start.store}"
        case _:
            assert_never(change)


def _queries(old: Plan, new: Plan) -> Iterator[PlanChange]:
    if (old.queries, old.ranks) != (new.queries, new.ranks):
        yield QueriesChanged(queries=new.queries, ranks=new.ranks)


def _stores(old: Plan, new: Plan) -> Iterator[PlanChange]:
    before = {store.id: store for store in old.stores}
    after = {store.id: store for store in new.stores}
    for store_id in sorted(before.keys() | after.keys()):
        if store_id not in after:
            yield StoreRemoved(store=store_id)
        elif store_id not in before:
            yield StoreAdded(store=after[store_id])
        elif before[store_id] is not after[store_id] and before[store_id] != after[store_id]:
            yield StoreChanged(store=after[store_id])


def _trees(old: Plan, new: Plan) -> Iterator[PlanChange]:
    before = {tree.start: tree for tree in old.trees}
    after = {tree.start for tree in new.trees}
    yield from (TreeRemoved(start=start) for start in before if start not in after)
    yield from (TreeSet(tree=tree) for tree in new.trees if not _does_the_same(tree, before.get(tree.start)))


def _does_the_same(tree: ProbeTree, other: ProbeTree | None) -> bool:
    return tree is other or (other is not None and _bare(tree) == _bare(other))


def _bare(tree: ProbeTree) -> ProbeTree:
    return replace(tree, children=_without_estimates(tree.children))


def _without_estimates(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, estimate=Estimate(), children=_without_estimates(step.children)) for step in steps)


__all__ = [
    "PlanChange",
    "QueriesChanged",
    "StoreAdded",
    "StoreChanged",
    "StoreRemoved",
    "TreeRemoved",
    "TreeSet",
    "applied",
    "changelog",
    "needs_filling",
    "text_of",
]
