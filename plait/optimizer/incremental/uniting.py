"""Two plans as one: what both do is done once.

The plan that was there stays as it is wherever the added one brings nothing: its stores keep their partitioning and
their first index, since that is how rows lie in them, and its edges their names, since by these they are measured.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from plait.optimizer.assemble.estimates import with_estimates
from plait.optimizer.assemble.flows import flows
from plait.optimizer.assemble.probe_trees import Arrow, Path, arrow_order, path_digest, path_name
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.model import Fill, KeyColumn, Output, Plan, ProbeTree, Step, Store, ValueColumn
from plait.plan.relations import widest_window

_Named = TypeVar("_Named", KeyColumn, ValueColumn)
"""What a store keeps by name."""

_SHORTEST_DIGEST = 4


def united(plan: Plan, added: Plan, cardinality: Cardinality) -> Plan:
    """Return the plan that does what both do, with estimates for the steps that `added` brings."""
    stores = _united_stores(plan, added)
    brought = with_estimates(added.trees, stores, flows(added.trees, stores, cardinality))
    trees = {tree.start: tree for tree in plan.trees}
    names = EdgeNames(step.edge for tree in plan.trees for step in tree.steps())
    for tree in brought:
        known = trees.get(tree.start) or ProbeTree(start=tree.start)
        trees[tree.start] = ProbeTree(
            start=tree.start,
            outputs=_outputs(known.outputs, tree.outputs),
            children=_children(known.children, tree.children, (Arrow(member=tree.start),), names),
        )
    return replace(
        plan,
        queries=tuple(sorted({*plan.queries, *added.queries})),
        stores=stores,
        trees=tuple(sorted(trees.values(), key=lambda tree: tree.start.order)),
    )


class EdgeNames:
    """The names of edges that are taken. A new edge has the name of its stores, as in a plan from scratch, and a digest
    of its content where that is taken; those that are there keep theirs.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new(self, path: Path) -> str:
        """Return a name for the last step of a path."""
        name = plain = path_name(path)
        if plain in self._taken or any(edge.startswith(f"{plain}~") for edge in self._taken):
            digest = path_digest(path)
            lengths = range(_SHORTEST_DIGEST, len(digest) + 1)
            names = (f"{plain}~{digest[:length]}" for length in lengths)
            name = next(each for each in names if each not in self._taken)
        self._taken.add(name)
        return name


def _united_stores(plan: Plan, added: Plan) -> tuple[Store, ...]:
    stores = {store.id: store for store in plan.stores}
    for store in added.stores:
        known = stores.get(store.id)
        stores[store.id] = store if known is None else _united_store(known, store)
    return tuple(stores[name] for name in sorted(stores))


def _united_store(store: Store, added: Store) -> Store:
    """Return the store with what both keep; the very same one if that is nothing more."""
    indexes = tuple(index for index in added.indexes if index not in store.indexes)
    needs = list(store.requirements)
    for need in added.requirements:
        if need not in store.requirements:
            insort(needs, need, key=lambda need: (need.selection.sql, need.keys))
    wider = replace(
        store,
        columns=tuple(sorted({*store.columns, *added.columns})),
        keys=_by_name(store.keys, added.keys),
        requirements=tuple(needs),
        indexes=store.indexes + indexes,
        partition_by=store.partition_by if store.indexes else added.partition_by,
        window_us=None if store.is_table else widest_window((store.window_us, added.window_us)),
        values=_by_name(store.values, added.values),
        waits=store.waits or added.waits,
    )
    return store if wider == store else wider


def _by_name(known: tuple[_Named, ...], added: tuple[_Named, ...]) -> tuple[_Named, ...]:
    named: dict[str, _Named] = {each.name: each for each in known}
    named.update((each.name, each) for each in added)
    return tuple(named[name] for name in sorted(named))


def _children(steps: tuple[Step, ...], added: tuple[Step, ...], path: Path, names: EdgeNames) -> tuple[Step, ...]:
    """Return the steps that follow on a path in either plan, each once."""
    children = list(steps)
    for step in added:
        arrow = Arrow.of(step)
        here = (*path, arrow)
        place = next((place for place, known in enumerate(children) if arrow.is_of(known)), None)
        known = None if place is None else children[place]
        below = _children(() if known is None else known.children, step.children, here, names)
        if known is None:
            insort(children, replace(step, edge=names.new(here), children=below), key=_order)
        elif place is not None:
            children[place] = replace(
                known,
                outputs=_outputs(known.outputs, step.outputs),
                fills=_fills(known.fills, step.fills),
                children=below,
            )
    return tuple(children)


def _order(step: Step) -> tuple[object, ...]:
    return arrow_order(Arrow.of(step))


def _outputs(known: tuple[Output, ...], added: tuple[Output, ...]) -> tuple[Output, ...]:
    return tuple(sorted((*known, *added), key=lambda output: (output.query, output.positions))) if added else known


def _fills(known: tuple[Fill, ...], added: tuple[Fill, ...]) -> tuple[Fill, ...]:
    return tuple(sorted({*known, *added}, key=lambda fill: (fill.store, fill.positions))) if added else known


__all__ = ["EdgeNames", "united"]
