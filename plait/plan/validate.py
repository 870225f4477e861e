"""Invariants of a plan, checked before anybody runs it.

A plan that breaks one is a defect of Plait. The first ones look at the plan alone; those in `plait.plan.coverage` need
the queries too, because they say that the plan computes these queries and nothing is missing or double.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import assert_never

from plait.errors import InvalidPlanError
from plait.plan import coverage, intermediates
from plait.plan.model import Encoding, Member, Plan, Probed, Selection, Store
from plait.plan.pruning import only_queries
from plait.plan.traversals import endings, members, path_members, probes
from plait.query.model import Query
from plait.query.predicates import Band, Equality, Predicate, Residual, operands_of

Check: TypeAlias = Callable[[Plan], Iterator[str]]


def validate(plan: Plan, queries: Iterable[Query] | None = None) -> None:
    """Raise InvalidPlanError, naming the invariant, if the plan is broken; without queries check the plan by itself."""
    for number, (statement, check) in INVARIANTS.items():
        _raise_first(plan, number, statement, check(plan))
    if queries is None:
        return
    known = tuple(queries)
    for number, (statement, covers) in coverage.INVARIANTS.items():
        _raise_first(plan, number, statement, covers(plan, known))


def validate_change(before: Plan, plan: Plan, queries: Iterable[Query], touched: frozenset[str]) -> None:
    """Raise InvalidPlanError if a plan is broken that was made of one that is not. `touched`: the queries whose paths
    may be others. Trees that are the very same are looked at only for what the whole plan has to add up to: they find
    in their stores what they did, if these keep what all queries require. Of stores that are the very same nothing is
    looked at but their place among the others.
    """
    known = tuple(queries)
    same = frozenset(map(id, (*before.trees, *before.stores)))
    changed = replace(plan, trees=tuple(tree for tree in plan.trees if id(tree) not in same))
    laid_out = replace(changed, stores=tuple(store for store in plan.stores if id(store) not in same))
    concerned = only_queries(changed, touched)
    theirs = tuple(query for query in known if query.name in touched)
    has_stored = any(store.intermediate is not None for store in plan.stores)
    for number, (statement, check) in INVARIANTS.items():
        if number in _OF_THE_WHOLE:
            if has_stored or number not in intermediates.INVARIANTS:
                _raise_first(plan, number, statement, check(plan))
        elif number in _OF_STORES:
            _raise_first(plan, number, statement, check(laid_out))
        elif number == _INDEXED:
            _raise_first(plan, number, statement, probes_without_index(changed))
        else:
            _raise_first(plan, number, statement, check(changed))
    _raise_first(plan, 1, INVARIANTS[1][0], _not_ascending("stores", [store.id for store in plan.stores]))
    for number, (statement, covers) in coverage.INVARIANTS.items():
        is_of_paths = number in coverage.OF_PATHS
        _raise_first(plan, number, statement, covers(concerned, theirs) if is_of_paths else covers(plan, known))


_INDEXED = 7
_OF_THE_WHOLE = frozenset({2, 18, 20})
_OF_STORES = frozenset({1, 5})


def _raise_first(plan: Plan, number: int, statement: str, violations: Iterator[str]) -> None:
    for violation in violations:
        raise InvalidPlanError(
            f"plan of strategy '{plan.strategy}' breaks invariant {number} ({statement}): {violation}; "
            "this is a defect of Plait, please report it with the output of EXPLAIN",
            invariant=number,
            plan=plan,
        )


def stores_are_canonical(plan: Plan) -> Iterator[str]:
    """Yield stores that are repeated or out of order, and content of them that is."""
    yield from _not_ascending("stores", [store.id for store in plan.stores])
    for store in plan.stores:
        yield from _not_ascending(f"columns of store '{store.id}'", store.columns)
        yield from _not_ascending(f"keys of store '{store.id}'", [key.name for key in store.keys])
        yield from _not_ascending(f"values of store '{store.id}'", [value.name for value in store.values])
        needs = [(need.selection.sql, need.keys) for need in store.requirements]
        yield from _not_ascending(f"requirements of store '{store.id}'", needs)
        if store.parallelism < 1:
            yield f"store '{store.id}' has parallelism {store.parallelism}, expected at least 1"
        if store.is_table and store.window_us is not None:
            yield f"store '{store.id}' of a table has a window of {store.window_us} us, expected none"


def edges_are_unique(plan: Plan) -> Iterator[str]:
    """Yield edges that occur twice: rules and measurements are found by edge."""
    edges = [step.edge for tree in plan.trees for step in tree.steps()]
    if len(set(edges)) == len(edges):
        return
    for edge, count in sorted(Counter(edges).items()):
        if count > 1:
            yield f"edge '{edge}' occurs {count} times"


def members_have_stores(plan: Plan) -> Iterator[str]:
    """Yield members whose store does not exist, or drops tuples before their window has passed."""
    stores = {store.id: store for store in plan.stores}
    for member in members(plan):
        store = stores.get(member.store)
        if store is None:
            yield f"a member is in store '{member.store}', which does not exist; there are {sorted(stores)}"
        elif _reaches_further(member, store):
            yield f"store '{store.id}' keeps {store.window_us} us, a member needs {member.window_us} us"


def members_are_selected(plan: Plan) -> Iterator[str]:
    """Yield members whose selection has no bit in their store."""
    told: dict[str, frozenset[Selection]] = {}
    for member in members(plan):
        if member.store not in told:
            told[member.store] = frozenset(plan.store(member.store).selections)
        if not told[member.store].issuperset(member.selection.alternatives):
            yield f"store '{member.store}' does not tell which tuples satisfy {member.selection.sql}"


def stores_know_their_keys(plan: Plan) -> Iterator[str]:
    """Yield key names in indexes, partitioning or requirements that the store does not have."""
    for store in plan.stores:
        known = {key.name for key in store.keys}
        named = [("index", index) for index in store.indexes]
        named.append(("partitioning", store.partition_by))
        named += [("requirement", need.keys) for need in store.requirements]
        for what, names in named:
            for name in sorted(set(names) - known):
                yield f"{what} {names} of store '{store.id}' names key '{name}'; its keys are {sorted(known)}"
        for index in store.indexes:
            if not index or list(index) != sorted(set(index)) or store.indexes.count(index) > 1:
                yield f"index {index} of store '{store.id}' is empty, repeated or not in order"


def predicates_name_columns(plan: Plan) -> Iterator[str]:
    """Yield predicates that look at a later position, at a key that the probing or the probed store lacks, by an order
    it does not have, or at a column that is not there.
    """
    columns = {store.id: _Columns.of(store) for store in plan.stores}
    for path, step in probes(plan):
        if len(step.predicates) > 1 and len(set(step.predicates)) < len(step.predicates):
            yield f"edge '{step.edge}' repeats a predicate"
        for predicate in step.predicates:
            for place in operands_of(predicate):
                if place.at is not None and not 0 <= place.at < len(path):
                    yield f"edge '{step.edge}' looks at position {place.at} of a path of {len(path)}"
                else:
                    known = columns[step.member.store if place.at is None else path[place.at].store]
                    yield from (f"edge '{step.edge}' {what}" for what in _wrong_column(known, place.name, predicate))


@dataclass(frozen=True, slots=True)
class _Columns:
    """What predicates may name of a store: keys with what their int64 is, and what residual predicates read."""

    store: str
    encodings: Mapping[str, Encoding]
    values: frozenset[str]

    @classmethod
    def of(cls, store: Store) -> _Columns:
        values = frozenset((*store.columns, *(value.name for value in store.values)))
        return cls(store.id, {key.name: key.encoding for key in store.keys}, values)


def _wrong_column(known: _Columns, name: str, predicate: Predicate[Probed]) -> Iterator[str]:
    encodings = known.encodings
    match predicate:
        case Equality() | Band():
            if name not in encodings:
                yield f"compares key '{name}', which store '{known.store}' does not have"
            elif isinstance(predicate, Band) and encodings[name] != predicate.order:
                yield f"looks up key '{name}' by the order of {predicate.order}s, but it is a {encodings[name]}"
        case Residual():
            if name not in known.values:
                yield f"reads column '{name}', which store '{known.store}' does not have"
        case _:
            assert_never(predicate)


def probes_have_indexes(plan: Plan) -> Iterator[str]:
    """Yield steps without an index on exactly the keys they match, and indexes nobody probes."""
    yield from probes_without_index(plan)
    used: dict[str, set[tuple[str, ...]]] = {store.id: set() for store in plan.stores}
    for tree in plan.trees:
        for step in tree.steps():
            used[step.member.store].add(step.index)
    for store in plan.stores:
        for index in sorted(set(store.indexes) - used[store.id]):
            yield f"index {index} of store '{store.id}' is never probed"
        if store.indexes and not any(set(store.partition_by) <= set(index) for index in store.indexes):
            yield f"store '{store.id}' is partitioned by {store.partition_by}, which no probe knows"


def probes_without_index(plan: Plan) -> Iterator[str]:
    """Yield steps without an index on exactly the keys they match."""
    for tree in plan.trees:
        for step in tree.steps():
            if step.index and step.index not in plan.store(step.member.store).indexes:
                yield f"edge '{step.edge}' probes {step.index}, for which store '{step.member.store}' has no index"


def trees_start_at_streams(plan: Plan) -> Iterator[str]:
    """Yield trees that start at a table or at the same member as another, and streams without a rank."""
    for start, count in Counter(tree.start for tree in plan.trees).items():
        if count > 1:
            yield f"{count} trees start at the same member of store '{start.store}'"
    for tree in plan.trees:
        if plan.store(tree.start.store).is_table:
            yield f"a tree starts at table store '{tree.start.store}', but tables never arrive"
    for store in plan.stores:
        is_stream = not store.is_table and store.source is not None
        if is_stream and plan.ranks.count(store.source or "") != 1:
            yield f"stream '{store.source}' has {plan.ranks.count(store.source or '')} ranks, expected one"


def prefixes_are_merged(plan: Plan) -> Iterator[str]:
    """Yield equal steps side by side: they would do the same work twice."""
    for tree in plan.trees:
        for children in (tree.children, *(step.children for step in tree.steps())):
            if len(children) < 2:
                continue
            counts = Counter((child.member, child.predicates, child.parts) for child in children)
            for (member, *_), count in counts.items():
                if count > 1:
                    yield f"{count} equal steps into store '{member.store}' start at the same point"


def paths_end_in_outputs(plan: Plan) -> Iterator[str]:
    """Yield leaves that nobody receives anything from."""
    for tree in plan.trees:
        if not tree.children and not tree.outputs:
            yield f"the tree starting at store '{tree.start.store}' is empty"
        for _, step in tree.walk():
            if not step.children and not step.outputs and not step.fills:
                yield f"edge '{step.edge}' leads to no query and no store"


def outputs_cover_their_path(plan: Plan) -> Iterator[str]:
    """Yield outputs that do not name each position of their path exactly once."""
    for tree_start, steps, output in endings(plan):
        length = len(path_members(tree_start, steps))
        positions = sorted(position for _, position in output.positions)
        aliases = [alias for alias, _ in output.positions]
        if positions != list(range(length)) or aliases != sorted(set(aliases)):
            yield f"query '{output.query}' takes {output.positions} from a path of {length} relations"
        if output.query not in plan.queries:
            yield f"an output is for query '{output.query}', which is not in the plan"
    yield from _not_ascending("queries", plan.queries)


def counts_are_of_equal_keys(plan: Plan) -> Iterator[str]:
    """Yield outputs that count matches where these do not lie side by side, or take only part of them."""
    for tree in plan.trees:
        yield from (f"query '{output.query}' counts at the start" for output in tree.outputs if output.counts)
        for step in tree.steps():
            is_plain = step.equalities == step.predicates and step.equalities and not step.parts
            for output in step.outputs:
                if output.counts and (output.residual_filters or not is_plain):
                    yield f"query '{output.query}' counts what edge '{step.edge}' finds"


INVARIANTS: dict[int, tuple[str, Check]] = {
    1: ("stores and their content are unique and in order", stores_are_canonical),
    2: ("edges are unique", edges_are_unique),
    3: ("every member has a store that keeps its window", members_have_stores),
    4: ("every member's selection has a bit in its store", members_are_selected),
    5: ("keys named by a store exist in it", stores_know_their_keys),
    6: ("what a predicate reads exists in its stores", predicates_name_columns),
    7: ("each probe has its index and each index its probe", probes_have_indexes),
    8: ("trees start at ranked streams, one per member", trees_start_at_streams),
    9: ("equal prefixes are merged", prefixes_are_merged),
    10: ("every path ends in an output", paths_end_in_outputs),
    11: ("outputs name each position of their path once", outputs_cover_their_path),
    23: ("matches are counted where equal keys alone find them", counts_are_of_equal_keys),
    **intermediates.INVARIANTS,
}


def _reaches_further(member: Member, store: Store) -> bool:
    if store.is_table or store.window_us is None:
        return False
    return member.window_us is None or member.window_us > store.window_us


def _not_ascending(what: str, items: Iterable[object]) -> Iterator[str]:
    listed = list(items)
    if listed != sorted(set(listed)):  # type: ignore[type-var]
        yield f"{what} are {listed}, expected each once and in order"
