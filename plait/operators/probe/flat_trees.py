"""The probe trees of a plan as numbers, level by level, so that the steps of a level can be taken side by side.

A level holds the steps that are so many from the start, of all trees. A step is there if it looks up by the int64 of a
single key, and its step before is there: what needs more than that (bands, residual predicates, values behind hashes,
several keys), or is counted instead of made, is *left* to be taken by itself. Columns and indexes have numbers, which
stay the same from batch to batch; where they lie in memory is another matter (`plait.operators.probe.pools`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int64s
from plait.kernels.many_probes import NONE
from plait.operators.column_names import TAU, UNTIL
from plait.plan.model import Member, Plan, ProbeTree, Selection, Step, part_column
from plait.query.predicates import by_kind

Named: TypeAlias = tuple[str, str]
"""A store and a column of it."""

Chosen: TypeAlias = tuple[str, Selection]
"""A store and a selection of its rows."""

EARLIER: Final = 1
"""Which rows are found, as bits: those of earlier batches, and, from the next bit on, those of this batch that arrivals
of the first part have made, of the second part, and so on; of a stream there is one part.
"""


class Place(NamedTuple):
    """Where a member of a path lies: in which unit, that is the start or what a step has added, in which store, and as
    which of how many parts; no parts: the store is the member's own.
    """

    unit: int
    store: str
    part: int | None = None
    parts: int = 0

    def column(self, name: str) -> Named:
        """Return the column of the store that has a column of the member."""
        return self.store, part_column(self.part, name)


class FlatStep(NamedTuple):
    """A step of a tree. `before`: its place among those of the tree that the level before has; `path`: what it has
    joined then; `reads`: in which unit and column its key lies, one for each equality.
    """

    step: Step
    before: int
    path: tuple[Place, ...]
    reads: tuple[tuple[int, Named], ...]
    looked_up: Named
    selection: Chosen
    window_us: int
    is_timed: bool
    until: Named | None
    finds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatTree:
    """A tree by levels. `left`: by level and place there the steps that are taken by themselves; level 0 is the start.
    `stores`: all that the levels read.
    """

    tree: ProbeTree
    levels: tuple[tuple[FlatStep, ...], ...]
    left: Mapping[tuple[int, int], tuple[Step, ...]]
    stores: frozenset[str]

    @classmethod
    def of(cls, tree: ProbeTree, plan: Plan) -> FlatTree:
        """Flatten a tree."""
        start = Place(0, tree.start.store)
        level: list[tuple[tuple[Place, ...], tuple[Step, ...]]] = [((start,), tree.children)]
        levels: list[tuple[FlatStep, ...]] = []
        left: dict[tuple[int, int], tuple[Step, ...]] = {}
        while level:
            flat: list[FlatStep] = []
            for before, (path, children) in enumerate(level):
                made = [(child, _flat_step(child, before, path, tree, plan)) for child in children]
                flat += (each for _, each in made if each is not None)
                others = tuple(child for child, each in made if each is None)
                if others:
                    left[len(levels), before] = others
            level = [(each.path, each.step.children) for each in flat]
            if flat:
                levels.append(tuple(flat))
        read = {each.looked_up[0] for steps in levels for each in steps}
        return cls(tree=tree, levels=tuple(levels), left=left, stores=frozenset((tree.start.store, *read)))

    def left_lookups(self) -> Counter[str]:
        """Return how often the steps that are left look into each store, with all that follows them."""
        lookups = Counter[str]()
        waiting = [step for steps in self.left.values() for step in steps]
        while waiting:
            step = waiting.pop()
            lookups[step.member.store] += 1
            waiting += step.children
        return lookups


def _added(step: Step, unit: int) -> tuple[Place, ...]:
    """Return the places of what a step adds to a path."""
    store, parts = step.member.store, len(step.parts)
    return tuple(Place(unit, store, part, parts) for part in range(parts)) or (Place(unit, store),)


def _flat_step(step: Step, before: int, path: tuple[Place, ...], tree: ProbeTree, plan: Plan) -> FlatStep | None:
    """Return a step as it is taken beside others; None if it is taken by itself."""
    kinds, store = by_kind(step.predicates), plan.store(step.member.store)
    keys = {each.right.name for each in kinds.equalities}
    if len(keys) != 1 or kinds.bands or kinds.residuals or step.is_counted:
        return None
    (key,) = keys
    if store.key(key).value_name is not None:
        return None
    lower = (plan.rank(member) < plan.rank(tree.start) for member in step.members)
    read = ((path[each.left.at or 0], each.left.name) for each in kinds.equalities)
    window_us = step.member.window_us
    return FlatStep(
        step=step,
        before=before,
        path=(*path, *_added(step, path[-1].unit + 1)),
        reads=tuple((place.unit, place.column(name)) for place, name in read),
        looked_up=(store.id, key),
        selection=(store.id, step.member.selection),
        window_us=NONE if window_us is None else window_us,
        is_timed=not store.is_table,
        until=(store.id, UNTIL) if step.parts else None,
        finds=EARLIER | sum(is_lower << 1 + part for part, is_lower in enumerate(lower)),
    )


class Numbers:
    """The numbers of what is read, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.columns: dict[Named, int] = {}
        self.indexes: dict[Named, int] = {}
        self.chosen: dict[Chosen, int] = {}
        self.stores: dict[str, int] = {}

    def column(self, named: Named | None) -> int:
        """Return the number of a column."""
        return NONE if named is None else self.columns.setdefault(named, len(self.columns))

    def index(self, named: Named) -> int:
        """Return the number of the index by one key."""
        return self.indexes.setdefault(named, len(self.indexes))

    def selection(self, chosen: Chosen) -> int:
        """Return the number of a selection."""
        return self.chosen.setdefault(chosen, len(self.chosen))

    def store(self, name: str) -> int:
        """Return the number of a store."""
        return self.stores.setdefault(name, len(self.stores))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Steps of all trees side by side, one column each. `tree`: the number of each one's tree; `before`: its place in
    the level before, of level 1 the number of the tree. `ends`: whether anything is to be done with what it finds
    beside going on with the next level. `reads`: (unit, column) of all equalities; those of a step are from `equal` up
    to where those of the next begin.
    """

    steps: tuple[FlatStep, ...]
    tree: Int64s
    before: Int64s
    index: Int64s
    selection: Int64s
    store: Int64s
    window: Int64s
    timed: Int64s
    until: Int64s
    finds: Int64s
    reads: Int64s
    equal: Int64s
    ends: NDArray[np.bool_]
    left: Mapping[int, tuple[Step, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """What trees start with, by number of the tree. `store`, `selection`, `tau`: their numbers."""

    members: tuple[Member, ...]
    store: Int64s
    selection: Int64s
    tau: Int64s
    window: Int64s
    left: Mapping[int, tuple[Step, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatTrees:
    """All trees of a plan."""

    trees: tuple[FlatTree, ...]
    starts: Starts
    levels: tuple[Level, ...]
    numbers: Numbers


@dataclass(slots=True)
class Flattening:
    """Flattens the trees of one plan after the other, of which most are the same."""

    _plan: Plan | None = None
    _flat: FlatTrees | None = None
    _known: dict[int, FlatTree] = field(default_factory=dict)

    def of(self, plan: Plan) -> FlatTrees:
        """Return the trees of a plan, by level."""
        if self._flat is None or plan is not self._plan:
            known = self._known if self._plan is not None and self._plan.ranks == plan.ranks else {}
            trees = tuple(known.get(id(tree)) or FlatTree.of(tree, plan) for tree in plan.trees)
            # Each is held by what is known of it, so no other tree can have its address.
            self._known = {id(each.tree): each for each in trees}
            self._plan, self._flat = plan, _side_by_side(trees)
        return self._flat


def _side_by_side(trees: tuple[FlatTree, ...]) -> FlatTrees:
    numbers = Numbers()
    levels: list[Level] = []
    first = list(range(len(trees)))
    while any(len(tree.levels) > len(levels) for tree in trees):
        level, first = _level(trees, len(levels), first, numbers)
        levels.append(level)
    return FlatTrees(trees=trees, starts=_starts(trees, numbers), levels=tuple(levels), numbers=numbers)


def _starts(trees: tuple[FlatTree, ...], numbers: Numbers) -> Starts:
    members = tuple(each.tree.start for each in trees)
    windows = (member.window_us for member in members)
    return Starts(
        members=members,
        store=numbers_of(numbers.store(member.store) for member in members),
        selection=numbers_of(numbers.selection((member.store, member.selection)) for member in members),
        tau=numbers_of(numbers.column((member.store, TAU)) for member in members),
        window=numbers_of(NONE if window is None else window for window in windows),
        left={number: tree.left[0, 0] for number, tree in enumerate(trees) if (0, 0) in tree.left},
    )


def _level(trees: tuple[FlatTree, ...], depth: int, first: list[int], numbers: Numbers) -> tuple[Level, list[int]]:
    """Return the steps of all trees that are `depth` + 1 from the start, and where those of each tree begin; `first`:
    where those before them begin.
    """
    begins: list[int] = []
    steps: list[FlatStep] = []
    owners: list[int] = []
    before: list[int] = []
    left: dict[int, tuple[Step, ...]] = {}
    for number, tree in enumerate(trees):
        begins.append(len(steps))
        mine = tree.levels[depth] if depth < len(tree.levels) else ()
        for place, each in enumerate(mine):
            before.append(first[number] + each.before)
            others = tree.left.get((depth + 1, place))
            if others is not None:
                left[len(steps)] = others
            steps.append(each)
            owners.append(number)
    reads = [(unit, numbers.column(named)) for each in steps for unit, named in each.reads]
    level = Level(
        steps=tuple(steps),
        tree=numbers_of(owners),
        before=numbers_of(before),
        index=numbers_of(numbers.index(each.looked_up) for each in steps),
        selection=numbers_of(numbers.selection(each.selection) for each in steps),
        store=numbers_of(numbers.store(each.looked_up[0]) for each in steps),
        window=numbers_of(each.window_us for each in steps),
        timed=numbers_of(each.is_timed for each in steps),
        until=numbers_of(numbers.column(each.until) for each in steps),
        finds=numbers_of(each.finds for each in steps),
        reads=np.array(reads, np.int64).T.copy(),
        equal=np.cumsum([0, *(len(each.reads) for each in steps)], dtype=np.int64),
        ends=np.array([bool(each.step.outputs or each.step.fills) for each in steps], np.bool_),
        left=left,
    )
    level.ends[list(left)] = True
    return level, begins


def numbers_of(values: Iterable[int]) -> Int64s:
    """Return numbers as kernels read them."""
    return np.fromiter(values, np.int64)


__all__ = ["EARLIER", "FlatStep", "FlatTree", "FlatTrees", "Flattening", "Level", "Place", "Starts", "numbers_of"]
