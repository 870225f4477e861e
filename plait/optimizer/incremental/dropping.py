"""A plan without some of its queries: what only they needed goes, all else stays the very same.

Tempting and wrong: to leave the stores as they are. What a store keeps for a query that is gone takes room, is computed
for every row, and would be kept for ever while queries come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import is_
from typing import TypeVar

from plait.optimizer.assemble.access import source_of_key
from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.draft import Draft
from plait.optimizer.assemble.intermediate_stores import lay_out_intermediate_stores
from plait.optimizer.assemble.orders_of_plan import reading_choices, store_name_of
from plait.optimizer.assemble.source_stores import keeps_all, source_store
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.plan.model import Fill, Output, Plan, ProbeTree, Step, Store
from plait.plan.relations import StoreNeed, needs_of
from plait.query.model import Query

_Ending = TypeVar("_Ending", Output, Fill)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """The queries that leave a plan, and those that stay in it."""

    gone: tuple[Query, ...]
    staying: tuple[Query, ...]


def without(plan: Plan, leaving: Leaving, options: PlanOptions, cardinality: Cardinality) -> Plan:
    """Return the plan for the queries that stay."""
    names = frozenset(query.name for query in leaving.gone)
    trees, probed = _without_idle_fills(plan, _without_outputs(plan.trees, names))
    left = replace(plan, queries=tuple(name for name in plan.queries if name not in names), trees=trees)
    stores = _source_stores(left, leaving, options)
    stores += _intermediate_stores(replace(left, stores=stores), plan, probed, leaving.staying, options, cardinality)
    touched = frozenset(store.id for store in stores if store is not plan.store(store.id))
    reached = _reached(tuple(stores), trees, touched | _probed_in_others(plan, trees), options)
    return replace(left, stores=tuple(sorted(reached, key=lambda store: store.id)))


def _without_outputs(trees: Iterable[ProbeTree], queries: frozenset[str]) -> tuple[ProbeTree, ...]:
    """Return the trees without what ends in these queries, those in which nothing does the very same."""

    def ends(outputs: tuple[Output, ...]) -> bool:
        return any(output.query in queries for output in outputs)

    found: list[ProbeTree] = []
    for tree in trees:
        if ends(tree.outputs) or any(ends(step.outputs) for step in tree.steps()):
            found += _pruned((tree,), lambda output: output.query not in queries, lambda fill: True)
        else:
            found.append(tree)
    return tuple(found)


def _without_idle_fills(plan: Plan, trees: tuple[ProbeTree, ...]) -> tuple[tuple[ProbeTree, ...], frozenset[str]]:
    """Return the trees that fill no intermediate store that nobody probes, and those stores that are probed still.

    What filled a store may have been all that probed another one.
    """
    filled = {store.id for store in plan.stores if store.intermediate is not None}
    while filled:
        probed = {step.member.store for tree in trees for step in tree.steps() if step.parts}
        if filled <= probed:
            break
        filled &= probed
        trees = _filling_only(trees, frozenset(filled))
    return trees, frozenset(filled)


def _filling_only(trees: Iterable[ProbeTree], stores: frozenset[str]) -> tuple[ProbeTree, ...]:
    return _pruned(trees, lambda output: True, lambda fill: fill.store in stores)


def _pruned(
    trees: Iterable[ProbeTree], is_answered: Callable[[Output], bool], is_filled: Callable[[Fill], bool]
) -> tuple[ProbeTree, ...]:
    """Return the trees with these endings alone, those that have no other the very same."""

    def kept(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        left = tuple(each for each in map(step_of, steps) if each is not None)
        return steps if len(left) == len(steps) and all(map(is_, left, steps)) else left

    def step_of(step: Step) -> Step | None:
        outputs, fills = _only(step.outputs, is_answered), _only(step.fills, is_filled)
        children = kept(step.children)
        if not outputs and not fills and not children:
            return None
        if outputs is step.outputs and fills is step.fills and children is step.children:
            return step
        return replace(step, outputs=outputs, fills=fills, children=children)

    found = []
    for tree in trees:
        outputs, children = _only(tree.outputs, is_answered), kept(tree.children)
        if outputs is tree.outputs and children is tree.children:
            found.append(tree)
        elif outputs or children:
            found.append(replace(tree, outputs=outputs, children=children))
    return tuple(found)


def _only(endings: tuple[_Ending, ...], is_wanted: Callable[[_Ending], bool]) -> tuple[_Ending, ...]:
    return endings if all(map(is_wanted, endings)) else tuple(filter(is_wanted, endings))


def _probed_in_others(plan: Plan, trees: Iterable[ProbeTree]) -> frozenset[str]:
    """Return the stores that a plan probes in trees that are not among these."""
    same = {id(tree) for tree in trees}
    others = (tree for tree in plan.trees if id(tree) not in same)
    return frozenset(step.member.store for tree in others for step in tree.steps())


def _source_stores(plan: Plan, leaving: Leaving, options: PlanOptions) -> tuple[Store, ...]:
    """Return the stores of sources, those laid out anew that a query which is gone has used."""
    store_name = store_name_of(plan)
    touched = {store_name(query.name, each.source) for query in leaving.gone for each in query.relations}
    needs: dict[str, list[StoreNeed]] = {name: [] for name in touched}
    for query in leaving.staying:
        for need in needs_of(query):
            name = store_name(query.name, need.source)
            if name in touched:
                needs[name].append(need)
    stores = []
    for store in (each for each in plan.stores if each.intermediate is None):
        if store.id not in touched:
            stores.append(store)
            continue
        source = options.source(store.source or "", reader="")
        if needs[store.id] or (keeps_all(source) and store.id == store_name("", source.name)):
            made = source_store(store.id, source, needs[store.id], options)
            stores.append(_as_before(made, store))
    return tuple(stores)


def _intermediate_stores(
    left: Plan,
    before: Plan,
    probed: frozenset[str],
    staying: tuple[Query, ...],
    options: PlanOptions,
    cardinality: Cardinality,
) -> tuple[Store, ...]:
    """Return the intermediate stores that are probed still, with what the queries that stay need of them."""
    if not probed:
        return ()
    complete = replace(left, stores=(*left.stores, *(before.store(name) for name in sorted(probed))))
    choices = reading_choices(complete, staying)
    concerned = {query.name for query in choices.joined}
    draft = Draft(
        queries=CoveredQueries.of((query for query in staying if query.name in concerned), choices.joined),
        orders=choices.orders,
        options=options,
        cardinality=cardinality,
        store_name=choices.store_name,
    )
    return tuple(_as_before(store, before.store(store.id)) for store in lay_out_intermediate_stores(draft).stores)


def _as_before(made: Store, before: Store) -> Store:
    """Return a store with the partitions, indexes and partitioning it had; the very same one if nothing is new."""
    fitted = replace(made, indexes=before.indexes, partition_by=before.partition_by, parallelism=before.parallelism)
    return before if fitted == before else fitted


def _reached(
    stores: tuple[Store, ...], trees: tuple[ProbeTree, ...], touched: frozenset[str], options: PlanOptions
) -> tuple[Store, ...]:
    """Return the stores without indexes that nobody probes any more, and without a partitioning that nobody knows."""
    used: dict[str, dict[tuple[str, ...], bool]] = {name: {} for name in touched}
    for tree in trees:
        for step in tree.steps():
            if step.member.store in used:
                index = step.index
                used[step.member.store][index] = used[step.member.store].get(index, False) or bool(step.equalities)
    by_id = {store.id: store for store in stores}
    return tuple(
        _with_indexes(store, used[store.id], by_id, options) if store.id in used else store for store in stores
    )


def _with_indexes(
    store: Store, used: Mapping[tuple[str, ...], bool], stores: Mapping[str, Store], options: PlanOptions
) -> Store:
    """Return the store with the indexes that are `used`, each with whether tuples know its values. Where none of them
    tells the partition any more, the first that can does from now on.
    """
    indexes = tuple(index for index in store.indexes if index in used)
    if indexes == store.indexes:
        return store
    partition_by = store.partition_by
    if not any(set(partition_by) <= set(index) for index in indexes):
        telling = (
            (name,)
            for index in indexes
            if used[index]
            for name in index
            if source_of_key(store, name, stores) not in options.at_random
        )
        partition_by = next(telling, ())
    return replace(store, indexes=indexes, partition_by=partition_by)


__all__ = ["Leaving", "without"]
