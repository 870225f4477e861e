"""In which order queries join, and what they share of it (paper 004, figure 7b).

Every query is a set of units, its relations at first. Over and over the subquery of two units that is cheapest becomes
one unit of all queries that share it. What a subquery costs is what its units hold and what it finds, per second of
event time, divided by the number of queries that share it: if it is done as wide as its group needs it (MaxShared), or
only for the queries that want just the same rows (MinShared), whichever is less. A relation that has once been joined
narrow, or wide, stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod
from typing import TypeAlias

from plait.optimizer.assemble.intermediate_stores import Subset
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.plan.relations import one_per_source
from plait.query.model import Query

Aliases: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Tree:
    """Relations of a query that are joined, and the two parts they are joined from; none of a single relation."""

    relations: Aliases
    parts: tuple[Tree, Tree] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterated:
    """The join tree of every query, and its relations that are joined as wide as their groups need them."""

    trees: Mapping[str, Tree]
    wide: frozenset[tuple[str, str]]


def iterate(
    queries: Iterable[Query], covering: Mapping[str, Query], cardinality: Cardinality, options: PlanOptions
) -> Iterated:
    """Return how these queries are joined; `covering` are those as wide as their groups need them, by name."""
    states = {}
    for query in queries:
        wide = covering[query.name]
        sizes = JoinSizes(query, cardinality, options)
        states[query.name] = _State(sizes, sizes if wide == query else JoinSizes(wide, cardinality, options))
    return _Iteration(states).run()


class _State:
    """How far a query has come: its units so far, and which relations are settled to be joined wide, or narrow."""

    def __init__(self, own: JoinSizes, wide: JoinSizes) -> None:
        self.query, self._own, self._wide = own.query, own, wide
        self.grouped = {
            mine.alias: theirs
            for mine, theirs in zip(own.query.relations, wide.query.relations, strict=True)
            if mine != theirs
        }
        self.settled: dict[str, bool] = {}
        self.units: dict[Aliases, Tree] = {
            frozenset((alias,)): Tree(frozenset((alias,))) for alias in own.query.graph.aliases
        }
        self._names: dict[tuple[Aliases, Aliases], str] = {}

    def widened(self, inside: Aliases, is_wide: bool) -> Aliases:
        """Return which of some relations are wide if all that are not settled are, or are not."""
        return frozenset(alias for alias in inside if alias in self.grouped and self.settled.get(alias, is_wide))

    def is_live(self, candidate: _Candidate) -> bool:
        """Tell whether a candidate is possible still."""
        inside = candidate.inside
        return all(half in self.units for half in candidate.halves) and all(
            self.settled.get(alias, alias in candidate.wide) == (alias in candidate.wide)
            for alias in inside
            if alias in self.grouped
        )

    def found(self, inside: Aliases, wide: Aliases) -> float:
        """Return |⋈ inside| per second with some of the relations wide."""
        ordered = sorted(inside, key=self.query.canonical)
        sizes = [self._wide if alias in wide else self._own for alias in ordered]
        rows = prod(known.rows(alias) for known, alias in zip(sizes, ordered, strict=True))
        shares = (sizes[left].selectivity(ordered[left], ordered[right]) for left, right in _pairs(len(ordered)))
        streams = set(self.query.starts)
        paces = [known.pace(alias) for known, alias in zip(sizes, ordered, strict=True) if alias in streams]
        return rows * prod(shares) * sum(paces) / max(len(paces), 1)

    def name(self, inside: Aliases, wide: Aliases) -> str:
        """Return the name of a join by content."""
        known = self._names.get((inside, wide))
        if known is None:
            relations = (self.grouped[each.alias] if each.alias in wide else each for each in self.query.relations)
            query = replace(self.query, relations=tuple(relations)) if wide else self.query
            known = self._names[inside, wide] = Subset.of(query, inside, one_per_source).store
        return known

    def near(self, unit: Aliases) -> list[Aliases]:
        """Return the units that are joined with one on something; all others once no two units are."""
        reached = {each: set(self.query.graph.neighbours_of(each)) for each in self.units}
        others = [other for other in self.units if other != unit]
        return [other for other in others if reached[unit] & other] if any(reached.values()) else others

    def choose(self, candidate: _Candidate) -> Aliases:
        """Make two units one, and return it."""
        left, right = candidate.halves
        self.settled.update((alias, alias in candidate.wide) for alias in candidate.inside if alias in self.grouped)
        self.units[candidate.inside] = Tree(candidate.inside, (self.units.pop(left), self.units.pop(right)))
        return candidate.inside


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    return combinations(range(count), 2)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Two units of a query that can become one, with these of their relations wide."""

    query: str
    halves: tuple[Aliases, Aliases]
    wide: Aliases

    @property
    def inside(self) -> Aliases:
        return self.halves[0] | self.halves[1]


@dataclass(slots=True)
class _Iteration:
    """The subqueries that are possible, by name: who can share each, and what it costs by itself."""

    states: Mapping[str, _State]
    sharers: dict[str, list[_Candidate]] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)

    def run(self) -> Iterated:
        """Choose subqueries until every query is one unit."""
        for state in self.states.values():
            for _ in self._offered(state, state.units):
                pass
        waiting = [(self._cost(name), name) for name in self.sharers]
        heapify(waiting)
        while waiting:
            before, name = heappop(waiting)
            self.sharers[name] = [each for each in self.sharers[name] if self.states[each.query].is_live(each)]
            if self.sharers[name] and before < self._cost(name):  # some that would have shared it go another way
                heappush(waiting, (self._cost(name), name))
            elif self.sharers[name]:
                for offered in self._taken(self.sharers.pop(name)):
                    heappush(waiting, (self._cost(offered), offered))
                self.sharers.setdefault(name, [])
        wide = (
            (name, alias) for name, state in self.states.items() for alias, is_wide in state.settled.items() if is_wide
        )
        return Iterated(
            trees={name: next(iter(state.units.values())) for name, state in self.states.items()},
            wide=frozenset(wide),
        )

    def _taken(self, candidates: Iterable[_Candidate]) -> set[str]:
        """Let all that share a subquery take it; return what they can join next."""
        offered = set[str]()
        for candidate in candidates:
            state = self.states[candidate.query]
            if state.is_live(candidate):  # a query may join the same in two places
                offered.update(self._offered(state, (state.choose(candidate),)))
        return offered

    def _offered(self, state: _State, units: Collection[Aliases]) -> Iterator[str]:
        """Note the subqueries that join one of these units with another one; yield their names."""
        noted = set[_Candidate]()
        for unit in units:
            for other in state.near(unit):
                for is_wide in (False, True):
                    halves = (unit, other) if sorted(unit) < sorted(other) else (other, unit)
                    candidate = _Candidate(state.query.name, halves, state.widened(unit | other, is_wide))
                    if candidate in noted:
                        continue
                    noted.add(candidate)
                    name = state.name(candidate.inside, candidate.wide)
                    self.sharers.setdefault(name, []).append(candidate)
                    parts = (*halves, candidate.inside)
                    self.work[name] = sum(state.found(part, candidate.wide & part) for part in parts)
                    yield name

    def _cost(self, name: str) -> float:
        return self.work[name] / max(len({each.query for each in self.sharers[name]}), 1)


__all__ = ["Iterated", "Tree", "iterate"]
