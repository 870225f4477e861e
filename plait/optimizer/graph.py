"""What the join graph of a query (`plait.query.graph`) means for probe orders."""

from __future__ import annotations

from collections.abc import Collection

from plait.plan.model import KeyColumn, KeyMatch
from plait.plan.relations import key_of, ordinal_of
from plait.query.graph import QueryGraph
from plait.query.model import Query


def starts(query: Query) -> tuple[str, ...]:
    """Return the aliases of the relations whose tuples arrive: every stream, no table."""
    return tuple(relation.alias for relation in query.relations if not relation.is_table)


def canonical(query: Query, alias: str) -> tuple[str, int]:
    """Return the key that orders the relations of a query whatever their aliases: (source, ordinal)."""
    return query.relation(alias).source, ordinal_of(query, alias)


def candidates(query: Query, joined: Collection[str]) -> tuple[str, ...]:
    """Return the relations that may be probed next, in canonical order.

    Connected ones if there are any; otherwise all that remain, which only an explicit CROSS JOIN brings about.
    """
    remaining = [relation.alias for relation in query.relations if relation.alias not in joined]
    connected = QueryGraph.of(query).neighbours_of(joined)
    return tuple(sorted(connected or remaining, key=lambda alias: canonical(query, alias)))


def equality_keys(query: Query, left: str, right: str) -> tuple[tuple[KeyColumn, KeyColumn], ...]:
    """Return the (left key, right key) of every equality between two relations, each once, ordered by name."""
    pairs = {}
    for equality in QueryGraph.of(query).between((left,), right):
        sides = {operand.relation: key_of(operand, equality) for operand in (equality.left, equality.right)}
        pairs[sides[left].name, sides[right].name] = (sides[left], sides[right])
    return tuple(pairs[names] for names in sorted(pairs))


def matches(query: Query, joined: tuple[str, ...], probed: str) -> tuple[KeyMatch, ...]:
    """Return all equalities between a probe path (aliases by position) and the relation it probes next."""
    return tuple(
        KeyMatch(position=position, probe_key=theirs.name, store_key=mine.name)
        for position, alias in enumerate(joined)
        for theirs, mine in equality_keys(query, alias, probed)
    )
