"""What the join graph of a query (`plait.query.graph`) means for probe orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from plait.plan.conditions import between, placed
from plait.plan.model import Place, Probed
from plait.plan.relations import ordinal_of
from plait.query.model import Query
from plait.query.predicates import Conjunction, by_kind, mapped


def starts(query: Query) -> tuple[str, ...]:
    """Return the aliases of the relations whose tuples arrive: every stream, no table."""
    return tuple(relation.alias for relation in query.relations if not relation.is_table)


def canonical(query: Query, alias: str) -> tuple[str, int]:
    """Return the key that orders the relations of a query whatever their aliases: (source, ordinal)."""
    return query.relation(alias).source, ordinal_of(query, alias)


def may_follow(query: Query, joined: Collection[str]) -> tuple[str, ...]:
    """Return the relations that may be probed next, in canonical order.

    Connected ones if there are any; otherwise all that remain, which only an explicit CROSS JOIN brings about.
    """
    remaining = [relation.alias for relation in query.relations if relation.alias not in joined]
    connected = query.graph.neighbours_of(joined)
    return tuple(sorted(connected or remaining, key=lambda alias: canonical(query, alias)))


StoredName: TypeAlias = Callable[[str, str], str]
"""(alias, column or key of the relation) → its name in the store that is probed."""


def probing(query: Query, joined: tuple[str, ...], probed: Sequence[str], stored: StoredName) -> Conjunction[Probed]:
    """Return what joins a probe path (aliases by position) with the relations it probes next: equalities first, then
    bands, the two-sided ones before the others.
    """
    found = []
    for position, alias in enumerate(joined):
        for mine in probed:

            def place(known: Probed, mine: str = mine) -> Probed:
                return Place(None, stored(mine, known.name)) if known.at is None else known

            found += [mapped(each, place) for each in placed(between(query, alias, mine), position, None)]
    kinds = by_kind(found)
    bands = sorted(kinds.bands, key=lambda band: (band.low is None) + (band.high is None))
    return (*kinds.equalities, *bands, *kinds.residuals)
