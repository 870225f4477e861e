"""Probe orders of least work, look-ups and matches both counted (paper 003, dpPick), with the stores that pay.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics, probe_orders
>>> options = example_options("dppick", ("r", 100_000.0), ("s", 100.0), ("t", 100.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b")
>>> plan = dppick((query,), example_statistics(options), options)
>>> probe_orders(plan), [store.id.split("~")[0] for store in plan.stores]
(('q: r s t', 'q: s t r', 'q: t s r'), ['r', 's', 's⋈t', 't'])
"""

from __future__ import annotations

import math
from dataclasses import replace

from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import StorageBudget, storage_budget
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.goals import Reached
from plait.optimizer.pick.plan_cost import plan_cost
from plait.optimizer.pick.query_costs import Partitionings, costs_together
from plait.optimizer.pick.stores import choose_stores
from plait.optimizer.probe_orders import ProbeOrder
from plait.optimizer.strategies.greedy import greedy
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics

_ROUNDS = 3
"""How often orders are chosen anew for the partitionings that suit the orders before."""


def dppick(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan with the cheapest orders found for all queries together.

    Partitionings follow from orders, and what orders cost from partitionings: so the plan is made again for the
    partitionings of the one before, as long as that is cheaper. Of stores of one partition nothing of that is asked,
    nor of queries of two relations, which can be joined in one order only.
    """
    best = _planned(queries, statistics, options, None)
    has_one_order = all(len(query.relations) <= 2 for query in queries)
    if has_one_order or all(store.parallelism == 1 for store in best.stores):
        return best

    def cost(plan: Plan) -> float:
        return plan_cost(plan, statistics, options.costs)

    best = min(best, greedy(queries, statistics, options), key=cost)
    for _ in range(_ROUNDS):
        partitionings = {store.id: store.partition_by for store in best.stores}
        other = _planned(queries, statistics, options, partitionings)
        if not cost(other) < cost(best):
            break
        best = other
    return best


def _planned(
    queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions, partitionings: Partitionings | None
) -> Plan:
    cardinality = Cardinality(statistics=statistics)
    costs = costs_together(queries, cardinality, options, partitionings)
    budget = _bounded(storage_budget(queries, cardinality, options))
    chosen = choose_stores(costs, budget, options.costs, statistics.batch_s)
    return build(queries, map(_as_order, chosen.orders), statistics, options)


def _bounded(budget: StorageBudget) -> StorageBudget:
    """Return the budget; without one, intermediate stores are to keep no more rows than the inputs."""
    return budget if budget.left < math.inf else replace(budget, left=budget.inputs)


def _as_order(reached: Reached) -> ProbeOrder:
    costs, units = reached.goal.costs, (reached.goal.start, *reached.units)
    return ProbeOrder(query=costs.query.name, units=tuple(map(costs.among, units)), fills=reached.goal.fills)
