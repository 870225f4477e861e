"""Probe orders, intermediate stores and partitionings for all queries at once (paper 000, section V), with HiGHS.

Queries that differ in selections or windows share the steps of covering queries where that pays: such steps are shared
by more queries but carry more tuples, and what comes of that depends on how much selections and windows overlap, and on
the rest of the joins. It is chosen source by source, judged by a price that is quick to compute.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("ilp")
>>> queries = (example_query("p", "r.a = s.a", "s.b = t.b"), example_query("q", "s.b = t.b", "t.c = u.c"))
>>> plan = ilp(queries, example_statistics(options), options)
>>> plan.solution.objective, plan.solution.solver, [store.id.split("~")[0] for store in plan.stores]
(700.0, 'local-search', ['r', 's', 's⋈t', 't', 'u'])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.covering import cover
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.plan.relations import selection_of, window_of
from plait.query.model import Query
from plait.stats.model import Statistics


def ilp(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with the cheapest orders that could be found for all queries together."""
    # Imported here because the solver and NumPy take longer to load than most plans to make.
    from plait.optimizer.multi_query import decide, quick_cost

    covering = choose_covering(queries, lambda covered: quick_cost(covered, statistics, options))
    decision = decide(covering, statistics, options)
    made = build(queries, decision.orders, statistics, options, covering=covering)
    return replace(made, solution=decision.solution)


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

    @cache
    def priced(covered: frozenset[str]) -> float:
        return price(covering(queries, covered))

    grown: frozenset[str] = frozenset()
    for source in sources:
        grown = min((grown, grown | {source}), key=priced)
    shrunk = frozenset(sources)
    for source in sources:
        shrunk = min((shrunk, shrunk - {source}), key=priced)
    return covering(queries, min((frozenset[str](), grown, shrunk), key=priced))


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
