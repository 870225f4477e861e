"""The cost model of papers 000 and 002: sizes of joins, probe tuples, stored tuples.

Two departures. Paper 002 prints 1/j with a shifted index; j is the number of relations joined so far. And of these
only streams count: the factor 1/j is the chance that the starting tuple is the last to arrive, and the tuples of a
table have all arrived before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import prod

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.join_graph import canonical
from plait.optimizer.options import PlanOptions
from plait.plan.conditions import between
from plait.plan.model import ProbeTree
from plait.plan.relations import selection_of, window_of
from plait.query.model import Query


def join_size(rows: Iterable[float], selectivities: Iterable[float]) -> float:
    """Return |⋈ X| = Π |R| · Π f."""
    return prod(rows) * prod(selectivities)


def arriving(size: float, streams: int) -> float:
    """Return the tuples of a join of this size, over so many streams, that one probe path holds: |⋈ X| / j."""
    return size / streams


def step_cost(size: float, *, streams: int, copies: int) -> float:
    """Return the probe tuples of a step from a join of this size: |⋈ X| / j · χ.

    `copies` is χ: 1 when the tuple knows the target's partition, otherwise the target's parallelism.
    """
    return arriving(size, streams) * copies


def probe_cost(trees: Iterable[ProbeTree]) -> float:
    """Return the probe tuples of all distinct steps: each step stands once in its tree, however many queries use it."""
    return sum(step.estimate.probe_tuples or 0.0 for tree in trees for _, step in tree.walk())


def storage_cost(inputs: Iterable[float], intermediates: Iterable[float] = ()) -> float:
    """Return the stored tuples: Σ |R| over input stores + Σ |⋈ X| over intermediate stores."""
    return sum(inputs) + sum(intermediates)


class JoinSizes:
    """Sizes of all joins of one query's relations, each computed once."""

    def __init__(self, query: Query, cardinality: Cardinality, options: PlanOptions) -> None:
        self.query, self._options = query, options
        self._parallelism = {relation.alias: options.parallelism_of(relation.source) for relation in query.relations}
        self._share = {
            relation.alias: cardinality.share(relation.source, selection_of(relation)) for relation in query.relations
        }
        extents = {
            relation.alias: Extent(source=relation.source, is_table=relation.is_table, window_us=window_of(relation))
            for relation in query.relations
        }
        self._pace = {alias: cardinality.pace(extent) for alias, extent in extents.items()}
        self._rows = {alias: cardinality.rows(extent) * self._share[alias] for alias, extent in extents.items()}
        self._selectivity = {
            frozenset((left, right)): cardinality.between(extents[left], extents[right], between(query, left, right))
            for left, right in combinations(extents, 2)
        }
        self._sizes: dict[frozenset[str], float] = {}

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

    def share(self, alias: str) -> float:
        """Return the share of the relation's rows that satisfy its selection."""
        return self._share[alias]

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
        if aliases not in self._sizes:
            # Multiplied in an order free of aliases, so that renaming a relation cannot tip a tie by rounding.
            ordered = sorted(aliases, key=lambda alias: canonical(self.query, alias))
            self._sizes[aliases] = join_size(
                (self.rows(alias) for alias in ordered),
                (self.selectivity(left, right) for left, right in combinations(ordered, 2)),
            )
        return self._sizes[aliases]
