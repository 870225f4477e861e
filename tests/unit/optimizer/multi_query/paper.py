"""The formulation of paper 000, section V, as printed: enumerated probe orders. The reference for the product's own.

Three departures. The constraints that force an intermediate result to be filled have the coefficient 1, not the
printed k: with binary variables k would force every one of the k alternatives. A store has one partitioning (section
IV.A says so, the printed constraints do not). And steps are told apart by their predicates too, because queries here
need not join the same relations alike.

Every relation of a query has the alias of its source, so aliases identify members; selections and windows are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes, arriving
from plait.optimizer.options import PlanOptions
from plait.plan.conditions import between, key_pairs
from plait.query.model import Query
from plait.stats.model import Statistics

Unit: TypeAlias = tuple[str, ...]
"""A materializable intermediate result, or a relation alone: aliases in alphabetical order."""

Key: TypeAlias = tuple[str, str]
"""A candidate for partitioning: (alias, key name) of the member that has it."""

Predicates: TypeAlias = frozenset[tuple[str, str, str, str]]
"""All equalities of some join: (alias, key name, alias, key name), the smaller alias first."""

Result: TypeAlias = tuple[Unit, Predicates]
"""A join by content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sub:
    """A query, or the part of it that computes an intermediate result."""

    query: Query
    aliases: Unit

    def predicates(self, aliases: Unit) -> Predicates:
        """Return all equalities between some of its relations."""
        return frozenset(
            (one, mine.name, other, theirs.name)
            for one in aliases
            for other in aliases
            if one < other
            for mine, theirs in key_pairs(between(self.query, one, other))
        )

    def result(self, aliases: Unit) -> Result:
        """Return the join of some of its relations by content."""
        return aliases, self.predicates(aliases)

    def mirs(self) -> tuple[Unit, ...]:
        """Return the relations and the materializable intermediate results, which are connected and have a stream."""
        streams = self.query.starts
        subsets = (tuple(sorted(subset)) for subset in self.query.graph.connected_subsets())
        return tuple(
            subset
            for subset in subsets
            if set(subset) < set(self.aliases) and (len(subset) == 1 or set(subset) & set(streams))
        )

    def starts(self) -> tuple[str, ...]:
        """Return the relations whose tuples arrive."""
        return tuple(alias for alias in sorted(self.query.starts) if alias in self.aliases)


Order: TypeAlias = tuple[Unit, ...]


def candidate_orders(sub: Sub, start: str) -> tuple[Order, ...]:
    """Return the candidate probe orders (algorithm 1)."""

    def construct(head: Order) -> Iterator[Order]:
        joined = {alias for unit in head for alias in unit}
        if joined == set(sub.aliases):
            yield head
            return
        for unit in sub.mirs():
            if not joined & set(unit) and _keys_between(sub, joined, unit):
                yield from construct((*head, unit))

    return tuple(construct(((start,),)))


def _keys_between(sub: Sub, joined: set[str], unit: Unit) -> frozenset[Key]:
    """Return the keys of `unit` that a tuple over `joined` knows."""
    return frozenset(
        (inside, mine.name)
        for inside in unit
        for outside in joined
        for mine, _ in key_pairs(between(sub.query, inside, outside))
    )


def partitioning_candidates(queries: tuple[Query, ...]) -> dict[Result, tuple[Key, ...]]:
    """Return for every store the keys that define a join with a relation outside it, over all queries."""
    found: dict[Result, set[Key]] = {}
    for query in queries:
        sub = whole(query)
        for unit in sub.mirs():
            outside = set(sub.aliases) - set(unit)
            found.setdefault(sub.result(unit), set()).update(_keys_between(sub, outside, unit))
    return {result: tuple(sorted(keys)) for result, keys in found.items()}


def whole(query: Query) -> Sub:
    """Return the query as a whole."""
    return Sub(query=query, aliases=tuple(sorted(relation.alias for relation in query.relations)))


Decorated: TypeAlias = tuple[tuple[Result, Key | None], ...]
"""A probe order whose stores are decorated with their partitioning; the starting relation has none."""

Step: TypeAlias = tuple[Decorated, Predicates]
"""A prefix of a decorated order and all predicates applied so far: what a step variable stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A decorated order with the steps it consists of and their costs."""

    order: Decorated
    steps: tuple[Step, ...]
    costs: tuple[float, ...]

    @property
    def cost(self) -> float:
        """PCost."""
        return sum(self.costs)

    @property
    def used(self) -> tuple[Result, ...]:
        """The intermediate results it probes."""
        return tuple(result for result, _ in self.order[1:] if len(result[0]) > 1)


def apply_partitioning(
    sub: Sub,
    order: Order,
    partitionings: dict[Result, tuple[Key, ...]],
    sizes: JoinSizes,
    options: PlanOptions,
) -> tuple[Candidate, ...]:
    """Decorate every store of an order with each of its partitionings, and price its steps (equation 1)."""
    candidates = [Candidate(order=((sub.result(order[0]), None),), steps=(), costs=())]
    joined = set(order[0])
    for unit in order[1:]:
        result = sub.result(unit)
        known = _keys_between(sub, joined, unit)
        streams = len(joined & set(sub.query.starts))
        copies = max(options.parallelism_of(sub.query.relation(alias).source) for alias in unit)
        # Per second of event time: the paper's queries all have one window, and these need not.
        size = sizes.size(frozenset(joined)) * sizes.pace(order[0][0])
        joined |= set(unit)
        predicates = sub.predicates(tuple(sorted(joined)))
        candidates = [
            Candidate(
                order=(*before.order, (result, key)),
                steps=(*before.steps, ((*before.order, (result, key)), predicates)),
                costs=(*before.costs, arriving(size, streams) * (1 if key in known else copies)),
            )
            for before in candidates
            for key in partitionings[result]
        ]
    return tuple(candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Candidates of which one has to be chosen: for a query, or, if it is used, for an intermediate result."""

    fills: Result | None
    start: str
    candidates: tuple[Candidate, ...]


def groups(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> tuple[Group, ...]:
    """Return all groups: first those of the queries, then those of every intermediate result.

    Where no store has several partitions, all partitionings cost the same, and one stands for all.
    """
    partitionings = partitioning_candidates(queries)
    if all(options.parallelism_of(source.name) == 1 for source in options.sources):
        partitionings = {result: keys[:1] for result, keys in partitionings.items()}
    cardinality = Cardinality(statistics=statistics)
    found, seen = [], set()
    for query in queries:
        found += _groups(whole(query), None, partitionings, JoinSizes(query, cardinality, options), options)
    for query in queries:
        for unit in whole(query).mirs():
            result = whole(query).result(unit)
            if len(unit) > 1 and result not in seen:
                seen.add(result)
                sizes = JoinSizes(query, cardinality, options)
                found += _groups(Sub(query=query, aliases=unit), result, partitionings, sizes, options)
    return tuple(found)


def _groups(
    sub: Sub,
    fills: Result | None,
    partitionings: dict[Result, tuple[Key, ...]],
    sizes: JoinSizes,
    options: PlanOptions,
) -> list[Group]:
    return [
        Group(
            fills=fills,
            start=start,
            candidates=tuple(
                candidate
                for order in candidate_orders(sub, start)
                for candidate in apply_partitioning(sub, order, partitionings, sizes, options)
            ),
        )
        for start in sub.starts()
    ]
