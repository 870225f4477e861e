"""The baseline of trivial sharing (paper 000): each query optimized alone, equal steps run once.

That is what greedy orders give once `build` has merged them. It has its own name, because greedy is a way to find probe
orders and this is the yardstick for strategies that choose orders so as to share more.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("shared")
>>> queries = (example_query("p", "r.a = s.a", "s.b = t.b"), example_query("q", "r.a = s.a", "s.c = u.c"))
>>> plan = shared(queries, example_statistics(options), options)
>>> [step.edge for tree in plan.trees if tree.start.store == "r" for _, step in tree.walk()]
['r→s', 'r→s→t', 'r→s→u']
"""

from __future__ import annotations

from plait.optimizer.options import PlanOptions
from plait.optimizer.strategies.greedy import greedy
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def shared(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan every query alone and run equal steps once."""
    return greedy(queries, statistics, options)
