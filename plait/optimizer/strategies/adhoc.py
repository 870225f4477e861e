"""Hundreds of queries that come and go (paper 004, section 4): groups that share enough rows are joined as one.

Which subquery of two relations is joined first, and for whom, is settled by its cost divided by the number of queries
that share it. There are no intermediate stores: queries that come and go would have to fill them.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("adhoc", ("r", 1000.0), ("s", 10.0), ("t", 100.0), ("u", 100.0))
>>> queries = (example_query("p", "r.a = s.a", "s.b = t.b"), example_query("q", "s.b = t.b", "t.c = u.c"))
>>> probe_orders(adhoc(queries, example_statistics(options), options))
('p: r s t', 'p: s t r', 'p: t s r', 'q: s t u', 'q: t s u', 'q: u t s')
"""

from __future__ import annotations

from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.grouping.choose import choose_groups
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def adhoc(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan all queries in groups."""
    ordered = tuple(sorted(queries, key=lambda query: query.name))
    chosen = choose_groups(ordered, Cardinality(statistics=statistics), options)
    return build(queries, chosen.orders, statistics, options, covering=chosen.joined)
