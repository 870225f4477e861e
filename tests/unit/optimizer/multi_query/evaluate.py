"""What probe orders cost, computed from the orders alone, and whether they do what they have to.

Steps are told apart by their whole path: starting member, units in order, and all equalities. That is how trees are
merged, so the cost is that of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes, arriving
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, may_follow
from plait.plan.conditions import between, key_pairs
from plait.plan.model import Member
from plait.plan.relations import selection_of, window_of
from plait.query.model import Query
from plait.stats.model import Statistics

Content = tuple[frozenset[Member], frozenset[object]]


def members(query: Query, within: Iterable[str]) -> dict[str, Member]:
    """Return some relations by content, by alias; ordinals count these relations only."""
    found: dict[str, Member] = {}
    for relation in query.relations:
        if relation.alias in set(within):
            found[relation.alias] = Member(
                store=relation.source,
                ordinal=sum(1 for other in found.values() if other.store == relation.source),
                selection=selection_of(relation),
                window_us=window_of(relation),
            )
    return found


def content(query: Query, aliases: Iterable[str], within: Iterable[str]) -> Content:
    """Return members and equalities of some relations; ordinals count the relations of `within` only."""
    known, chosen = members(query, within), sorted(set(aliases))
    equalities = frozenset(
        frozenset(((known[one], mine.name), (known[other], theirs.name)))
        for one in chosen
        for other in chosen
        if one < other
        for mine, theirs in key_pairs(between(query, one, other))
    )
    return frozenset(known[alias] for alias in chosen), equalities


def everything(query: Query) -> tuple[str, ...]:
    """Return all aliases."""
    return tuple(relation.alias for relation in query.relations)


def check(orders: tuple[ProbeOrder, ...], queries: tuple[Query, ...]) -> None:
    """Assert that the orders answer all queries and fill what they probe, each store once, without cross products."""
    by_name = {query.name: query for query in queries}
    used, filled = set(), {}
    for order in orders:
        query = by_name[order.query]
        assert len(order.units[0]) == 1
        assert order.units[0][0] in query.starts
        covered = [alias for unit in order.units for alias in unit]
        assert len(covered) == len(set(covered))
        for unit in order.units:
            assert list(unit) == [alias for alias in everything(query) if alias in unit]
        joined = list(order.units[0])
        for unit in order.units[1:]:
            possible = set(may_follow(query, joined))
            if len(unit) == 1:
                assert unit[0] in possible
            else:
                near = set(query.graph.neighbours_of(joined))
                assert near & set(unit)
                assert query.graph.is_connected(unit)
                assert set(unit) & set(query.starts)
                used.add(content(query, unit, unit))
            joined += unit
        if order.fills:
            assert set(covered) < set(everything(query))
            made = filled.setdefault(content(query, covered, covered), {"query": query.name, "starts": []})
            assert made["query"] == query.name
            made["starts"].append(order.units[0][0])
            made["wanted"] = sorted(set(query.starts) & set(covered))
    assert used == set(filled)
    for made in filled.values():
        assert sorted(made["starts"]) == made["wanted"]
    answered = [(order.query, order.units[0][0]) for order in orders if not order.fills]
    assert sorted(answered) == sorted((query.name, start) for query in queries for start in query.starts)
    for order in orders:
        if not order.fills:
            assert sorted(alias for unit in order.units for alias in unit) == sorted(everything(by_name[order.query]))


def probe_tuples(
    orders: tuple[ProbeOrder, ...], queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions
) -> float:
    """Return the probe tuples per second of all distinct steps with the best partitioning of every store by one key."""
    by_name = {query.name: query for query in queries}
    cardinality = Cardinality(statistics=statistics)
    steps: dict[object, tuple[object, float, int, frozenset[object]]] = {}
    for order in orders:
        query = by_name[order.query]
        sizes = JoinSizes(query, cardinality, options)
        within = [alias for unit in order.units for alias in unit] if order.fills else everything(query)
        path: tuple[object, ...] = ()
        joined: list[str] = []
        for unit in order.units:
            before = tuple(joined)
            joined += unit
            path = (*path, (content(query, unit, within), content(query, joined, within)))
            if before:
                streams = len(set(before) & set(query.starts))
                copies = max(options.parallelism_of(query.relation(alias).source) for alias in unit)
                cost = arriving(sizes.size(frozenset(before)), streams)
                cost *= sizes.pace(order.units[0][0])
                steps[path] = (_store(query, unit), cost, copies, _known(query, before, unit))
    total = 0.0
    for store in {step[0] for step in steps.values()}:
        mine = [step for step in steps.values() if step[0] == store]
        keys = {key for step in mine for key in step[3]} or {None}
        total += min(sum(cost if key in known else cost * copies for _, cost, copies, known in mine) for key in keys)
    return total


def intermediate_rows(
    orders: tuple[ProbeOrder, ...], queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions
) -> float:
    """Return the rows of all intermediate stores."""
    by_name = {query.name: query for query in queries}
    found = {}
    for order in orders:
        if order.fills:
            query, covered = by_name[order.query], frozenset(alias for unit in order.units for alias in unit)
            sizes = JoinSizes(query, Cardinality(statistics=statistics), options)
            found[content(query, covered, covered)] = sizes.size(covered)
    return sum(found.values())


def _store(query: Query, unit: tuple[str, ...]) -> object:
    return query.relation(unit[0]).source if len(unit) == 1 else content(query, unit, unit)


def _known(query: Query, before: tuple[str, ...], unit: tuple[str, ...]) -> frozenset[object]:
    """Return the keys of the unit that a tuple over `before` knows, told apart by member in an intermediate store."""
    inner = members(query, unit)
    return frozenset(
        (inner[inside] if len(unit) > 1 else None, mine.name)
        for inside in unit
        for outside in before
        for mine, _ in key_pairs(between(query, inside, outside))
    )
