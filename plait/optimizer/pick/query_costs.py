"""What the steps of one query cost, by sets of its relations as bit masks.

How many tuples go on is |⋈ X ∪ next| / |⋈ X| (`set_sizes`), as of now, with the stores as they are, and by the relation
that began where that matters: without the share 1/j of a history that began with nothing, by which the papers' costs
are those of a whole run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations

from plait.optimizer.assemble.intermediate_stores import Subset, member_of
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.best_order import StepCost, Units
from plait.optimizer.pick.set_sizes import MOST_SETS, SetSizes
from plait.optimizer.pick.step_costs import Joined, Probe, step_cost
from plait.optimizer.probe_orders import cheapest_extension, extended
from plait.plan.conditions import between, conditions, key_pairs, placed
from plait.plan.model import part_column
from plait.plan.relations import one_per_source, window_of
from plait.plan.step_names import joined_name
from plait.query.masks import Mask, connected_levels, has_more_sets, positions
from plait.query.model import Query

Partitionings = Mapping[str, tuple[str, ...]]
"""What stores are partitioned by, by id."""

Contents = dict[Hashable, int]
"""Numbers of relations and of what joins two of them, by content: those of one planning, whichever query has them."""


def costs_together(
    queries: Iterable[Query],
    cardinality: Cardinality,
    options: PlanOptions,
    partitionings: Partitionings | None = None,
) -> list[QueryCosts]:
    """Return the costs of queries that are planned together, by name: what they have in common is known for that."""
    contents: Contents = {}
    ordered = sorted(queries, key=lambda query: query.name)
    return [QueryCosts(query, cardinality, options, partitionings, contents) for query in ordered]


class QueryCosts:
    """The steps of one query, each computed once. Relations are at their canonical positions, bit i is the i-th.

    `kept`: the intermediate stores that may be probed, by what they join. `partitionings`: of a plan made before; where
    a store is unknown, a tuple that knows any of its keys is taken to know the partition. `contents`: shared by all
    queries that are planned together. `is_wide`: there are too many sets to look at them all (`MOST_SETS`).
    """

    def __init__(
        self,
        query: Query,
        cardinality: Cardinality,
        options: PlanOptions,
        partitionings: Partitionings | None = None,
        contents: Contents | None = None,
    ) -> None:
        self.query, self._cardinality, self._options = query, cardinality, options
        self.aliases = tuple(sorted((each.alias for each in query.relations), key=query.canonical))
        self.everything: Mask = (1 << len(self.aliases)) - 1
        self.sizes = JoinSizes(query, cardinality, options)
        self.kept: frozenset[Mask] = frozenset()
        self._partitionings = partitionings or {}
        graph = query.graph
        self._near = [self.mask(*graph.neighbours(alias)) for alias in self.aliases]
        self.is_wide = has_more_sets(self._near, MOST_SETS)
        self._pairs = {
            (left, right): between(query, self.aliases[left], self.aliases[right])
            for left in range(len(self.aliases))
            for right in range(len(self.aliases))
            if left != right
        }
        members = [member_of(query, alias, one_per_source) for alias in self.aliases]
        self._set_sizes = SetSizes(
            members,
            [self._extent(position) for position in range(len(self.aliases))],
            [self._rank(position, each.ordinal) for position, each in enumerate(members)],
            {pair: on for pair, on in self._pairs.items() if pair[0] < pair[1]},
            cardinality,
        )
        self._joins_itself = len({relation.source for relation in query.relations}) < len(query.relations)
        self._origins = self._set_sizes.origins
        self._numbers: Contents = {} if contents is None else contents
        self._contents: dict[tuple[Mask, Mask], Hashable] = {}
        self._members: dict[tuple[int, Mask], int] = {}
        self._steps: dict[tuple[Mask, Mask, Mask], StepCost] = {}

    @property
    def streams(self) -> Mask:
        """The relations whose tuples arrive."""
        return self.mask(*(each.alias for each in self.query.relations if not each.is_table))

    def mask(self, *aliases: str) -> Mask:
        """Return relations as a set."""
        return sum(1 << self.aliases.index(alias) for alias in aliases)

    def among(self, mask: Mask) -> tuple[str, ...]:
        """Return the relations of a set in the order of FROM."""
        inside = {self.aliases[position] for position in positions(mask)}
        return tuple(relation.alias for relation in self.query.relations if relation.alias in inside)

    def connected(self) -> tuple[Mask, ...]:
        """Return the sets of relations that may have an intermediate store: connected, with a stream, not all; none if
        the query is wide.
        """
        if self.is_wide:
            return ()
        return tuple(
            mask
            for level in connected_levels(self._near)
            for mask in sorted(level)
            if mask & (mask - 1) and mask != self.everything and mask & self.streams
        )

    def following(self, joined: Mask, target: Mask) -> Units:
        """Return what may be probed next: relations, connected ones if there are any, and stores of such."""
        remaining = target & ~joined
        reached = 0
        for position in positions(joined):
            reached |= self._near[position]
        singles = reached & remaining or remaining
        units = [1 << position for position in positions(singles)]
        units += [mask for mask in sorted(self.kept) if mask & remaining == mask != target and mask & singles]
        return tuple(units)

    def step(self, joined: Mask, unit: Mask, start: Mask = 0) -> StepCost:
        """Return what one tuple costs that probes `unit`; `start`: the relation it began with, where that matters."""
        known = self._steps.get((joined, unit, start))
        if known is None:
            known = self._steps[joined, unit, start] = self._cost(joined, unit, start)
        return known

    def origin(self, start: Mask) -> Mask:
        """Return the relation where it matters that a tuple began with it, else 0."""
        return start & self._origins

    def name(self, joined: Mask, target: Mask) -> str:
        """Return the name of a join by content, occurrences of a source counted among those in `target`: what fills an
        intermediate store counts them anew.
        """
        among = target if self._joins_itself else self.everything
        inside = positions(joined)
        aliases = self.among(among)
        conditions_on = conditions(
            predicate
            for (left, one), (right, other) in combinations(enumerate(inside), 2)
            for predicate in placed(self._pairs[one, other], left, right)
        )
        members = [member_of(self.query, self.aliases[position], one_per_source, among=aliases) for position in inside]
        return joined_name(members, conditions_on)

    def content(self, joined: Mask, target: Mask) -> Hashable:
        """Return what tells a join from others by content, as `name` does, without spelling it out."""
        among = target if self._joins_itself else self.everything
        known = self._contents.get((joined, among))
        if known is None:
            inside = [(self._member_number(position, among), position) for position in positions(joined)]
            pairs = [
                self._number((one, other, self._pairs[left, right]))
                for (one, left), (other, right) in combinations(sorted(inside), 2)
                if self._pairs[left, right]
            ]
            known = self._contents[joined, among] = (
                tuple(sorted(each for each, _ in inside)),
                tuple(sorted(pairs)),
            )
        return known

    def _member_number(self, position: int, among: Mask) -> int:
        known = self._members.get((position, among))
        if known is None:
            member = member_of(self.query, self.aliases[position], one_per_source, among=self.among(among))
            known = self._members[position, among] = self._number(member)
        return known

    def _number(self, content: Hashable) -> int:
        return self._numbers.setdefault(content, len(self._numbers))

    def store(self, mask: Mask) -> str:
        """Return the id of the store of what is joined here: of a source, or of an intermediate result."""
        if mask & (mask - 1):
            return Subset.of(self.query, self.among(mask), one_per_source).store
        return self.query.relation(self.aliases[mask.bit_length() - 1]).source

    def size(self, mask: Mask) -> float:
        """Return |⋈ X|."""
        return self._set_sizes.size(mask)

    def knows_size(self, mask: Mask) -> bool:
        """Tell whether the size is measured, or follows from rows and values that are known."""
        return self._set_sizes.knows(mask)

    def greedy(self, start: Mask) -> Units:
        """Return the order of strategy `greedy`."""
        (alias,) = self.among(start)
        return tuple(self.mask(each) for each in extended(self.sizes, alias, cheapest_extension)[1:])

    def rate(self, start: Mask) -> float:
        """Return how many tuples of a relation arrive per second."""
        (alias,) = self.among(start)
        return self.sizes.rows(alias) * self.sizes.pace(alias)

    def _cost(self, joined: Mask, unit: Mask, start: Mask) -> StepCost:
        joins = tuple(
            Joined(left=self._extent(left), right=self._extent(right), place=place, on=self._pairs[left, right])
            for place, right in enumerate(positions(unit))
            for left in positions(joined)
            if self._pairs[left, right]
        )
        probe = Probe(
            rows=self.size(unit),
            joins=joins,
            copies=self._copies(joined, unit),
            growth=self._set_sizes.growth(joined, unit, start),
        )
        return step_cost(probe, self._cardinality, self._options.costs)

    def _extent(self, position: int) -> Extent:
        relation = self.query.relation(self.aliases[position])
        return Extent(source=relation.source, is_table=relation.is_table, window_us=window_of(relation))

    def _rank(self, position: int, ordinal: int) -> tuple[int, int]:
        source = self.query.relation(self.aliases[position]).source
        return (self._options.ranks.index(source) if source in self._options.ranks else -1, ordinal)

    def _copies(self, joined: Mask, unit: Mask) -> int:
        partitions = self.sizes.partitions(frozenset(self.among(unit)))
        if partitions == 1:
            return 1
        known = set(self._known_keys(joined, unit))
        partitioned_by = self._partitionings.get(self.store(unit))
        if partitioned_by is None:
            return 1 if known else partitions
        return 1 if partitioned_by and known.issuperset(partitioned_by) else partitions

    def _known_keys(self, joined: Mask, unit: Mask) -> list[str]:
        """Return the keys of what is probed whose values a tuple has, as the store names them."""
        is_one = not unit & (unit - 1)
        parts = () if is_one else Subset.of(self.query, self.among(unit), one_per_source).aliases
        return [
            part_column(None if is_one else parts.index(self.aliases[right]), key.name)
            for right in positions(unit)
            if not self.sizes.is_at_random(self.aliases[right])
            for left in positions(joined)
            for _, key in key_pairs(self._pairs[left, right])
        ]


__all__ = ["Contents", "Partitionings", "QueryCosts", "costs_together"]
