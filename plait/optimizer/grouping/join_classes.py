"""Two-way joins of queries, by what they join: only queries with a join in common can share a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.assemble.intermediate_stores import member_of
from plait.plan.conditions import Joining, between
from plait.plan.model import Member
from plait.plan.relations import one_per_source
from plait.query.model import Query

Occurrence: TypeAlias = tuple[str, int]
"""A source, and which of its occurrences in a query: what `Query.canonical` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinClass:
    """Two relations, whatever their selections and windows, and what joins them."""

    left: Occurrence
    right: Occurrence
    on: Joining


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A join of a query: the aliases of its sides, and what they are in a plan."""

    query: str
    aliases: tuple[str, str]
    members: tuple[Member, Member]


def join_classes(queries: Iterable[Query]) -> dict[JoinClass, tuple[Use, ...]]:
    """Return who joins the same, in the order of the first that does."""
    uses: dict[JoinClass, list[Use]] = {}
    for query in queries:
        for pair in query.graph.edges:
            left, right = sorted(pair, key=query.canonical)
            joined = JoinClass(left=query.canonical(left), right=query.canonical(right), on=between(query, left, right))
            members = member_of(query, left, one_per_source), member_of(query, right, one_per_source)
            uses.setdefault(joined, []).append(Use(query=query.name, aliases=(left, right), members=members))
    return {joined: tuple(found) for joined, found in uses.items()}


__all__ = ["JoinClass", "Occurrence", "Use", "join_classes"]
