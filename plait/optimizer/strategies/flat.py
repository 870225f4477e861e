"""Iterative probing of all relations, no intermediate store (paper 002): the orders are those of `greedy`.

Section IV.B orders the probes of one operator by the rule that `greedy` follows for whole queries, and a flat tree is
one operator. The name is here for comparison with the other trees.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("flat", ("r", 10_000.0), ("s", 100.0), ("t", 100.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b")
>>> probe_orders(flat((query,), example_statistics(options), options))
('q: r s t', 'q: s t r', 'q: t s r')
"""

from __future__ import annotations

from plait.optimizer.join_trees.join_tree import FLAT
from plait.optimizer.join_trees.plan_trees import plan_trees
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def flat(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan each query as one operator."""
    return plan_trees(queries, statistics, options, lambda trees, remaining: FLAT)
