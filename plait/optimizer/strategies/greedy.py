"""Greedy probe orders (paper 002, fig. 4): the smallest result next, looking one relation ahead.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("greedy", ("r", 10_000.0), ("s", 100.0), ("t", 100.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b")
>>> probe_orders(greedy((query,), example_statistics(options), options))
('q: r s t', 'q: s t r', 'q: t s r')
"""

from __future__ import annotations

from plait.optimizer.assemble.build import build
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import cheapest_extension, choose_orders
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def greedy(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with greedy probe orders, query by query; equal steps still run once."""
    return build(queries, choose_orders(queries, statistics, options, cheapest_extension), statistics, options)
