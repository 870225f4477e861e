"""The order the user wrote: probe the relations in FROM order, connected ones first.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("fixed")
>>> query = example_query("q", "t.b = s.b", "s.a = r.a")
>>> probe_orders(fixed((query,), example_statistics(options), options))
('q: r s t', 'q: s t r', 'q: t s r')
"""

from __future__ import annotations

from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import choose_orders
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def fixed(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with probe orders in FROM order, made connected."""
    return build(queries, choose_orders(queries, statistics, options, next_in_from), statistics, options)


def next_in_from(sizes: JoinSizes, joined: tuple[str, ...], candidates: tuple[str, ...]) -> str:
    """Choose the candidate that comes first in FROM."""
    return next(relation.alias for relation in sizes.query.relations if relation.alias in candidates)
