"""What is joined for whom, and in which order: groups, the iteration over subqueries, and whether it pays.

Groups are formed join by join, each by itself, but a relation has one width in all joins of a query. So where groups
overlap they get wider than any of them wanted. What comes of it is therefore compared with groups that the iteration
leaves as they are, with no groups at all, with one group of all that can be, and with those of its queries that do
better in it than by themselves: the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.assemble.covering import cover
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.grouping.groups import query_groups
from plait.optimizer.grouping.iteration import Tree, iterate
from plait.optimizer.grouping.join_classes import JoinClass, Use, join_classes
from plait.optimizer.grouping.orders_cost import Costs, StepNumbers, cheaper_variants, orders_cost
from plait.optimizer.grouping.sharing_cost import SharingCost
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, cheapest_extension, choose_orders, may_follow
from plait.query.model import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Queries as they are joined, their probe orders, and what these cost per second: tuples sent and rows found."""

    joined: tuple[Query, ...]
    orders: tuple[ProbeOrder, ...]
    cost: float


def choose_groups(queries: tuple[Query, ...], cardinality: Cardinality, options: PlanOptions) -> Grouped:
    """Return what is cheapest for each set of queries that have joins in common."""
    parts = [_cheapest(part, cardinality, options) for part in _in_common(queries)]
    return Grouped(
        joined=tuple(query for part in parts for query in part.joined),
        orders=tuple(order for part in parts for order in part.orders),
        cost=sum(part.cost for part in parts),
    )


def _in_common(queries: tuple[Query, ...]) -> tuple[tuple[Query, ...], ...]:
    """Return the queries in sets that a chain of common joins connects; others share no step."""
    parts = {query.name: {query.name} for query in queries}
    for uses in join_classes(queries).values():
        names = {use.query for use in uses}
        united = set[str]().union(*(parts[name] for name in names))
        parts.update(dict.fromkeys(united, united))
    distinct = {id(part): part for part in parts.values()}
    return tuple(tuple(query for query in queries if query.name in part) for part in distinct.values())


def _cheapest(queries: tuple[Query, ...], cardinality: Cardinality, options: PlanOptions) -> Grouped:
    """Return the cheapest of what grouping comes to, of no groups, and of one group of all."""
    classes = join_classes(queries)
    apart = _in_order(queries, queries, cardinality, options)
    if all(len({use.members for use in uses}) == 1 for uses in classes.values()):
        return apart
    tables = frozenset(each.source for query in queries for each in query.relations if each.is_table)
    cost = SharingCost(cardinality, tables)
    groups = {joined: query_groups(joined, uses, cost) for joined, uses in classes.items()}
    grouped, as_one = _widths(groups), _widths({joined: (uses,) for joined, uses in classes.items()})
    widths = (
        _where_it_pays(queries, grouped, cardinality, options),
        *(_for_whom_it_pays(queries, width, cardinality, options) for width in (grouped, as_one)),
        grouped,
        as_one,
    )
    chosen = (_in_order(queries, _covered(queries, width), cardinality, options) for width in widths)
    return min((apart, *chosen), key=lambda each: each.cost)


def _where_it_pays(queries: tuple[Query, ...], width: Widths, cardinality: Cardinality, options: PlanOptions) -> Widths:
    """Return the widths of the relations that the iteration over subqueries does not rather join narrow."""
    covering = {query.name: query for query in _covered(queries, width)}
    wide = iterate(queries, covering, cardinality, options).wide
    return {relation: name for relation, name in width.items() if relation in wide}


def _for_whom_it_pays(
    queries: tuple[Query, ...], width: Widths, cardinality: Cardinality, options: PlanOptions
) -> Widths:
    """Return the widths of the queries that do better with them: what several share is cheap, but all that one of them
    joins after that takes more rows.
    """
    numbers = StepNumbers(cardinality=cardinality, options=options)

    def costs(joined: tuple[Query, ...]) -> list[Costs]:
        orders = (choose_orders((each,), cardinality.statistics, options, cheapest_extension) for each in joined)
        return [numbers.costs(query, each) for query, each in zip(joined, orders, strict=True)]

    is_wide = cheaper_variants(costs(queries), costs(_covered(queries, width)))
    names = {query.name for query, wide in zip(queries, is_wide, strict=True) if wide}
    return {relation: name for relation, name in width.items() if relation[0] in names}


def _covered(queries: tuple[Query, ...], width: Widths) -> tuple[Query, ...]:
    return cover(queries, lambda query, relation: width.get((query.name, relation.alias)))


Groups: TypeAlias = Mapping[JoinClass, tuple[tuple[Use, ...], ...]]
Widths: TypeAlias = Mapping[tuple[str, str], str]
"""What relations of queries, by query and alias, are as wide as: one name for all of one width."""


def _widths(groups: Groups) -> Widths:
    """Return which relations of queries have one width, by a name for it: those that a chain of groups connects."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(relation: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(relation, relation) != relation:
            parent[relation] = relation = parent[parent[relation]]
        return relation

    for group in (group for made in groups.values() for group in made if len(group) > 1):
        for side in (0, 1):
            first, *others = sorted((use.query, use.aliases[side]) for use in group)
            for other in others:
                parent[root(other)] = root(first)
    return {relation: "\x1f".join(root(relation)) for relation in tuple(parent)}


def _in_order(
    queries: tuple[Query, ...], joined: tuple[Query, ...], cardinality: Cardinality, options: PlanOptions
) -> Grouped:
    """Return queries as they are joined, with the probe orders of their join trees, or greedy ones where all of these
    together are cheaper: a tree that many share need not be the best for one of them.
    """
    trees = iterate(joined, {query.name: query for query in joined}, cardinality, options).trees
    climbing = tuple(
        ProbeOrder(query=query.name, units=tuple((alias,) for alias in _climb(sizes, trees[query.name], start)))
        for query in joined
        for sizes in (JoinSizes(query, cardinality, options),)
        for start in query.starts
    )
    greedy = choose_orders(joined, cardinality.statistics, options, cheapest_extension)
    costs = [orders_cost(joined, orders, cardinality, options) for orders in (climbing, greedy)]
    cost = min(costs)
    return Grouped(joined=joined, orders=climbing if costs[0] == cost else greedy, cost=cost)


def _climb(sizes: JoinSizes, tree: Tree, start: str) -> Iterator[str]:
    """Yield what arrivals of a relation probe on their way up to the root, the relation itself first."""
    if tree.parts is None:
        yield start
        return
    mine, other = tree.parts if start in tree.parts[0].relations else tree.parts[::-1]
    yield from _climb(sizes, mine, start)
    joined, left = set(mine.relations), set(other.relations)
    while left:
        near = [alias for alias in may_follow(sizes.query, joined) if alias in left]
        following = near or sorted(left, key=sizes.query.canonical)
        found = min(following, key=lambda alias: sizes.size(frozenset((*joined, alias))))
        yield found
        joined.add(found)
        left.remove(found)


__all__ = ["Grouped", "choose_groups"]
