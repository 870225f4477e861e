"""Ways through a plan that several readers of it share, and in which order the trees of a batch are traversed.

A tuple of this batch finds an intermediate result of this batch if all its parts rank lower (`Plan.rank`), so the trees
that make such results come before: a tree comes one phase after the last tree of lower rank that fills a store it
probes. Without intermediate stores there is one phase.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from plait.plan.columns import TAU
from plait.plan.conditions import Conditions, conditions, renamed
from plait.plan.model import Fill, Intermediate, Member, Output, Place, Plan, Probed, ProbeTree, Step, Store
from plait.query.predicates import mapped


def members(plan: Plan) -> Iterator[Member]:
    """Yield every member, once per place where it stands."""
    for tree in plan.trees:
        yield tree.start
        for step in tree.steps():
            yield from step.members
    for store in plan.stores:
        if store.intermediate is not None:
            yield from store.intermediate.parts


def probes(plan: Plan) -> Iterator[tuple[tuple[Member, ...], Step]]:
    """Yield (members by position, step that probes next) for every step."""
    for tree in plan.trees:
        for path, step in tree.walk():
            yield path_members(tree.start, path), step


def path_members(start: Member, steps: tuple[Step, ...]) -> tuple[Member, ...]:
    """Return the relations a path has joined, by position."""
    return (start, *(member for step in steps for member in step.members))


def kept_stores(plan: Plan) -> frozenset[str]:
    """Return the ids of the stores whose tuples somebody may ask for: those that are probed, those that keep all, and
    those of which it is not certain yet which tuples have no partner.

    What an intermediate store is made of is kept too: a later plan may want it without the intermediate store. So is
    one that comes: the plan after this one asks for it.
    """
    asked = {step.member.store for tree in plan.trees for step in tree.steps()} | set(plan.coming)
    for store in plan.stores:
        if store.intermediate is not None:
            asked.update(part.store for part in store.intermediate.parts)
    return frozenset(store.id for store in plan.stores if store.id in asked or store.keeps_all or store.waits)


def endings(plan: Plan) -> Iterator[tuple[Member, tuple[Step, ...], Output]]:
    """Yield (starting member, steps, output) for every probe order of every query."""
    for tree in plan.trees:
        yield from ((tree.start, (), output) for output in tree.outputs)
        for path, step in tree.walk():
            yield from ((tree.start, (*path, step), output) for output in step.outputs)


def fillings(plan: Plan) -> Iterator[tuple[Member, tuple[Step, ...], Fill]]:
    """Yield (starting member, steps, fill) for every probe order of every intermediate store."""
    for tree in plan.trees:
        for path, step in tree.walk():
            yield from ((tree.start, (*path, step), fill) for fill in step.fills)


def intermediates(plan: Plan) -> tuple[tuple[Store, Intermediate], ...]:
    """Return the intermediate stores with what they keep, those of fewer parts first: larger ones may be filled from
    them.
    """
    stores = [(store, store.intermediate) for store in plan.stores if store.intermediate is not None]
    return tuple(sorted(stores, key=lambda each: (len(each[1].parts), each[0].id)))


def units_of(steps: tuple[Step, ...], aliases: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the aliases of a path, by position, as the starting relation and what each step adds."""
    units: list[tuple[str, ...]] = [aliases[:1]]
    taken = 1
    for step in steps:
        units.append(aliases[taken : taken + len(step.members)])
        taken += len(step.members)
    return tuple(units)


def conditions_on(plan: Plan, steps: tuple[Step, ...]) -> Conditions:
    """Return all that holds of what a path has joined, by position, inside intermediate stores included."""
    required: Conditions = frozenset()
    position = 1
    for step in steps:
        store = plan.store(step.member.store)
        required |= conditions_of_step(store, step, position)
        if store.intermediate is not None:
            required |= renamed(conditions(store.intermediate.predicates), position.__add__)
        position += len(step.members)
    return required


def conditions_of_step(store: Store, step: Step, position: int) -> Conditions:
    """Return what a step into `store` requires, by position; what it finds begins at `position`."""

    def placed(place: Probed) -> Place[int]:
        if place.at is not None:
            return Place(place.at, place.name)
        part, own = split_part(store, place.name)
        return Place(position + part, own)

    return conditions(mapped(predicate, placed) for predicate in step.predicates)


KeptOfStores: TypeAlias = dict[str, tuple[frozenset[str], ...]]
"""What stores supply of each of their parts, by id: worked out once for all paths of a plan, of which hundreds read the
same store with hundreds of selections.
"""


def columns_kept(
    plan: Plan, start: Member, steps: tuple[Step, ...], known: KeptOfStores | None = None
) -> tuple[frozenset[str], ...]:
    """Return the columns and keys that the stores along a path supply, by position, as the relations' own stores name
    them. `known`: what stores of this plan supply.
    """
    stores = {} if known is None else known
    for name in (start.store, *(step.member.store for step in steps)):
        if name not in stores:
            stores[name] = _supplied(plan.store(name))
    return (*stores[start.store], *(kept for step in steps for kept in stores[step.member.store]))


def _supplied(store: Store) -> tuple[frozenset[str], ...]:
    """Return what a store supplies of each of its parts, as their own stores name it."""
    if store.intermediate is None:
        return (frozenset(_carried(store)),)
    kept: list[set[str]] = [set() for _ in store.intermediate.parts]
    for name in _carried(store):
        part, own = split_part(store, name)
        kept[part].add(own)
    return tuple(map(frozenset, kept))


def _carried(store: Store) -> tuple[str, ...]:
    carried = (*store.columns, *(key.name for key in store.keys), *(value.name for value in store.values))
    if store.intermediate is not None:
        return carried
    told = (selection.column for selection in store.selections)
    return (*carried, *told) if store.is_table else (*carried, *told, TAU)


def value_names(store: Store) -> tuple[str, ...]:
    """Return the columns of computed values that buckets of a store carry: behind hashes, for residual predicates."""
    behind = (key.value_name for key in store.keys if key.value_name is not None)
    return tuple(dict.fromkeys((*behind, *(value.name for value in store.values))))


def carried_columns(store: Store) -> tuple[str, ...]:
    """Return the columns, keys and values that the buckets of a store carry."""
    return (*store.columns, *(key.name for key in store.keys), *value_names(store))


def split_part(store: Store, name: str) -> tuple[int, str]:
    """Return the part that a column of this store belongs to, and its name in the part's own store."""
    if store.intermediate is None:
        return 0, name
    part, own = name.split(":", 1)
    return int(part), own


def probe_tuples_estimate(plan: Plan) -> float | None:
    """Return the estimated probe tuples of the whole plan; None if any step's is unknown."""
    estimates = [step.estimate.probe_tuples for _, step in probes(plan)]
    known = [estimate for estimate in estimates if estimate is not None]
    return sum(known) if len(known) == len(estimates) else None


def phases(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the trees, phase by phase."""
    fillers: dict[str, set[int]] = defaultdict(set)
    numbers = {tree.start: number for number, tree in enumerate(plan.trees)}
    for start, _, fill in fillings(plan):
        fillers[fill.store].add(numbers[start])
    phase_of: dict[int, int] = {}
    # A tree waits for trees of lower rank only, so in the order of ranks every tree finds what it waits for.
    for number in sorted(range(len(plan.trees)), key=lambda number: plan.rank(plan.trees[number].start)):
        tree = plan.trees[number]
        waits = (filler for store in _probed(tree) for filler in fillers[store])
        phase_of[number] = max((phase_of[other] + 1 for other in waits if _ranks_lower(plan, other, number)), default=0)
    count = max(phase_of.values(), default=-1) + 1
    return tuple(tuple(number for number in sorted(phase_of) if phase_of[number] == phase) for phase in range(count))


def _probed(tree: ProbeTree) -> set[str]:
    return {step.member.store for _, step in tree.walk() if step.parts}


def _ranks_lower(plan: Plan, one: int, other: int) -> bool:
    return plan.rank(plan.trees[one].start) < plan.rank(plan.trees[other].start)
