"""Probe orders, intermediate stores and partitionings for all queries at once (paper 000, section V), with HiGHS.

Queries that differ in selections or windows share the steps of covering queries where that pays.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("ilp")
>>> queries = (example_query("p", "r.a = s.a", "s.b = t.b"), example_query("q", "s.b = t.b", "t.c = u.c"))
>>> plan = ilp(queries, example_statistics(options), options)
>>> plan.solution.objective, plan.solution.solver, [store.id.split("~")[0] for store in plan.stores]
(700.0, 'local-search', ['r', 's', 's⋈t', 't', 'u'])
"""

from __future__ import annotations

from dataclasses import replace

from plait.optimizer.assemble.build import build
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def ilp(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with the cheapest orders that could be found for all queries together."""
    # Imported here because the solver and NumPy take longer to load than most plans to make.
    from plait.optimizer.multi_query import decide, quick_cost
    from plait.optimizer.multi_query.choose_covering import choose_covering

    covering = choose_covering(queries, lambda covered: quick_cost(covered, statistics, options))
    decision = decide(covering, statistics, options)
    made = build(queries, decision.orders, statistics, options, covering=covering)
    return replace(made, solution=decision.solution)
