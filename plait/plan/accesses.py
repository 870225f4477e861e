"""By which keys the steps of a plan reach stores, and which of these need one table.

A step needs one of its equalities to know where to go, so of a composite key one part is enough: one that other steps
go by, if there is any. Where the rows of one stream begin with probing another, both by one equality, they meet in the
partition that both are sent to anyway: that takes one table for both (equation 3 of paper 001).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from plait.plan.key_groups import Access
from plait.plan.model import Member, Plan, Probed, Selection, Step, Store
from plait.query.predicates import Equality

MOST_ACCESSES = 38
"""So many of a store have a table; who goes by another key looks for rows at home. One number holds a partition and
a bit for each."""

_Side = tuple[str, str]


def accesses_of(plan: Plan, streams: Collection[str]) -> tuple[tuple[Access, ...], ...]:
    """Return how steps reach the stores of these streams, those together that need one table. Of a stream with several
    stores there is none: its rows are shuffled for one of them.
    """
    found = _Found()
    stores = {store.id: store for store in plan.stores if _can_be_reached(plan, store, streams)}
    steps = [
        (tree.start, path, step) for tree in plan.trees for path, step in tree.walk() if step.member.store in stores
    ]
    for one_key in (True, False):
        for start, path, step in steps:
            equalities = [each for each in by_name(step.equalities) if _is_told(stores[step.member.store], each)]
            if equalities and (len(equalities) == 1) == one_key:
                found.add(start, path, step, equalities, stores)
    return tuple(found.united())


def by_name(equalities: Iterable[Equality[Probed]]) -> list[Equality[Probed]]:
    """Return the equalities of a step in the order in which one is looked for that tells where to go."""
    return sorted(equalities, key=lambda each: (each.right.name, each.left.at or 0, each.left.name))


def texts_of(selection: Selection) -> tuple[str, ...]:
    """Return the selections one of which holds for the rows of a member."""
    return tuple(each.sql for each in selection.alternatives)


def _can_be_reached(plan: Plan, store: Store, streams: Collection[str]) -> bool:
    alike = sum(1 for each in plan.stores if each.source == store.source)
    return store.source in streams and not store.is_table and alike == 1


def _is_told(store: Store, equality: Equality[Probed]) -> bool:
    """Tell whether Spark knows the key as the number that tasks know it as: not if its order matters."""
    return not store.key(equality.right.name).by_size


@dataclass(slots=True)
class _Found:
    """The sides of tables found so far, with the selections of their rows, and which are in one table."""

    selections: dict[_Side, set[str]] = field(default_factory=dict)
    root: dict[_Side, _Side] = field(default_factory=dict)

    def add(
        self,
        start: Member,
        path: tuple[Step, ...],
        step: Step,
        equalities: list[Equality[Probed]],
        stores: dict[str, Store],
    ) -> None:
        """Let a step go by one of its equalities, one that is gone by already if there is any."""
        store = step.member.store
        known = [each for each in equalities if (store, each.right.name) in self.selections]
        chosen = (known or equalities)[0]
        side = self._side(store, chosen.right.name, step.member.selection)
        begins = not path and start.store in stores and _is_of(stores[start.store], chosen.left.name)
        if side is not None and begins:
            other = self._side(start.store, chosen.left.name, start.selection)
            if other is not None:
                self.root[self._find(side)] = self._find(other)

    def _side(self, store: str, key: str, selection: Selection) -> _Side | None:
        side = store, key
        if side not in self.selections and sum(1 for name, _ in self.selections if name == store) >= MOST_ACCESSES:
            return None
        self.selections.setdefault(side, set()).update(texts_of(selection))
        return side

    def _find(self, side: _Side) -> _Side:
        while self.root.setdefault(side, side) != side:
            side = self.root[side]
        return side

    def united(self) -> Iterator[tuple[Access, ...]]:
        """Yield the accesses of each table, in order of their names."""
        tables: dict[_Side, list[Access]] = {}
        for side in sorted(self.selections):
            store, key = side
            texts = tuple(sorted(self.selections[side]))
            tables.setdefault(self._find(side), []).append(Access(store=store, key=key, selections=texts))
        for together in tables.values():
            yield tuple(together)


def _is_of(store: Store, key: str) -> bool:
    return any(each.name == key and not each.by_size for each in store.keys)


__all__ = ["MOST_ACCESSES", "accesses_of", "by_name", "texts_of"]
