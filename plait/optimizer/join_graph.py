"""What the join graph of a query (`plait.query.graph`) means for probe orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from plait.plan.conditions import between
from plait.plan.model import Check, KeyMatch, SpanMatch
from plait.plan.relations import ordinal_of
from plait.query.graph import QueryGraph
from plait.query.model import Query


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
    connected = QueryGraph.of(query).neighbours_of(joined)
    return tuple(sorted(connected or remaining, key=lambda alias: canonical(query, alias)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Everything a step requires of what it finds (`Step.matches`, `Step.spans`, `Step.checks`)."""

    matches: tuple[KeyMatch, ...] = ()
    spans: tuple[SpanMatch, ...] = ()
    checks: tuple[Check, ...] = ()


NOTHING = Matching()

StoredName: TypeAlias = Callable[[str, str], str]
"""(alias, column or key of the relation) → its name in the store that is probed."""


def matching(query: Query, joined: tuple[str, ...], probed: Sequence[str], stored: StoredName) -> Matching:
    """Return what joins a probe path (aliases by position) with the relations it probes next."""
    pairs = [(position, mine, between(query, alias, mine)) for position, alias in enumerate(joined) for mine in probed]
    return Matching(
        matches=tuple(
            KeyMatch(position=position, probe_key=theirs.name, store_key=stored(mine, key.name))
            for position, mine, found in pairs
            for theirs, key in found.keys
        ),
        spans=tuple(
            sorted(
                (
                    SpanMatch(
                        position=position,
                        probe_key=span.left.name,
                        store_key=stored(mine, span.right.name),
                        low=span.low,
                        high=span.high,
                        order=span.order,
                    )
                    for position, mine, found in pairs
                    for span in found.spans
                ),
                key=lambda span: (span.low is None) + (span.high is None),
            )
        ),
        checks=tuple(
            Check(
                formula=check.formula,
                operands=tuple(
                    (position, name) if is_left else (None, stored(mine, name)) for is_left, name in check.operands
                ),
            )
            for position, mine, found in pairs
            for check in found.checks
        ),
    )
