"""Binary left-deep join trees (paper 002, shape V of fig. 6): every prefix of one join order has a store.

The order is the one whose prefixes have the fewest rows in all, found by dynamic programming over connected subsets.
The storage budget is not asked: it is what systems do that join two at a time, and here to be compared with.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("left-deep")
>>> query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
>>> [store.id.split("~")[0] for store in left_deep((query,), example_statistics(options), options).stores]
['r', 'r⋈s', 'r⋈s⋈t', 's', 't', 'u']
"""

from __future__ import annotations

from plait.optimizer.join_trees.join_tree import Aliases, Inner, JoinTrees
from plait.optimizer.join_trees.plan_trees import RemainingBudget, plan_trees
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def left_deep(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan each query as a left-deep tree."""
    return plan_trees(queries, statistics, options, smallest_prefixes)


def smallest_prefixes(trees: JoinTrees, remaining: RemainingBudget) -> Inner:
    """Return the prefixes of the join order that keeps the fewest rows; those that nothing would probe left out."""
    best: dict[Aliases, tuple[float, tuple[Aliases, ...]]] = {}
    for subset in trees.candidates:
        options = [
            best[subset - {alias}] for alias in trees.members(subset) if len(subset) > 2 and subset - {alias} in best
        ] or ([(0.0, ())] if len(subset) == 2 else [])
        if options:
            rows, before = min(options, key=lambda option: option[0])
            best[subset] = (rows + trees.rows(subset), (*before, subset))
    longest = max((len(kept) for _, kept in best.values()), default=0)
    complete = [kept for kept in best.values() if len(kept[1]) == longest]
    inner = frozenset(min(complete, key=lambda kept: kept[0])[1]) if complete else frozenset()
    return frozenset(operator for operator in inner if trees.is_probed(operator, inner))
