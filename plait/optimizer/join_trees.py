"""Join trees (paper 002, section IV.C): which joins inside a query have a store of their own.

An inner operator joins the results of its children: relations, or operators below it, whose results are kept in an
intermediate store. The root keeps nothing. A tuple that arrives climbs from its relation to the root and at each
operator probes the stores of its siblings there, in section IV.B's greedy order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.cost import JoinSizes, step_cost, storage_cost
from plait.optimizer.graph import canonical, starts
from plait.optimizer.orders import ProbeOrder
from plait.plan.conditions import between
from plait.query.graph import QueryGraph
from plait.query.model import Query

Aliases: TypeAlias = frozenset[str]
Inner: TypeAlias = frozenset[Aliases]
"""The operators below the root, as the relations they join; of any two one holds the other, or they share nothing."""

FLAT: Inner = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """How arrivals of one relation climb to an operator: the stores probed, and probe tuples per second."""

    units: tuple[Aliases, ...]
    cost: float


class JoinTrees:
    """All join trees of one query: what they cost, and what orders they mean. Remembers what it has computed.

    `is_random`: tuples are placed at random, as in the paper, so that every probe goes to all partitions of a store.
    """

    def __init__(self, sizes: JoinSizes, *, is_random: bool = False) -> None:
        self.query: Query = sizes.query
        self._sizes, self._is_random = sizes, is_random
        self._graph = QueryGraph.of(sizes.query)
        self._streams = frozenset(starts(sizes.query))
        self._everything = frozenset(self._graph.aliases)
        self._climbs: dict[tuple[Aliases, tuple[Aliases, ...]], Path] = {}

    @property
    def shape(self) -> str:
        """The shape of the query's join graph (`QueryGraph.shape`)."""
        return self._graph.shape

    @property
    def chain(self) -> tuple[str, ...]:
        """The relations of a linear join graph from one end to the other, the end that comes first in FROM first."""
        ends = [alias for alias in self._graph.aliases if len(self._graph.neighbours(alias)) < 2]
        found = ends[:1]
        while len(found) < len(self._graph.aliases):
            found += [alias for alias in self._graph.neighbours(found[-1]) if alias not in found]
        return tuple(found)

    @property
    def candidates(self) -> tuple[Aliases, ...]:
        """The joins that may have a store: connected, with a stream, not all of the query; small ones first."""
        return tuple(
            subset
            for subset in self._graph.connected_subsets()
            if 1 < len(subset) < len(self._everything) and subset & self._streams
        )

    def rows(self, operator: Aliases) -> float:
        """Return |O|, the rows that an inner operator keeps."""
        return self._sizes.size(operator)

    def storage_cost(self, inner: Inner) -> float:
        """Return SCost: all inputs, and the results of all inner operators (002, equation 3)."""
        inputs = [self._sizes.size(frozenset((alias,))) for alias in self._graph.aliases]
        return storage_cost(inputs, (self.rows(operator) for operator in self.ordered(inner)))

    def probe_cost(self, inner: Inner) -> float:
        """Return PCost: the probe tuples of all operators per second (002, equation 4).

        What climbs to an inner operator is part of every path further up and counted once.
        """
        return sum(self._climb(self._everything, alias, inner).cost for alias in self.members(self._streams))

    def orders(self, inner: Inner) -> Iterator[tuple[Aliases | None, ProbeOrder]]:
        """Yield (the inner operator it fills, None for the root; a probe order) for every arriving relation."""
        for operator in (*self.ordered(inner), self._everything):
            is_root = operator == self._everything
            for relation in self.query.relations:
                if relation.alias in operator & self._streams:
                    units = self._climb(operator, relation.alias, inner).units
                    order = ProbeOrder(
                        query=self.query.name, units=tuple(map(self._in_from_order, units)), fills=not is_root
                    )
                    yield (None if is_root else operator), order

    def are_probed(self, inner: Inner) -> bool:
        """Tell whether every inner operator has something arriving beside it."""
        return all(self.is_probed(operator, inner) for operator in inner)

    def is_probed(self, operator: Aliases, inner: Inner) -> bool:
        """Tell whether anything arrives beside an inner operator, which then probes its store."""
        above = min((other for other in inner if operator < other), key=len, default=self._everything)
        return bool((above - operator) & self._streams)

    def children(self, operator: Aliases, inner: Inner) -> tuple[Aliases, ...]:
        """Return the children of an operator, in FROM order of their first relations."""
        below = [other for other in inner if other < operator]
        largest = [other for other in below if not any(other < another for another in below)]
        alone = operator.difference(*largest)
        return tuple(sorted((*largest, *(frozenset((alias,)) for alias in alone)), key=self._place))

    def members(self, operator: Aliases) -> list[str]:
        """Return the relations of an operator in canonical order."""
        return sorted(operator, key=lambda alias: canonical(self.query, alias))

    def ordered(self, inner: Inner) -> list[Aliases]:
        """Return operators, small ones first, in an order free of aliases: sums and ties must not hang on hashes."""
        return sorted(inner, key=lambda operator: (len(operator), *self._place(operator)))

    def _climb(self, operator: Aliases, start: str, inner: Inner) -> Path:
        children = self.children(operator, inner)
        child = next(each for each in children if start in each)
        below = Path(units=(child,), cost=0.0) if len(child) == 1 else self._climb(child, start, inner)
        known = (child, children)
        if known not in self._climbs:
            self._climbs[known] = self._probe_siblings(child, children)
        climb = self._climbs[known]
        pace = self._sizes.pace(start)
        return Path(units=(*below.units, *climb.units), cost=below.cost + climb.cost * pace)

    def _probe_siblings(self, child: Aliases, children: tuple[Aliases, ...]) -> Path:
        """Return the greedy order (002, fig. 4) in which what `child` made probes the others; cost per window."""
        units: list[Aliases] = []
        joined, cost = child, 0.0
        while len(units) < len(children) - 1:
            near = self._near(joined, [each for each in children if not each <= joined])
            chosen = min(near, key=lambda unit, joined=joined: self._greedy_cost(joined, unit, children))  # type: ignore[misc]
            cost += step_cost(
                self._sizes.size(joined), streams=len(joined & self._streams) or 1, copies=self._copies(joined, chosen)
            )
            units.append(chosen)
            joined |= chosen
        return Path(units=tuple(units), cost=cost)

    def _greedy_cost(self, joined: Aliases, unit: Aliases, children: tuple[Aliases, ...]) -> float:
        after = joined | unit
        following = self._near(after, [each for each in children if not each <= after])
        least = min((self._parallelism(later) for later in following), default=0)
        return self._sizes.size(joined) * self._parallelism(unit) + self._sizes.size(after) * least

    def _near(self, joined: Aliases, remaining: list[Aliases]) -> list[Aliases]:
        """Return the units a predicate connects with what is joined; all that remain if there are none."""
        reached = set(self._graph.neighbours_of(joined))
        return [unit for unit in remaining if unit & reached] or remaining

    def _copies(self, joined: Aliases, unit: Aliases) -> int:
        """Return χ: a store is taken to be partitioned by what probes it with an equality."""
        is_routed = not self._is_random and any(
            between(self.query, known, alias).keys for known in joined for alias in unit
        )
        return 1 if is_routed else self._parallelism(unit)

    def _parallelism(self, unit: Aliases) -> int:
        return self._sizes.partitions(unit)

    def _place(self, unit: Aliases) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(canonical(self.query, alias) for alias in unit))

    def _in_from_order(self, unit: Aliases) -> tuple[str, ...]:
        return tuple(alias for alias in self._graph.aliases if alias in unit)


def are_compatible(one: Aliases, other: Aliases) -> bool:
    """Tell whether two operators can stand in one tree."""
    return one <= other or other <= one or not one & other
