"""Join trees (paper 002, section IV.C): which joins inside a query have a store of their own.

An inner operator joins the results of its children: relations, or operators below it, whose results are kept in an
intermediate store. The root keeps nothing. A tuple that arrives climbs from its relation to the root and at each
operator probes the stores of its siblings there, in section IV.B's greedy order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from plait.optimizer.estimate.join_sizes import JoinSizes, arriving, storage_cost
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.conditions import between, key_pairs
from plait.query.model import Query

Aliases: TypeAlias = frozenset[str]
Inner: TypeAlias = frozenset[Aliases]
"""The operators below the root, as the relations they join; of any two one holds the other, or they share nothing."""

_Key: TypeAlias = tuple[str, str]
_Probes: TypeAlias = list[tuple[float, frozenset[_Key]]]
"""(tuples per second that come to probe a store, the keys of the store that they know)."""

FLAT: Inner = frozenset()


class JoinTrees:
    """All join trees of one query: what they cost, and what orders they mean. Remembers what it has computed."""

    def __init__(self, sizes: JoinSizes) -> None:
        self.query: Query = sizes.query
        self._sizes = sizes
        self._graph = sizes.query.graph
        self._streams = frozenset(sizes.query.starts)
        self.everything = frozenset(self._graph.aliases)
        self._orders: dict[tuple[Aliases, tuple[Aliases, ...]], tuple[Aliases, ...]] = {}
        self._costs: dict[tuple[Aliases, ...], float] = {}
        self._keys: dict[tuple[str, str], frozenset[str]] = {}

    @property
    def shape(self) -> str:
        """The shape of the query's join graph (`QueryGraph.shape`)."""
        return self._graph.shape

    @property
    def chain(self) -> tuple[str, ...]:
        """The relations of a linear join graph from one end to the other, the end that comes first in FROM first."""
        ends = [alias for alias in self._graph.aliases if len(self._graph.neighbours(alias)) < 2]
        passed = ends[:1]
        while len(passed) < len(self._graph.aliases):
            passed += [alias for alias in self._graph.neighbours(passed[-1]) if alias not in passed]
        return tuple(passed)

    @property
    def candidates(self) -> tuple[Aliases, ...]:
        """The joins that may have a store: connected, with a stream, not all of the query; small ones first."""
        return tuple(
            subset
            for subset in self._graph.connected_subsets()
            if 1 < len(subset) < len(self.everything) and subset & self._streams
        )

    def rows(self, operator: Aliases) -> float:
        """Return |O|, the rows that an inner operator keeps."""
        return self._sizes.size(operator)

    def storage_cost(self, inner: Inner) -> float:
        """Return SCost: all inputs, and the results of all inner operators (002, equation 3)."""
        inputs = [self._sizes.size(frozenset((alias,))) for alias in self._graph.aliases]
        return storage_cost(inputs, (self.rows(operator) for operator in self.ordered(inner)))

    def probe_cost(self, inner: Inner) -> float:
        """Return PCost: the probe tuples of all operators per second (002, equation 4)."""
        return sum(
            self.operator_cost(self.children(operator, inner)) for operator in (*self.ordered(inner), self.everything)
        )

    def operator_cost(self, children: tuple[Aliases, ...]) -> float:
        """Return PCost of one operator, per second: what the results of its children send among themselves.

        It is what the plan costs, save where a query reads a source twice: such occurrences have one store, whose one
        partitioning has to do for all operators.
        """
        if children not in self._costs:
            self._costs[children] = self._operator_cost(children)
        return self._costs[children]

    def orders(self, inner: Inner) -> Iterator[tuple[Aliases | None, ProbeOrder]]:
        """Yield (the inner operator it fills, None for the root; a probe order) for every arriving relation."""
        for operator in (*self.ordered(inner), self.everything):
            is_root = operator == self.everything
            for relation in self.query.relations:
                if relation.alias in operator & self._streams:
                    units = self._climb(operator, relation.alias, inner)
                    order = ProbeOrder(
                        query=self.query.name, units=tuple(map(self._in_from_order, units)), fills=not is_root
                    )
                    yield (None if is_root else operator), order

    def are_probed(self, inner: Inner) -> bool:
        """Tell whether every inner operator has something arriving beside it."""
        return all(self.is_probed(operator, inner) for operator in inner)

    def is_probed(self, operator: Aliases, inner: Inner) -> bool:
        """Tell whether anything arrives beside an inner operator, which then probes its store."""
        above = min((other for other in inner if operator < other), key=len, default=self.everything)
        return self.arrives_beside(operator, above)

    def arrives_beside(self, child: Aliases, operator: Aliases) -> bool:
        """Tell whether anything arrives in an operator beside one of its children."""
        return bool((operator - child) & self._streams)

    def children(self, operator: Aliases, inner: Inner) -> tuple[Aliases, ...]:
        """Return the children of an operator in canonical order."""
        below = [other for other in inner if other < operator]
        largest = [other for other in below if not any(other < another for another in below)]
        alone = operator.difference(*largest)
        return tuple(sorted((*largest, *(frozenset((alias,)) for alias in alone)), key=self._place))

    def members(self, operator: Aliases) -> list[str]:
        """Return the relations of an operator in canonical order."""
        return sorted(operator, key=self.query.canonical)

    def ordered(self, inner: Inner) -> list[Aliases]:
        """Return operators, small ones first, in an order free of aliases: sums and ties must not hang on hashes."""
        return sorted(inner, key=lambda operator: (len(operator), *self._place(operator)))

    def _climb(self, operator: Aliases, start: str, inner: Inner) -> tuple[Aliases, ...]:
        """Return what arrivals of a relation probe on their way up to an operator, the relation itself first."""
        children = self.children(operator, inner)
        child = next(each for each in children if start in each)
        below = (child,) if len(child) == 1 else self._climb(child, start, inner)
        return (*below, *self._siblings(child, children))

    def _siblings(self, child: Aliases, children: tuple[Aliases, ...]) -> tuple[Aliases, ...]:
        """Return the greedy order (002, fig. 4) in which what `child` made probes the others."""
        known = (child, children)
        if known not in self._orders:
            units: list[Aliases] = []
            joined = child
            while len(units) < len(children) - 1:
                near = self._near(joined, [each for each in children if not each <= joined])
                costs = [self._greedy_cost(joined, unit, children) for unit in near]
                units.append(near[costs.index(min(costs))])
                joined |= units[-1]
            self._orders[known] = tuple(units)
        return self._orders[known]

    def _greedy_cost(self, joined: Aliases, unit: Aliases, children: tuple[Aliases, ...]) -> float:
        after = joined | unit
        following = self._near(after, [each for each in children if not each <= after])
        least = min((self._sizes.partitions(later) for later in following), default=0)
        return self._sizes.size(joined) * self._sizes.partitions(unit) + self._sizes.size(after) * least

    def _near(self, joined: Aliases, remaining: list[Aliases]) -> list[Aliases]:
        """Return the units a predicate connects with what is joined; all that remain if there are none."""
        reached = set(self._graph.neighbours_of(joined))
        return [unit for unit in remaining if unit & reached] or remaining

    def _operator_cost(self, children: tuple[Aliases, ...]) -> float:
        probes: dict[str | Aliases, _Probes] = {}
        copies: dict[str | Aliases, int] = {}
        for child in children:
            pace = sum(self._sizes.pace(alias) for alias in self.members(child & self._streams))
            joined = child
            for unit in self._siblings(child, children) if pace else ():
                store = self._store(unit)
                tuples = arriving(self._sizes.size(joined), len(joined & self._streams)) * pace
                probes.setdefault(store, []).append((tuples, self._known_keys(joined, unit)))
                copies[store] = self._sizes.partitions(unit)
                joined |= unit
        return sum(_sent(probing, copies[store]) for store, probing in probes.items())

    def _store(self, unit: Aliases) -> str | Aliases:
        """Return what tells the store of a unit from others: all occurrences of a source have the same."""
        return self.query.relation(min(unit)).source if len(unit) == 1 else unit

    def _known_keys(self, joined: Aliases, unit: Aliases) -> frozenset[_Key]:
        """Return the keys of a unit's store that could tell what has been joined which partition to go to."""
        return frozenset(
            (self.query.relation(alias).source if len(unit) == 1 else alias, key)
            for alias in unit
            for known in joined
            for key in self._pair_keys(known, alias)
        )

    def _pair_keys(self, known: str, alias: str) -> frozenset[str]:
        pair = (known, alias)
        if pair not in self._keys:
            keys = () if self._sizes.is_at_random(alias) else key_pairs(between(self.query, known, alias))
            self._keys[pair] = frozenset(key.name for _, key in keys)
        return self._keys[pair]

    def _place(self, unit: Aliases) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(map(self.query.canonical, unit)))

    def _in_from_order(self, unit: Aliases) -> tuple[str, ...]:
        return tuple(alias for alias in self._graph.aliases if alias in unit)


def _sent(probes: _Probes, partitions: int) -> float:
    """Return the probe tuples a store gets if it is partitioned, like any, by the key that tells most of them where to
    go; the others go to all partitions.
    """
    keys = frozenset[_Key]().union(*(known for _, known in probes))
    told = max((sum(tuples for tuples, known in probes if key in known) for key in keys), default=0.0)
    return sum(tuples for tuples, _ in probes) * partitions - told * (partitions - 1)


def are_compatible(one: Aliases, other: Aliases) -> bool:
    """Tell whether two operators can stand in one tree."""
    return one <= other or other <= one or not one & other
