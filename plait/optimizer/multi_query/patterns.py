"""Joins by content: what queries can share has no aliases, only members and the equalities between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.estimate.join_sizes import SubsetSizes
from plait.plan.conditions import Joining, between, key_pairs
from plait.plan.model import KeyColumn, Member
from plait.plan.relations import selection_of, window_of
from plait.query.masks import Mask, connected_levels, positions
from plait.query.model import Query
from plait.query.predicates import Equality


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """All predicates between two members, `left` before `right`."""

    left: int
    right: int
    between: Joining

    @property
    def keys(self) -> tuple[tuple[KeyColumn, KeyColumn], ...]:
        """The equal keys: (of left, of right), ordered by name."""
        return key_pairs(self.between)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Members in canonical order, whether each is a stream, and the joins between them. `Member.store` is the source.

    Equal patterns compute the same thing, whichever query asked.
    """

    members: tuple[Member, ...]
    is_stream: tuple[bool, ...]
    joins: tuple[Join, ...]

    @property
    def everything(self) -> Mask:
        """Return the set of all members."""
        return (1 << len(self.members)) - 1

    @property
    def streams(self) -> Mask:
        """Return the set of the members that are streams."""
        return sum(1 << position for position, stream in enumerate(self.is_stream) if stream)

    def extent(self, position: int) -> Extent:
        """Return how far back a member looks."""
        member = self.members[position]
        return Extent(source=member.store, is_table=not self.is_stream[position], window_us=member.window_us)

    def neighbours(self) -> tuple[Mask, ...]:
        """Return for each member the set of those it is joined with."""
        near = [0] * len(self.members)
        for join in self.joins:
            near[join.left] |= 1 << join.right
            near[join.right] |= 1 << join.left
        return tuple(near)

    def connected(self) -> Iterator[Mask]:
        """Yield the connected sets of members, smaller ones first."""
        for level in connected_levels(self.neighbours()):
            yield from sorted(level)

    @property
    def is_connected(self) -> bool:
        """Whether its members reach each other over joins."""
        neighbours, reached, waiting = self.neighbours(), 1, [0]
        while waiting:
            new = neighbours[waiting.pop()] & ~reached
            reached |= new
            waiting += positions(new)
        return reached == self.everything

    def part(self, mask: Mask) -> Pattern:
        """Return the join of some members, occurrences of one source counted anew.

        So an intermediate result over the second occurrence of a source is the one over another query's first.
        """
        kept = positions(mask)
        seen: dict[str, int] = {}
        members = []
        for position in kept:
            member = self.members[position]
            ordinal = seen.get(member.store, 0)
            seen[member.store] = ordinal + 1
            members.append(member if member.ordinal == ordinal else replace(member, ordinal=ordinal))
        place = {position: index for index, position in enumerate(kept)}
        return Pattern(
            members=tuple(members),
            is_stream=tuple(self.is_stream[position] for position in kept),
            joins=tuple(
                Join(left=place[join.left], right=place[join.right], between=join.between)
                for join in self.joins
                if join.left in place and join.right in place
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A pattern and the queries that ask for it: (name, alias of each member), ordered by name."""

    pattern: Pattern
    queries: tuple[tuple[str, tuple[str, ...]], ...]


def distinct_patterns(queries: tuple[Query, ...]) -> tuple[Asked, ...]:
    """Return the distinct patterns of the queries in an order that depends on content alone."""
    by_pattern: dict[Pattern, list[tuple[str, tuple[str, ...]]]] = {}
    for query in sorted(queries, key=lambda query: query.name):
        pattern, aliases = pattern_of(query)
        by_pattern.setdefault(pattern, []).append((query.name, aliases))
    return tuple(
        Asked(pattern=pattern, queries=tuple(by_pattern[pattern])) for pattern in sorted(by_pattern, key=content_order)
    )


def pattern_of(query: Query) -> tuple[Pattern, tuple[str, ...]]:
    """Return a query's pattern and the alias of each member."""
    members = sorted(
        (
            (
                Member(
                    store=relation.source,
                    ordinal=query.canonical(relation.alias)[1],
                    selection=selection_of(relation),
                    window_us=window_of(relation),
                ),
                relation,
            )
            for relation in query.relations
        ),
        key=lambda pair: pair[0].order,
    )
    aliases = tuple(relation.alias for _, relation in members)
    pairs = (
        (left, right, between(query, aliases[left], aliases[right]))
        for left, right in combinations(range(len(aliases)), 2)
    )
    pattern = Pattern(
        members=tuple(member for member, _ in members),
        is_stream=tuple(not relation.is_table for _, relation in members),
        joins=tuple(
            Join(left=left, right=right, between=predicates) for left, right, predicates in pairs if predicates
        ),
    )
    return pattern, aliases


def content_order(pattern: Pattern) -> tuple[object, ...]:
    """Return the key that orders patterns: by content, so that neither names nor the order of queries matter."""
    return (
        len(pattern.members),
        tuple(member.order for member in pattern.members),
        tuple(
            (
                join.left,
                join.right,
                tuple((mine.name, theirs.name) for mine, theirs in join.keys),
                *(repr(predicate) for predicate in join.between if not isinstance(predicate, Equality)),
            )
            for join in pattern.joins
        ),
    )


class ContentSizes:
    """|R| of members and f of joins, each computed once for all patterns."""

    def __init__(self, cardinality: Cardinality) -> None:
        self.cardinality = cardinality
        self._rows: dict[Member, float] = {}
        self._selectivity: dict[tuple[object, ...], float] = {}

    def rows(self, pattern: Pattern, position: int) -> float:
        """Return |R| of a member after its selection."""
        member = pattern.members[position]
        if member not in self._rows:
            self._rows[member] = self.cardinality.selected_rows(pattern.extent(position), member.selection)
        return self._rows[member]

    def selectivity(self, pattern: Pattern, join: Join) -> float:
        """Return f of all predicates of a join."""
        left, right = pattern.extent(join.left), pattern.extent(join.right)
        known = (left, right, join.between)
        if known not in self._selectivity:
            self._selectivity[known] = self.cardinality.between(left, right, join.between)
        return self._selectivity[known]

    def of(self, pattern: Pattern) -> SubsetSizes:
        """Return |⋈ X| for the sets of a pattern's members."""
        return SubsetSizes(
            [self.rows(pattern, position) for position in range(len(pattern.members))],
            {(join.left, join.right): self.selectivity(pattern, join) for join in pattern.joins},
        )
