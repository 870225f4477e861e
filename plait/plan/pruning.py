"""Parts of a plan: what only some of its queries or intermediate stores need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from plait.plan.model import Fill, Member, Output, Plan, ProbeTree, Step, Store

Ending: TypeAlias = Output | Fill
Wanted = Callable[[Member, Ending], bool]


def last_filling(plan: Plan, store: str) -> Plan:
    """Return the plan that fills this intermediate store, and nothing else, from tuples that are all there already.

    Of those the starting relation of the highest rank alone finds everything once: among members that arrived together
    it counts as the last.
    """

    def fills(ending: Ending) -> bool:
        return isinstance(ending, Fill) and ending.store == store

    starts = (tree.start for tree in plan.trees if any(map(fills, _endings(tree))))
    last = max(map(plan.rank, starts), default=None)
    trees = (_prune_tree(tree, lambda start, ending: fills(ending) and plan.rank(start) == last) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.outputs or tree.children))


def part_for(plan: Plan, queries: Collection[str] | None, streams: Collection[str] | None) -> Plan:
    """Return the part of a plan that these queries need when a row of these streams arrives, None: of whichever: the
    ways that end in the queries, those that fill the intermediate stores on the way, and all stores that these probe,
    with what the ways require of them.
    """
    probed = frozenset[str]()

    def is_wanted(start: Member, ending: Ending) -> bool:
        if streams is not None and plan.store(start.store).source not in streams:
            return False
        return ending.store in probed if isinstance(ending, Fill) else queries is None or ending.query in queries

    while True:  # what fills a store may itself probe others, always smaller ones
        pruned = (_prune_tree(tree, is_wanted) for tree in plan.trees)
        trees = tuple(tree for tree in pruned if tree.outputs or tree.children)
        stores = frozenset(step.member.store for tree in trees for _, step in tree.walk())
        if stores == probed:
            break
        probed = stores
    kept = (plan.store(name).intermediate for name in stores)
    stores |= {part.store for intermediate in kept if intermediate is not None for part in intermediate.parts}
    stores |= {tree.start.store for tree in trees}
    endings = (ending for tree in trees for ending in _endings(tree))
    served = {ending.query for ending in endings if isinstance(ending, Output)}
    return replace(
        plan,
        queries=tuple(name for name in plan.queries if name in served),
        trees=trees,
        stores=tuple(_required(store, trees) for store in plan.stores if store.id in stores),
    )


def _required(store: Store, trees: Iterable[ProbeTree]) -> Store:
    """Return a store with the requirements of the members that it has in these trees."""
    members = (member for tree in trees for member in _members(tree) if member.store == store.id)
    wanted = {selection.sql for member in members for selection in member.selection.alternatives}
    return replace(store, requirements=tuple(need for need in store.requirements if need.selection.sql in wanted))


def _members(tree: ProbeTree) -> Iterator[Member]:
    yield tree.start
    for _, step in tree.walk():
        yield from step.members


def only_queries(plan: Plan, queries: frozenset[str]) -> Plan:
    """Return the plan with the paths alone that end in these queries."""

    def is_theirs(start: Member, ending: Ending) -> bool:
        return isinstance(ending, Output) and ending.query in queries

    trees = (_prune_tree(tree, is_theirs) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.outputs or tree.children))


@lru_cache(maxsize=8)  # of the same plan batch after batch, and what is worked out for it is remembered by plan
def without_answers(plan: Plan, queries: frozenset[str]) -> Plan:
    """Return the plan without the paths that end in these queries alone: arrivals do not answer them."""
    if not queries:
        return plan

    def is_wanted(_: Member, ending: Ending) -> bool:
        return isinstance(ending, Fill) or ending.query not in queries

    trees = (_prune_tree(tree, is_wanted) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.outputs or tree.children))


@lru_cache(maxsize=8)  # of the same plan batch after batch, and what it takes is measured by plan
def filling_from(plan: Plan, store: str, part: int) -> Plan:
    """Return the plan that fills this intermediate store with what arrivals of one of its parts complete, and nothing
    else. With tuples that are all there already any part finds every combination once.
    """

    def is_wanted(_: Member, ending: Ending) -> bool:
        return isinstance(ending, Fill) and ending.store == store and ending.positions.index(0) == part

    trees = (_prune_tree(tree, is_wanted) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.children))


@lru_cache(maxsize=64)  # as above
def answering_from(plan: Plan, query: str, alias: str) -> Plan:
    """Return the plan that answers a query with what arrivals of one of its relations complete, and nothing else. As
    above: of tuples that are all there already any relation finds every result once.
    """

    def is_wanted(_: Member, ending: Ending) -> bool:
        return isinstance(ending, Output) and ending.query == query and (alias, 0) in ending.positions

    trees = (_prune_tree(tree, is_wanted) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.outputs or tree.children))


def filling_trees(plan: Plan, stores: Collection[str]) -> tuple[ProbeTree, ...]:
    """Return what of the trees leads into one of these intermediate stores."""
    trees = (
        _prune_tree(tree, lambda _, ending: isinstance(ending, Fill) and ending.store in stores) for tree in plan.trees
    )
    return tuple(tree for tree in trees if tree.children)


def _endings(tree: ProbeTree) -> Iterator[Ending]:
    yield from tree.outputs
    for _, step in tree.walk():
        yield from step.outputs
        yield from step.fills


def _prune_tree(tree: ProbeTree, is_wanted: Wanted) -> ProbeTree:
    return replace(
        tree,
        outputs=tuple(output for output in tree.outputs if is_wanted(tree.start, output)),
        children=_prune(tree.start, tree.children, is_wanted),
    )


def _prune(start: Member, steps: tuple[Step, ...], is_wanted: Wanted) -> tuple[Step, ...]:
    """Drop outputs and fills that are not wanted, and the steps that then lead nowhere."""
    kept = []
    for step in steps:
        outputs = tuple(output for output in step.outputs if is_wanted(start, output))
        fills = tuple(fill for fill in step.fills if is_wanted(start, fill))
        children = _prune(start, step.children, is_wanted)
        if outputs or fills or children:
            kept.append(replace(step, outputs=outputs, fills=fills, children=children))
    return tuple(kept)
