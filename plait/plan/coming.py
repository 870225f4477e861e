"""The way from one plan to another whose intermediate stores have to be filled first.

While they are filled the probe orders of the plan in force stay as they are, and arrivals also take the steps that fill
the stores which **come**. A store that comes has an id of its own (`coming_id`): so nobody can take it for one that is
complete, and one that the plan in force reads can come anew, with other columns, beside the one that is read.

A store that is filled from another one comes after that: until then its arrivals would find half of the other. So the
way has as many stages as stores build upon each other, and each of them is a plan (`on_the_way`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from plait.plan.model import Member, Plan, ProbeTree, Step, Store
from plait.plan.pruning import filling_trees
from plait.plan.traversals import carried_columns, fillings, intermediates

_SUFFIX: Final = "+"


def coming_id(store: str) -> str:
    """Return the id of an intermediate store while it comes."""
    return store + _SUFFIX


def settled_id(store: str) -> str:
    """Return the id of an intermediate store once it is there."""
    return store.removesuffix(_SUFFIX)


def covers(own: Store, wanted: Store) -> bool:
    """Tell whether a store keeps all columns, keys and values that another of the same id is to keep."""
    return set(carried_columns(own)) >= set(carried_columns(wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """From a plan that answers its queries (`base`) to another one (`goal`), which reads and places rows alike.
    `filled`: the intermediate stores that have come so far, by the id they will have. `indexed`: whether stored buckets
    have the indexes that are looked up on the way; until then nothing changes for queries, and no store comes.
    """

    base: Plan
    goal: Plan
    filled: frozenset[str] = frozenset()
    indexed: bool = True

    @property
    def lacking(self) -> frozenset[str]:
        """The intermediate stores that have to be filled before the goal can govern."""
        wanted = missing(self.base, self.goal)
        return wanted - _there(self.goal, wanted, self.filled)

    @property
    def is_done(self) -> bool:
        """Whether the goal can govern."""
        return self.indexed and not self.lacking

    @property
    def plan(self) -> Plan:
        """What governs: the goal, once nothing is lacking."""
        if not self.indexed:
            return replace(self.base, stores=_stores(self.base, self.goal, {}))
        return on_the_way(self.base, self.goal, self.filled)


def missing(base: Plan, goal: Plan) -> frozenset[str]:
    """Return the intermediate stores of `goal` that `base` does not keep, or not with all they are to keep."""
    there = {store.id: store for store, _ in intermediates(base) if store.id not in base.coming}
    stores = (store for store, _ in intermediates(goal))
    return frozenset(store.id for store in stores if store.id not in there or not covers(there[store.id], store))


def on_the_way(base: Plan, goal: Plan, filled: Collection[str]) -> Plan:
    """Return the plan that governs on the way from `base` to `goal`, of whose stores these are `filled`."""
    wanted = missing(base, goal)
    come = _there(goal, wanted, filled)
    if wanted == come:
        return goal
    coming = {name for name in wanted if _read_to_fill(goal, name) & wanted <= come}
    names = {name: coming_id(name) for name in coming}
    added = tuple(_tree_into(tree, names) for tree in filling_trees(goal, coming))
    return replace(
        base,
        strategy=goal.strategy,
        stores=_stores(base, goal, names),
        trees=_merged_trees(base.trees, added),
        stored_rows_estimate=None,
        stored=(*base.stored, *(replace(each, store=names[each.store]) for each in goal.stored if each.store in names)),
        solution=None,
        coming=tuple(sorted(names.values())),
    )


def _there(goal: Plan, wanted: frozenset[str], filled: Collection[str]) -> frozenset[str]:
    """Return those of the wanted stores that are filled and stay so: whatever is read to fill them is there too.
    Another plan may have filled one in another way; arrivals would be missing until what this one reads has come.
    """
    come = wanted.intersection(filled)
    while lost := {name for name in come if not _read_to_fill(goal, name) & wanted <= come}:
        come -= lost
    return come


def _read_to_fill(plan: Plan, store: str) -> set[str]:
    """Return the intermediate stores that arrivals read on their way into this one."""
    return {
        step.member.store for _, steps, fill in fillings(plan) if fill.store == store for step in steps if step.parts
    }


def _stores(base: Plan, goal: Plan, names: Mapping[str, str]) -> tuple[Store, ...]:
    """Return the stores of `base`, reached in all ways that are asked for, and those that come.

    Indexes of the goal alone are built for what is merged meanwhile, so that they are there when it begins.
    """
    wanted = {store.id: store for store in goal.stores}
    stores = {store.id: _indexed_for(store, wanted.get(store.id)) for store in base.stores}
    for name, while_coming in names.items():
        stores[while_coming] = replace(wanted[name], id=while_coming)
    return tuple(stores[name] for name in sorted(stores))


def _indexed_for(store: Store, other: Store | None) -> Store:
    known = {key.name for key in store.keys}
    added = () if other is None else (index for index in other.indexes if known.issuperset(index))
    return replace(store, indexes=tuple(dict.fromkeys((*store.indexes, *added))))


def _tree_into(tree: ProbeTree, names: Mapping[str, str]) -> ProbeTree:
    """Return the tree on stores that come, under the names they have until then."""
    return replace(tree, children=tuple(_step_into(step, names) for step in tree.children))


def _step_into(step: Step, names: Mapping[str, str]) -> Step:
    return replace(
        step,
        member=replace(step.member, store=names.get(step.member.store, step.member.store)),
        fills=tuple(replace(fill, store=names[fill.store]) for fill in step.fills),
        children=tuple(_step_into(child, names) for child in step.children),
    )


def _merged_trees(own: Iterable[ProbeTree], added: Iterable[ProbeTree]) -> tuple[ProbeTree, ...]:
    """Return all trees, those of one start as one, with equal steps once."""
    trees: dict[Member, ProbeTree] = {tree.start: tree for tree in own}
    taken = {step.edge for tree in trees.values() for _, step in tree.walk()}
    for tree in added:
        known = trees.get(tree.start, ProbeTree(start=tree.start))
        trees[tree.start] = replace(known, children=_merged_steps(known.children, tree.children, taken))
    return tuple(sorted(trees.values(), key=lambda tree: tree.start.order))


def _merged_steps(own: tuple[Step, ...], added: tuple[Step, ...], taken: set[str]) -> tuple[Step, ...]:
    """Return the steps of one place; those that are not there yet get an edge that is not `taken`."""
    steps = {(step.member, step.predicates, step.parts): step for step in own}
    for step in added:
        content = step.member, step.predicates, step.parts
        known = steps.get(content)
        if known is None:
            known = replace(step, edge=_free(step.edge, taken), fills=(), children=())
        fills = tuple(sorted({*known.fills, *step.fills}, key=lambda fill: (fill.store, fill.positions)))
        steps[content] = replace(known, fills=fills, children=_merged_steps(known.children, step.children, taken))
    return tuple(steps.values())


def _free(edge: str, taken: set[str]) -> str:
    while edge in taken:
        edge += _SUFFIX
    taken.add(edge)
    return edge


__all__ = ["Way", "coming_id", "covers", "missing", "on_the_way", "settled_id"]
