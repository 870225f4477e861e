"""From the plan in force to one for other queries: take out what goes, add what comes, verify what has changed.

Where several queries share a step that is wide enough for all of them, and one of them goes, the others take part in
that: without it the step may be narrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from plait.optimizer.assemble.covering import widest_selection
from plait.optimizer.assemble.estimates import with_stored
from plait.optimizer.assemble.orders_of_plan import Ending, as_member, joined_queries, store_name_of
from plait.optimizer.assemble.source_stores import keeps_all, source_store
from plait.optimizer.incremental.dropping import Leaving, without
from plait.optimizer.incremental.extending import Given, extension
from plait.optimizer.incremental.former import Former, QueryChange
from plait.optimizer.incremental.growing import Growing
from plait.optimizer.options import PlanOptions
from plait.plan.model import Member, Plan, Selection
from plait.plan.relations import selection_of, widest_window, window_of
from plait.plan.traversals import endings, path_members
from plait.plan.validate import validate_change
from plait.query.model import Query, Relation
from plait.stats.model import Statistics


def can_go_on(former: Former, change: QueryChange, queries: tuple[Query, ...], options: PlanOptions) -> bool:
    """Tell whether a plan for these queries can be made from the former one: it is by the same strategy, ranks the
    streams alike, and not too much has changed.
    """
    ranked = tuple(stream for stream in options.ranks if stream in former.plan.ranks)
    return (
        former.plan.strategy == options.strategy
        and former.plan.ranks == ranked
        and not former.is_outdated_by(change, len(queries))
        and len(change.dropped) < len(former.queries)
    )


def replan(
    former: Former, change: QueryChange, queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions
) -> Plan:
    """Return the plan for these queries, in which all that the change does not touch is as it was."""
    given = Given(statistics=statistics, options=_with_partitions_of(former.plan, options))
    plan = former.plan if former.plan.ranks == options.ranks else replace(former.plan, ranks=options.ranks)
    staying = tuple(query for query in former.queries if query.name not in change.dropped)
    narrowed = _narrowed(plan, staying, change.dropped) if change.dropped else ()
    again = frozenset(query.name for query in narrowed)
    plan = _without(plan, former, change.dropped | again, given)
    if change.added or narrowed:
        growing = Growing(plan)
        for query in change.added:
            growing.add(extension(growing, (query,), given), given.cardinality)
        if narrowed:
            by_name = {query.name: query for query in staying}
            own = tuple(by_name[query.name] for query in narrowed)
            growing.add(extension(growing, own, given, narrowed), given.cardinality)
        plan = growing.plan
    plan = _with_kept_streams(replace(plan, solution=None), given.options)
    plan = with_stored(plan, given.cardinality, former.plan)
    validate_change(former.plan, plan, queries, again | {query.name for query in change.added})
    return plan


def _with_kept_streams(plan: Plan, options: PlanOptions) -> Plan:
    """Return the plan with stores for streams that are stored whole, whoever reads them; without those that were there
    for nobody, where a query now has a store of the same stream for itself.
    """
    store_name = store_name_of(plan)
    whole = {store_name("", source.name): source for source in options.sources if keeps_all(source)}
    read = {store.source for store in plan.stores if store.id not in whole}
    kept = {store.id: store for store in plan.stores if store.id not in whole or store.source not in read}
    stores = kept | {
        name: source_store(name, source, [], options)
        for name, source in whole.items()
        if name not in kept and source.name not in read
    }
    if stores.keys() == {store.id for store in plan.stores}:
        return plan
    return replace(plan, stores=tuple(stores[name] for name in sorted(stores)))


def _without(plan: Plan, former: Former, names: frozenset[str], given: Given) -> Plan:
    if not names:
        return plan
    leaving = Leaving(
        gone=tuple(query for query in former.queries if query.name in names),
        staying=tuple(query for query in former.queries if query.name not in names),
    )
    return without(plan, leaving, given.options, given.cardinality)


def _with_partitions_of(plan: Plan, options: PlanOptions) -> PlanOptions:
    """Return the options with the numbers of partitions that stores of sources have."""
    counts = dict(options.parallelism_by_source)
    counts.update((store.source, store.parallelism) for store in plan.stores if store.source is not None)
    return replace(options, parallelism_by_source=tuple(sorted(counts.items())))


_Width: TypeAlias = tuple[str, Selection, int | None]
"""The store, selection and window of a member: all occurrences of a source in a query may have one."""


def _width(member: Member) -> _Width:
    return member.store, member.selection, member.window_us


def _narrowed(plan: Plan, staying: Sequence[Query], dropped: frozenset[str]) -> tuple[Query, ...]:
    """Return the queries, as they are to be joined, that share members with one that goes which are wider than they
    need them without that one.
    """
    if not any(output.residual_filters for tree in plan.trees for step in tree.steps() for output in step.outputs):
        return ()
    found = list(endings(plan))
    users = _users(found, dropped)
    by_name = {query.name: query for query in staying}
    by_width: dict[_Width, list[Relation]] = {}
    for (name, alias), width in users.items():
        by_width.setdefault(width, []).append(by_name[name].relation(alias))
    narrower = {width: _narrower(relations) for width, relations in by_width.items()}
    touched = {name for (name, _), width in users.items() if narrower[width] != width[1:]}
    concerned = tuple(query for query in staying if query.name in touched)
    ending = {output.query: (start, steps, output) for start, steps, output in found if output.query in touched}

    def narrowed(query: str, relation: Relation) -> Relation:
        width = users.get((query, relation.alias))
        if width is None:
            return relation
        selection, window_us = narrower[width]
        return as_member(relation, Member(store=width[0], ordinal=0, selection=selection, window_us=window_us))

    return tuple(
        replace(joined, relations=tuple(narrowed(joined.name, each) for each in joined.relations))
        for joined in joined_queries(plan, concerned, ending.values())
    )


def _users(found: Iterable[Ending], dropped: frozenset[str]) -> dict[tuple[str, str], _Width]:
    """Return the relations of queries that stay which share what is wide for some of them with one that goes."""
    gone, filtered = set[_Width](), set[_Width]()
    for start, steps, output in found:
        path = path_members(start, steps)
        if output.query in dropped:
            gone.update(map(_width, path))
        else:
            filtered.update(_width(path[each.position]) for each in output.residual_filters)
    shared, users = gone & filtered, dict[tuple[str, str], _Width]()
    for start, steps, output in found if shared else ():
        if output.query not in dropped:
            path = path_members(start, steps)
            for alias, position in output.positions:
                width = _width(path[position])
                if width in shared:
                    users[output.query, alias] = width
    return users


def _narrower(relations: Sequence[Relation]) -> tuple[Selection, int | None]:
    """Return what is just wide enough for these relations."""
    return widest_selection(map(selection_of, relations)), widest_window(map(window_of, relations))


__all__ = ["can_go_on", "replan"]
