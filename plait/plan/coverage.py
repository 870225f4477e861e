"""Invariants that tie a plan to its queries: every result is computed, once, and nothing else is.

Tempting and wrong: to ask only that a query ends somewhere. A result completed by the arrival of S is found by the tree
of S alone, so each stream relation must start exactly one path; and a path that forgot one equality finds too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, TypeAlias

from plait.plan.conditions import conditions_of, conditions_text, renamed
from plait.plan.model import Member, Output, Plan, ProbeTree, Requirement, ResidualFilter, Selection, Step, Store
from plait.plan.relations import (
    needs_of,
    one_per_query,
    one_per_source,
    projected_columns,
    requirement_of,
    selection_of,
    window_of,
)
from plait.plan.traversals import KeptOfStores, columns_kept, conditions_on, endings, path_members
from plait.query.model import Query, Relation

Queries: TypeAlias = tuple[Query, ...]


def each_start_once(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield (query, stream relation) pairs that start no path, or several."""
    found = (output for tree in plan.trees for outputs in _outputs(tree) for output in outputs)
    starts = Counter((output.query, _alias_at(output, 0)) for output in found)
    expected = {
        (query.name, relation.alias) for query in queries for relation in query.relations if not relation.is_table
    }
    wrong = {start for start, count in starts.items() if count > 1} | (expected ^ starts.keys())
    for query, alias in sorted(wrong):
        wanted = int((query, alias) in expected)
        yield f"query '{query}' has {starts[query, alias]} paths starting at '{alias}', expected {wanted}"
    names = sorted(query.name for query in queries)
    if names != list(plan.queries):
        yield f"the plan is for queries {list(plan.queries)}, expected {names}"


def _outputs(tree: ProbeTree) -> Iterator[tuple[Output, ...]]:
    yield tree.outputs
    yield from (step.outputs for step in tree.steps() if step.outputs)


def paths_cover_relations(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield outputs that miss a relation, or take another source, ordinal, selection or window for it."""
    by_name = {query.name: query for query in queries}
    for start, steps, output in endings(plan):
        query = by_name[output.query]
        aliases = sorted(relation.alias for relation in query.relations)
        if [alias for alias, _ in output.positions] != aliases:
            yield f"query '{query.name}' gets {output.positions}, expected relations {aliases}"
            continue
        path = path_members(start, steps)
        for alias, position in output.positions:
            residual = ResidualFilter(position=position)
            residual = next((each for each in output.residual_filters if each.position == position), residual)
            if not _stands_for(plan, path[position], residual, query.relation(alias), query.canonical(alias)):
                yield f"query '{query.name}' takes '{alias}' from {path[position]}"


def _stands_for(
    plan: Plan, member: Member, residual: ResidualFilter, relation: Relation, place: tuple[str, int]
) -> bool:
    """Tell whether a member is the relation, or a wider one that a residual filter makes it."""
    if (plan.store(member.store).source, member.ordinal) != place:
        return False
    own, window_us = selection_of(relation), window_of(relation)
    if member.selection != own and not (residual.selection == own and _includes(member.selection, own)):
        return False
    is_wider = window_us is not None and (member.window_us is None or member.window_us > window_us)
    return member.window_us == window_us or (is_wider and residual.window_us == window_us)


def takes_all_of(wide: Member, own: Member) -> bool:
    """Tell whether one member can stand for another: of the same relation, with a selection and a window that take in
    those of the other.
    """
    if (wide.store, wide.ordinal) != (own.store, own.ordinal):
        return False
    is_long = wide.window_us is None or (own.window_us is not None and wide.window_us >= own.window_us)
    return is_long and (wide.selection == own.selection or _includes(wide.selection, own.selection))


def _includes(wide: Selection, own: Selection) -> bool:
    """Tell whether `wide` holds wherever `own` does: it selects everything, or names `own` as an alternative."""
    return own in wide.any_of or wide == Selection()


def paths_match_predicates(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield outputs whose path does not require exactly what the query does."""
    expected = {query.name: conditions_of(query) for query in queries}
    for _, steps, output in endings(plan):
        required = renamed(conditions_on(plan, steps), {at: alias for alias, at in output.positions}.__getitem__)
        wanted = expected[output.query]
        if required != wanted:
            texts = f"{conditions_text(required)}, expected {conditions_text(wanted)}"
            yield f"query '{output.query}' via {_edge(steps)} requires {texts}"


def cross_steps_are_last(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield cross products that are avoidable: a relation connected to the path was left for later."""
    by_name = {query.name: query for query in queries}
    for start, steps, output in endings(plan):
        pairs = by_name[output.query].graph.pairs
        for number, step in enumerate(steps):
            if step.predicates:
                continue
            before, after = (len(path_members(start, steps[:reached])) for reached in (number, number + 1))
            joined = {_alias_at(output, position) for position in range(before)}
            if not any((left in joined) != (right in joined) for left, right in pairs):
                continue
            reached = frozenset(_alias_at(output, position) for position in range(after))
            if not _can_be_reached(reached, _alias_at(output, 0), pairs):
                yield f"edge '{step.edge}' is a cross product for query '{output.query}', but not the only choice"


def _can_be_reached(wanted: frozenset[str], start: str, pairs: Iterable[tuple[str, str]]) -> bool:
    """Tell whether these relations can be joined in some order without an avoidable cross product. A step that another
    query takes may lead to them in one that this query would not take by itself.
    """
    links = list(pairs)

    @cache
    def extended(joined: frozenset[str]) -> bool:
        if joined == wanted:
            return True
        near = {each for pair in links if len(joined.intersection(pair)) == 1 for each in pair} - joined
        return any(extended(joined | {each}) for each in sorted((near or wanted) & (wanted - joined)))

    return extended(frozenset((start,)))


def requirements_cover_relations(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield relations whose tuples or columns are not kept by the store they are taken from."""
    needs = {
        (query.name, relation.alias): (requirement_of(query, relation), projected_columns(query, relation.alias))
        for query in queries
        for relation in query.relations
    }
    known: KeptOfStores = {}
    met = {store.id: frozenset(store.requirements) for store in plan.stores}
    for start, steps, output in endings(plan):
        path, kept = path_members(start, steps), columns_kept(plan, start, steps, known)
        for alias, position in output.positions:
            store = plan.store(path[position].store)
            need, columns = needs[output.query, alias]
            if need not in met[store.id]:
                yield f"store '{store.id}' lacks requirement {need} of query '{output.query}'"
            told = {name for each in output.residual_filters if each.position == position for name in each.columns}
            missing = sorted((told | set(columns)) - kept[position])
            if missing:
                yield f"'{alias}' of query '{output.query}' lacks columns {missing} via {_edge(steps)}"


def stores_keep_no_more(plan: Plan, queries: Queries) -> Iterator[str]:
    """Yield relations whose tuples or columns a store of a source does not keep, and requirements that no query has:
    those of a query that is gone would be met for ever.
    """
    store_name = one_per_source if all(store.id == store.source for store in _of_sources(plan)) else one_per_query
    wanted: dict[str, set[Requirement]] = {store.id: set() for store in _of_sources(plan)}
    columns = {store.id: frozenset(store.columns) for store in _of_sources(plan)}
    for query in queries:
        for need in needs_of(query):
            name = store_name(query.name, need.source)
            if name not in wanted:
                yield f"query '{query.name}' has no store for '{need.alias}'"
                continue
            wanted[name].update(need.requirements)
            store, window_us = plan.store(name), need.kept_us
            missing = sorted(need.projected - columns[name])
            if missing:
                yield f"store '{name}' lacks columns {missing} of query '{query.name}'"
            is_short = store.window_us is not None and (window_us is None or window_us > store.window_us)
            if is_short and not store.is_table:
                yield f"store '{name}' keeps {store.window_us} us, query '{query.name}' needs {window_us} us"
    for store in _of_sources(plan):
        lacking, idle = wanted[store.id] - set(store.requirements), set(store.requirements) - wanted[store.id]
        yield from (f"store '{store.id}' lacks requirement {need}" for need in lacking)
        if not store.keeps_all:
            yield from (f"store '{store.id}' has requirement {need}, which is no query's" for need in idle)


def _of_sources(plan: Plan) -> Iterator[Store]:
    return (store for store in plan.stores if store.intermediate is None)


INVARIANTS: dict[int, tuple[str, Callable[[Plan, Queries], Iterator[str]]]] = {
    12: ("each stream relation of each query starts exactly one path", each_start_once),
    13: ("every path covers the query's relations exactly once", paths_cover_relations),
    14: ("every path requires exactly the query's join predicates", paths_match_predicates),
    15: ("no avoidable cross product", cross_steps_are_last),
    16: ("paths find what the queries require", requirements_cover_relations),
    21: ("stores keep what the queries require, and nothing for others", stores_keep_no_more),
}

OF_PATHS: Final = frozenset({13, 14, 15, 16})
"""The invariants that look at each path of a query by itself."""


def computes(plan: Plan, queries: Queries) -> bool:
    """Tell whether the plan is for exactly these queries."""
    if sorted(query.name for query in queries) != list(plan.queries):
        return False
    return not any(True for _, covers in INVARIANTS.values() for _ in covers(plan, queries))


def _alias_at(output: Output, position: int) -> str:
    return next(alias for alias, at in output.positions if at == position)


def _edge(steps: tuple[Step, ...]) -> str:
    return f"edge '{steps[-1].edge}'" if steps else "no edge"
