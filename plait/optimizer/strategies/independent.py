"""The baseline without sharing: every query has its own stores, so no step is ever shared.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("independent")
>>> queries = (example_query("p", "r.a = s.a"), example_query("q", "r.a = s.a"))
>>> [store.id for store in independent(queries, example_statistics(options), options).stores]
['p/r', 'p/s', 'q/r', 'q/s']
"""

from __future__ import annotations

from plait.optimizer.assemble.build import build
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import cheapest_extension, choose_orders
from plait.plan.model import Plan
from plait.plan.relations import one_per_query
from plait.query.model import Query
from plait.stats.model import Statistics


def independent(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan every query by itself, with greedy probe orders."""
    orders = choose_orders(queries, statistics, options, cheapest_extension)
    return build(queries, orders, statistics, options, one_per_query)
