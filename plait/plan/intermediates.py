"""Invariants of intermediate stores: each is exactly the join it stands for, and somebody probes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from plait.plan.conditions import conditions, renamed
from plait.plan.model import Member, Output, Plan, Step, Store, part_column
from plait.plan.traversals import columns_kept, conditions_on, fillings, path_members, probes


def stores_are_of_one_kind(plan: Plan) -> Iterator[str]:
    """Yield stores that are neither of a source nor of an intermediate result, or both."""
    for store in plan.stores:
        if (store.source is None) == (store.intermediate is None):
            yield f"store '{store.id}' is of source '{store.source}' and of {store.intermediate}; expected one of them"


def filled_once_from_each_part(plan: Plan) -> Iterator[str]:
    """Yield intermediate stores that a stream part's arrival does not fill, or fills twice."""
    starts = Counter((fill.store, fill.positions.index(0)) for _, _, fill in fillings(plan) if 0 in fill.positions)
    for store in _intermediates(plan):
        for part, member in enumerate(_parts(store)):
            wanted = 0 if plan.store(member.store).is_table else 1
            if starts[store.id, part] != wanted:
                yield (
                    f"store '{store.id}' is filled {starts[store.id, part]} times by arrivals of its part {part} "
                    f"('{member.store}'), expected {wanted}"
                )


def filled_with_what_it_stands_for(plan: Plan) -> Iterator[str]:
    """Yield paths that end in an intermediate store without being the join of its parts."""
    for start, steps, fill in fillings(plan):
        store, path = plan.store(fill.store), path_members(start, steps)
        if store.intermediate is None or sorted(fill.positions) != list(range(len(path))):
            yield f"edge '{steps[-1].edge}' fills '{store.id}' with positions {fill.positions} of {len(path)}"
            continue
        if tuple(path[position] for position in fill.positions) != store.intermediate.parts:
            yield f"edge '{steps[-1].edge}' fills '{store.id}' with other relations than its parts"
        part_at = {position: part for part, position in enumerate(fill.positions)}
        joined = renamed(conditions_on(plan, steps), part_at.__getitem__)
        if joined != conditions(store.intermediate.predicates):
            yield f"edge '{steps[-1].edge}' fills '{store.id}' with a join on other predicates"
        yield from _missing(plan, start, steps, store, fill.positions)


def _missing(
    plan: Plan, start: Member, steps: tuple[Step, ...], store: Store, positions: tuple[int, ...]
) -> Iterator[str]:
    kept = columns_kept(plan, start, steps)
    available = {part_column(part, name) for part, position in enumerate(positions) for name in kept[position]}
    needed = {*store.columns, *(key.name for key in store.keys), *(value.name for value in store.values)}
    missing = sorted(needed - available)
    if missing:
        yield f"edge '{steps[-1].edge}' fills '{store.id}' without {missing}"


def probed_as_what_it_is(plan: Plan) -> Iterator[str]:
    """Yield steps that take an intermediate store for something else, and intermediate stores that nobody probes."""
    probed = set()
    for _, step in probes(plan):
        store = plan.store(step.member.store)
        probed.add(store.id)
        if store.intermediate is None:
            if step.parts:
                yield f"edge '{step.edge}' takes store '{store.id}' for an intermediate result"
            continue
        kinds = [_without_ordinal(part) for part in step.parts]
        if kinds != [_without_ordinal(part) for part in store.intermediate.parts]:
            yield f"edge '{step.edge}' takes other relations from store '{store.id}' than it keeps"
        elif _order(step.parts) != _order(store.intermediate.parts):
            yield f"edge '{step.edge}' takes the parts of store '{store.id}' in another order of ordinals"
    for store in _intermediates(plan):
        if store.id not in probed and store.id not in plan.coming:
            yield f"intermediate store '{store.id}' is never probed"


def not_read_before_they_are_filled(plan: Plan) -> Iterator[str]:
    """Yield stores that come without being intermediate ones, and queries that read one that comes."""
    known = {store.id for store in _intermediates(plan)}
    if list(plan.coming) != sorted(known.intersection(plan.coming)):
        yield f"the stores {list(plan.coming)} come, expected intermediate ones, each once and in order"
    for tree in plan.trees:
        for path, step in tree.walk():
            for each in (*path, step) if step.outputs else ():
                if each.member.store in plan.coming:
                    yield f"edge '{step.edge}' answers {_named(step.outputs)} from '{each.member.store}', which comes"


def _named(outputs: tuple[Output, ...]) -> list[str]:
    return [output.query for output in outputs]


def _intermediates(plan: Plan) -> Iterator[Store]:
    return (store for store in plan.stores if store.intermediate is not None)


def _parts(store: Store) -> tuple[Member, ...]:
    return () if store.intermediate is None else store.intermediate.parts


def _without_ordinal(member: Member) -> tuple[object, ...]:
    return member.store, member.selection, member.window_us


def _order(parts: tuple[Member, ...]) -> list[int]:
    """Return the places of the parts ordered by (store, ordinal): ranks inside the store must not contradict it."""
    return sorted(range(len(parts)), key=lambda place: (parts[place].store, parts[place].ordinal))


INVARIANTS: dict[int, tuple[str, Callable[[Plan], Iterator[str]]]] = {
    17: ("a store is of one source or of one intermediate result", stores_are_of_one_kind),
    18: ("arrivals of each stream part fill an intermediate store once", filled_once_from_each_part),
    19: ("what fills an intermediate store is the join of its parts", filled_with_what_it_stands_for),
    20: ("intermediate stores are probed as what they are", probed_as_what_it_is),
    22: ("no query reads an intermediate store that comes", not_read_before_they_are_filled),
}
