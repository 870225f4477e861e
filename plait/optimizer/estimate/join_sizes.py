"""How many rows a join has: |⋈ X| = Π |R| · Π f, over the relations in X and the pairs of them.

The same numbers are asked for in three ways: by the aliases of a query while a strategy looks for orders (`JoinSizes`),
by the members of a plan once it has one (`MemberSizes`), and by what queries have in common (`multi_query`). All have
`SubsetSizes` multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from plait.errors import InvalidPlanError
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.options import PlanOptions
from plait.plan.conditions import Conditions, between, conditions, in_order, joining
from plait.plan.model import Intermediate, KeyColumn, Member, Place, ProbeTree, Step, Store
from plait.plan.relations import selection_of, window_of
from plait.query.masks import Mask, positions
from plait.query.model import Query
from plait.query.predicates import Predicate, operands_of


def join_size(rows: Iterable[float], selectivities: Iterable[float]) -> float:
    """Return |⋈ X| = Π |R| · Π f."""
    return prod(rows) * prod(selectivities)


class SubsetSizes:
    """|⋈ X| for sets of some relations, each computed once.

    Relations are known by position, in canonical order; `selectivities` are those of pairs, 1 where there is none.
    Factors are multiplied in the order of positions, which has no aliases in it: else renaming a relation could tip a
    tie by rounding, and a set that two queries have in common could have two sizes.
    """

    def __init__(self, rows: Sequence[float], selectivities: Mapping[tuple[int, int], float]) -> None:
        self._rows = rows
        self._after: list[list[tuple[Mask, float]]] = [[] for _ in rows]
        for (left, right), selectivity in sorted(selectivities.items()):
            self._after[left].append((1 << right, selectivity))
        self._sizes: dict[Mask, float] = {}

    def size(self, mask: Mask) -> float:
        """Return |⋈ X|."""
        known = self._sizes.get(mask)
        if known is None:
            inside = positions(mask)
            known = self._sizes[mask] = join_size(
                (self._rows[position] for position in inside),
                (selectivity for left in inside for right, selectivity in self._after[left] if right & mask),
            )
        return known


class JoinSizes:
    """Sizes of all joins of one query's relations, by alias, and what else a strategy asks about them."""

    def __init__(self, query: Query, cardinality: Cardinality, options: PlanOptions) -> None:
        self.query, self._options = query, options
        self._parallelism = {relation.alias: options.parallelism_of(relation.source) for relation in query.relations}
        self._passing = {
            relation.alias: cardinality.selectivity(relation.source, selection_of(relation))
            for relation in query.relations
        }
        extents = {
            relation.alias: Extent(source=relation.source, is_table=relation.is_table, window_us=window_of(relation))
            for relation in query.relations
        }
        self._pace = {alias: cardinality.pace(extent) for alias, extent in extents.items()}
        self._rows = {alias: cardinality.rows(extent) * self._passing[alias] for alias, extent in extents.items()}
        self._selectivity = {
            frozenset((left, right)): cardinality.between(extents[left], extents[right], between(query, left, right))
            for left, right in combinations(extents, 2)
        }
        ordered = sorted(extents, key=query.canonical)
        self._bit = {alias: 1 << place for place, alias in enumerate(ordered)}
        self._sizes = SubsetSizes(
            [self._rows[alias] for alias in ordered],
            {
                (left, right): self.selectivity(ordered[left], ordered[right])
                for left, right in combinations(range(len(ordered)), 2)
            },
        )

    def parallelism(self, alias: str) -> int:
        """Return N(S) of the relation's store."""
        return self._parallelism[alias]

    def partitions(self, aliases: frozenset[str]) -> int:
        """Return N(S) of the store that keeps the join of some relations."""
        if len(aliases) == 1:
            return max(map(self.parallelism, aliases))
        sources = [self.query.relation(alias).source for alias in aliases]
        return self._options.partitions_of_join(sources, self.size(aliases))

    def is_at_random(self, alias: str) -> bool:
        """Return whether the relation's tuples are placed at random, so that no key tells where one is."""
        return self.query.relation(alias).source in self._options.at_random

    def passing(self, alias: str) -> float:
        """Return the selectivity of the relation's own selection."""
        return self._passing[alias]

    def rows(self, alias: str) -> float:
        """Return |R| after its selection."""
        return self._rows[alias]

    def pace(self, alias: str) -> float:
        """Return how many windows of the relation pass per second."""
        return self._pace[alias]

    def selectivity(self, left: str, right: str) -> float:
        """Return f(left, right), 1 if nothing connects them."""
        return self._selectivity[frozenset((left, right))]

    def size(self, aliases: frozenset[str]) -> float:
        """Return |⋈ X|."""
        return self._sizes.size(sum(self._bit[alias] for alias in aliases))


def extent_of(store: Store, window_us: int | None) -> Extent:
    """Return the extent of the store of a source."""
    if store.source is None:
        raise InvalidPlanError(f"store '{store.id}' is an intermediate result; expected the store of a source")
    return Extent(source=store.source, is_table=store.is_table, window_us=window_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSizes:
    """How many rows the members of a plan stand for, those of intermediate stores included."""

    stores: tuple[Store, ...]
    cardinality: Cardinality
    _by_id: Mapping[str, Store] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {store.id: store for store in self.stores})

    def store(self, store_id: str) -> Store:
        """Return the store with this id."""
        return self._by_id[store_id]

    def of(self, member: Member) -> Extent:
        """Return the extent of a relation."""
        return extent_of(self.store(member.store), member.window_us)

    def rows(self, member: Member) -> float:
        """Return |R| after its selection."""
        return self.cardinality.selected_rows(self.of(member), member.selection)

    def streams(self, members: Iterable[Member]) -> int:
        """Return how many of these relations are streams."""
        return sum(not self.store(member.store).is_table for member in members)

    def endless(self, members: Iterable[Member]) -> int:
        """Return how many of these relations are streams that are kept for ever."""
        return sum(member.window_us is None and not self.store(member.store).is_table for member in members)

    def selectivities(self, predicates: Conditions, members: Sequence[Member]) -> dict[tuple[int, int], float]:
        """Return the selectivity between each two of `members` that conditions (by place among them) compare."""
        pairs: dict[tuple[int, int], list[Predicate[Place[int]]]] = {}
        for predicate in predicates:
            left, right = sorted({place.at for place in operands_of(predicate)})
            pairs.setdefault((left, right), []).append(predicate)

        def key(place: Place[int]) -> KeyColumn:
            return self.store(members[place.at].store).key(place.name)

        return {
            (left, right): self.cardinality.between(
                self.of(members[left]), self.of(members[right]), in_order(joining(each, left, key) for each in parts)
            )
            for (left, right), parts in sorted(pairs.items(), key=lambda item: item[0])
        }

    def size(self, intermediate: Intermediate) -> float:
        """Return |⋈ parts|."""
        parts = intermediate.parts
        selectivities = self.selectivities(conditions(intermediate.predicates), parts)
        sizes = SubsetSizes([self.rows(part) for part in parts], selectivities)
        return sizes.size((1 << len(parts)) - 1)

    def added_rows(self, step: Step) -> float:
        """Return the rows of what a step probes."""
        intermediate = self.store(step.member.store).intermediate
        return self.rows(step.member) if intermediate is None else self.size(intermediate)


def arriving(size: float, streams: int) -> float:
    """Return the tuples of a join of this size, over so many streams, that one probe path holds: |⋈ X| / j.

    A step sends them χ times: once where the tuple knows the target's partition, else to each of its partitions.
    """
    return size / streams


def probe_cost(trees: Iterable[ProbeTree]) -> float:
    """Return the probe tuples of all distinct steps: each step stands once in its tree, however many queries use it."""
    return sum(step.estimate.probe_tuples or 0.0 for tree in trees for _, step in tree.walk())


def storage_cost(inputs: Iterable[float], intermediates: Iterable[float] = ()) -> float:
    """Return the stored tuples: Σ |R| over input stores + Σ |⋈ X| over intermediate stores."""
    return sum(inputs) + sum(intermediates)
