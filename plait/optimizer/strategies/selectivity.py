"""Most selective predicate first, however large the relation behind it.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("selectivity", ("r", 10_000.0), ("s", 100.0), ("t", 100.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b")
>>> probe_orders(selectivity((query,), example_statistics(options), options))
('q: r s t', 'q: s r t', 'q: t s r')
"""

from __future__ import annotations

from math import prod

from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import choose_orders
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def selectivity(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with probe orders that follow the most selective predicate."""
    return build(queries, choose_orders(queries, statistics, options, most_selective), statistics, options)


def most_selective(sizes: JoinSizes, joined: tuple[str, ...], candidates: tuple[str, ...]) -> str:
    """Choose the candidate whose predicates pass the smallest share; ties: the smallest result, then canonical.

    Its predicates are all equalities with what has been joined, and its own selection.
    """

    def passing(alias: str) -> float:
        return sizes.passing(alias) * prod(sizes.selectivity(other, alias) for other in joined)

    return min(candidates, key=lambda alias: (passing(alias), sizes.size(frozenset((*joined, alias)))))
