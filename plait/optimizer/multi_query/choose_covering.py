"""Choose which queries are joined as covering queries, source by source.

Steps of covering queries are shared by more queries but carry more tuples; whether that pays depends on how much the
selections and windows overlap, and on the rest of the joins. The choice is made source by source, judged by a price
that is quick to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from plait.optimizer.assemble.covering import cover
from plait.plan.relations import selection_of, window_of
from plait.query.model import Query

Price: TypeAlias = Callable[[tuple[Query, ...]], float]
"""What it costs to join these queries in the place of those of the same names."""


def choose_covering(queries: tuple[Query, ...], price: Price) -> tuple[Query, ...]:
    """Return the queries, covering ones for those where that lowers the price.

    Tried are: every source on its own on top of those that paid before; and all sources at once, less those that do
    better without. Selections on two sources of one join often pay only together, which the second way finds.
    """
    sources = differing_sources(queries)
    if not sources:
        return queries
    prices = _Prices(queries, price)
    grown: frozenset[str] = frozenset()
    for source in sources:
        grown = min((grown, grown | {source}), key=prices.of)
    shrunk = frozenset(sources)
    for source in sources:
        shrunk = min((shrunk, shrunk - {source}), key=prices.of)
    return covering(queries, min((frozenset[str](), grown, shrunk), key=prices.of))


def differing_sources(queries: tuple[Query, ...]) -> tuple[str, ...]:
    """Return the sources, by name, that queries take with different selections or windows."""
    variants: dict[str, set[tuple[str, int | None]]] = {}
    for query in queries:
        for relation in query.relations:
            variant = (selection_of(relation).sql, window_of(relation))
            variants.setdefault(relation.source, set()).add(variant)
    return tuple(sorted(source for source, seen in variants.items() if len(seen) > 1))


def covering(queries: tuple[Query, ...], sources: frozenset[str]) -> tuple[Query, ...]:
    """Return the queries with all relations over each of `sources` taking what any of them takes."""
    return cover(queries, lambda query, relation: relation.source if relation.source in sources else None)


class _Prices:
    """Prices of sets of sources, each computed once."""

    def __init__(self, queries: tuple[Query, ...], price: Price) -> None:
        self._queries, self._price = queries, price
        self._known: dict[frozenset[str], float] = {}

    def of(self, sources: frozenset[str]) -> float:
        if sources not in self._known:
            self._known[sources] = self._price(covering(self._queries, sources))
        return self._known[sources]
