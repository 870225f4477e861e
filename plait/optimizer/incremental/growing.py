"""A plan to which one query after the other is added: what is there is looked up, and nothing else is touched.

To go through the whole plan with every query that comes would make hundreds of them cost the square of that. So it is
gone through once for all that come together, and is a plan again when all of them are there.

What was there stays as it is wherever nothing is brought: stores keep their partitioning and their first index, since
that is how rows lie in them, and edges their names, since by these they are measured.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from plait.optimizer.assemble.estimates import with_estimates
from plait.optimizer.assemble.flows import flows
from plait.optimizer.assemble.orders_of_plan import Filling, fills_by_store, store_name_of
from plait.optimizer.assemble.probe_trees import Arrow, Path, arrow_order, path_digest, path_name
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.model import (
    Fill,
    KeyColumn,
    Member,
    Output,
    Plan,
    ProbeTree,
    Requirement,
    Selection,
    Step,
    Store,
    ValueColumn,
)
from plait.plan.relations import widest_window

_Named = TypeVar("_Named", KeyColumn, ValueColumn)
"""What a store keeps by name."""

_Taken: TypeAlias = tuple[str, int, Selection]
"""Of which store, and of which occurrence of it in a query, a selection is taken."""

_SHORTEST_DIGEST = 4


class Growing:
    """A plan while queries are added. `stores` by id, `trees` by start, `intermediates`: the ids of the stores that are
    no source's.
    """

    def __init__(self, plan: Plan) -> None:
        self._begun = plan
        self.store_name = store_name_of(plan)
        self.stores = {store.id: store for store in plan.stores}
        self.trees = {tree.start: tree for tree in plan.trees}
        self.intermediates = {store.id for store in plan.stores if store.intermediate is not None}
        self._queries = set(plan.queries)
        self._names = EdgeNames(step.edge for tree in plan.trees for step in tree.steps())
        self._starts: dict[_Taken, list[Member]] = {}
        self._fills: Mapping[str, list[Filling]] | None = None
        for start in self.trees:
            self._note(start)

    @property
    def plan(self) -> Plan:
        """The plan for all queries that are there by now."""
        return replace(
            self._begun,
            queries=tuple(sorted(self._queries)),
            stores=tuple(self.stores[name] for name in sorted(self.stores)),
            trees=tuple(sorted(self.trees.values(), key=lambda tree: tree.start.order)),
        )

    def starts_like(self, member: Member) -> Iterator[Member]:
        """Yield the starts of trees, each at least once, that may take all that a member takes: what one of them takes
        is its selection, or anything.
        """
        for selection in {member.selection, Selection()}:
            yield from self._starts.get((member.store, member.ordinal, selection), ())

    def fills(self) -> Mapping[str, list[Filling]]:
        """Return the ways by which intermediate stores are filled."""
        if self._fills is None:
            self._fills = fills_by_store(self.plan) if self.intermediates else {}
        return self._fills

    def add(self, added: Plan, cardinality: Cardinality) -> None:
        """Do what the plan of other queries does too: what both do is done once. Steps that are new get estimates."""
        placed = tuple(_placed(store, self.stores.get(store.id)) for store in added.stores)
        brought = with_estimates(added.trees, placed, flows(added.trees, placed, cardinality))
        for store in added.stores:
            self._add_store(store)
        for tree in brought:
            known = self.trees.get(tree.start)
            if known is None:
                known = ProbeTree(start=tree.start)
                self._note(tree.start)
            self.trees[tree.start] = ProbeTree(
                start=known.start,
                outputs=_outputs(known.outputs, tree.outputs),
                children=_children(known.children, tree.children, (Arrow(member=tree.start),), self._names),
            )
        self._queries.update(added.queries)

    def _add_store(self, store: Store) -> None:
        known = self.stores.get(store.id)
        if known is None and store.intermediate is not None:
            self.intermediates.add(store.id)
            self._fills = None
        self.stores[store.id] = store if known is None else _united_store(known, store)

    def _note(self, start: Member) -> None:
        for selection in {start.selection, *start.selection.any_of}:
            self._starts.setdefault((start.store, start.ordinal, selection), []).append(start)


class EdgeNames:
    """The names of edges that are taken. A new edge has the name of its stores, as in a plan from scratch, and a digest
    of its content where that is taken; those that are there keep theirs.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken, self._told_apart = set[str](), set[str]()
        for edge in taken:
            self._take(edge)

    def new(self, path: Path) -> str:
        """Return a name for the last step of a path."""
        name = plain = path_name(path)
        if plain in self._taken or plain in self._told_apart:
            digest = path_digest(path)
            lengths = range(_SHORTEST_DIGEST, len(digest) + 1)
            names = (f"{plain}~{digest[:length]}" for length in lengths)
            name = next(each for each in names if each not in self._taken)
        self._take(name)
        return name

    def _take(self, edge: str) -> None:
        """Note a name; and what it may tell its path apart from, which is all before a digest."""
        self._taken.add(edge)
        place = edge.find("~")
        while place >= 0:
            self._told_apart.add(edge[:place])
            place = edge.find("~", place + 1)


def _placed(store: Store, known: Store | None) -> Store:
    """Return a store in as many partitions, and placed there, as one that is there already."""
    if known is None:
        return store
    partition_by = known.partition_by if known.indexes else store.partition_by
    return replace(store, partition_by=partition_by, parallelism=known.parallelism)


def _united_store(store: Store, added: Store) -> Store:
    """Return the store with what both keep; the very same one if that is nothing more."""
    indexes = tuple(index for index in added.indexes if index not in store.indexes)
    wider: dict[str, Any] = {
        "columns": tuple(sorted({*store.columns, *added.columns})),
        "keys": _by_name(store.keys, added.keys),
        "requirements": _with_needs(store.requirements, added.requirements),
        "indexes": store.indexes + indexes,
        "partition_by": store.partition_by if store.indexes else added.partition_by,
        "window_us": None if store.is_table else widest_window((store.window_us, added.window_us)),
        "values": _by_name(store.values, added.values),
        "waits": store.waits or added.waits,
    }
    changed = {name: value for name, value in wider.items() if value != getattr(store, name)}
    return replace(store, **changed) if changed else store


def _by_name(known: tuple[_Named, ...], added: tuple[_Named, ...]) -> tuple[_Named, ...]:
    named: dict[str, _Named] = {each.name: each for each in known}
    named.update((each.name, each) for each in added)
    return tuple(named[name] for name in sorted(named))


def _with_needs(needs: tuple[Requirement, ...], added: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """Return the requirements of both, in order, each once."""
    found = list(needs)
    for need in added:
        place = bisect_left(found, _need_order(need), key=_need_order)
        if place == len(found) or found[place] != need:
            found.insert(place, need)
    return tuple(found) if len(found) > len(needs) else needs


def _need_order(need: Requirement) -> tuple[str, tuple[str, ...]]:
    return need.selection.sql, need.keys


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


__all__ = ["EdgeNames", "Growing"]
