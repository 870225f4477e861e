"""Which plan governs the batches of a run without Spark, as `plait.runtime.batches` and `plait.runtime.batch` have it:
a plan with intermediate stores that are not there yet is led to in stages, while batches take slices of what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from plait.adapt.planning import probing_only
from plait.operators.traversal.slicing import filled, there
from plait.plan.coming import Way
from plait.plan.model import Plan, Store
from plait.plan.traversals import intermediates
from plait.plan.validate import validate
from plait.query.model import Query
from plait.state.model import Manifest


@dataclass(slots=True)
class Slices:
    """Lets a batch take so many rows of what was stored before, `piece` at a time."""

    most: int
    piece: int = 2

    def rows(self) -> int:
        return min(self.most, self.piece)

    def took(self, rows: int, took_s: float) -> None:
        self.most -= rows

    def now(self) -> float:
        return 0.0


@dataclass(slots=True, kw_only=True)
class Governing:
    """The plan in force and where it leads. `fill_rows`: how many stored rows a batch takes; None: all at once, by the
    batch that the plan begins with. `stages`: how often a plan led to another.
    """

    plan: Plan
    queries: tuple[Query, ...]
    fill_rows: int | None = None
    way: Way | None = None
    complete: dict[str, Store] = field(default_factory=dict)
    is_caught_up: bool = False
    stages: int = 0
    switches: int = 0

    @property
    def heading(self) -> Plan:
        return self.plan if self.way is None else self.way.goal

    def lead_to(self, goal: Plan, manifest: Manifest, bare: Plan | None) -> None:
        """Change to a plan. `bare`: one without intermediate stores, needed where other stores have to be read."""
        base = self.plan if self.way is None else self.way.base
        if self.fill_rows is None:
            self._begin(Way(base=goal, goal=goal))
        elif _places(base) == _places(goal):
            self._begin(Way(base=base, goal=goal, filled=filled(goal, manifest.fillings)))
        else:
            self.start(goal, manifest, bare)

    def start(self, goal: Plan, manifest: Manifest, bare: Plan | None) -> None:
        """Begin with a plan as a start does, of which nothing is known but what the manifest says."""
        base = None if self.fill_rows is None or bare is None else probing_only(goal, bare)
        self.complete = {}
        come = there(goal, manifest.buckets, manifest.fillings)
        self._begin(Way(base=goal if base is None else base, goal=goal, filled=come))

    def go_on(self, manifest: Manifest) -> None:
        """Begin the next stage if what it waits for has come."""
        if self.way is not None:
            come = filled(self.way.goal, manifest.fillings)
            if come != self.way.filled:
                self.switches += 1
                self._begin(replace(self.way, filled=come))

    def done(self, dropped: frozenset[str]) -> None:
        """Note that a batch is committed, which gave up these stores."""
        stores = (store for store, _ in intermediates(self.plan))
        kept = {store.id: store for store in stores if store.id not in self.plan.coming}
        self.complete = {name: store for name, store in kept.items() if name not in dropped}
        self.is_caught_up = not dropped

    def _begin(self, way: Way) -> None:
        self.plan, self.way, self.is_caught_up = way.plan, way if way.lacking else None, False
        if self.way is not None:
            self.stages += 1
            validate(_with_probed_indexes(self.plan), self.queries)


def _places(plan: Plan) -> dict[str, Store]:
    """Return the stores that rows are put into, but for what may differ while Spark's query goes on."""
    return {store.id: replace(store, indexes=()) for store in plan.stores if store.intermediate is None}


def _with_probed_indexes(plan: Plan) -> Plan:
    """Return the plan without indexes of plans before and after it, which no step of its own looks up."""
    probed: dict[str, set[tuple[str, ...]]] = {}
    for tree in plan.trees:
        for _, step in tree.walk():
            probed.setdefault(step.member.store, set()).add(step.index)
    stores = []
    for store in plan.stores:
        indexes = tuple(index for index in store.indexes if index in probed.get(store.id, ()))
        is_known = any(set(store.partition_by) <= set(index) for index in indexes)
        stores.append(replace(store, indexes=indexes, partition_by=store.partition_by if is_known else ()))
    return replace(plan, stores=tuple(stores))


__all__ = ["Governing", "Slices"]
