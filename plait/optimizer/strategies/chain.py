"""Join trees for linear join graphs under a storage budget (paper 002, fig. 7).

Top-down: from the flat tree on, the run of neighbours that is cheapest to keep gets a store, as long as the budget
allows. The paper materializes whatever fits. A further store mostly saves probes but need not, so here the cheapest of
all trees on the way is taken; a larger budget goes the same way further and so never costs more.

>>> from dataclasses import replace
>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
>>> for rows in (2_020, 2_030, 2_040):
...     options = example_options("chain", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
...     options = replace(options, storage_rows=rows)
...     plan = chain((query,), example_statistics(options), options)
...     print(rows, [store.id.split("~")[0] for store in plan.stores if store.intermediate])
2020 []
2030 ['s⋈t']
2040 ['r⋈s⋈t', 's⋈t']
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.optimizer.join_trees.join_tree import FLAT, Aliases, Inner, JoinTrees
from plait.optimizer.join_trees.plan_trees import RemainingBudget, plan_trees
from plait.optimizer.options import PlanOptions
from plait.optimizer.strategies.bushy import cheapest_tree
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics


def chain(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan each query whose join graph is a chain top-down under the budget, any other as `bushy` does."""
    return plan_trees(
        queries,
        statistics,
        options,
        lambda trees, remaining: (
            cheapest_on_the_way(trees, remaining) if trees.shape == "chain" else cheapest_tree(trees, remaining)
        ),
    )


def cheapest_on_the_way(trees: JoinTrees, remaining: RemainingBudget) -> Inner:
    """Return the tree of least probe cost among those that the algorithm passes; ties: the one with fewer stores."""
    return min(materialized(trees, remaining), key=lambda inner: (trees.probe_cost(inner), len(inner)))


def materialized(trees: JoinTrees, remaining: RemainingBudget) -> Iterator[Inner]:
    """Yield the flat tree, then each tree with one more run of neighbours kept, while they fit (fig. 7)."""
    inner = FLAT
    while True:
        yield inner
        runs = [run for run in neighbouring_runs(trees, inner) if trees.are_probed(inner | {run})]
        if not runs:
            return
        cheapest = min(runs, key=lambda run: remaining.size(trees, run))
        if not remaining.holds(trees, inner | {cheapest}):
            return
        inner |= {cheapest}


def neighbouring_runs(trees: JoinTrees, inner: Inner) -> Iterator[Aliases]:
    """Yield what may become an operator: some but not all neighbouring children of one, with a stream among them."""
    order = trees.chain
    allowed = set(trees.candidates)
    for operator in trees.ordered(inner | {frozenset(order)}):
        children = sorted(trees.children(operator, inner), key=lambda child: min(order.index(alias) for alias in child))
        for first in range(len(children)):
            for last in range(first + 1, len(children)):
                run = frozenset().union(*children[first : last + 1])
                if run != operator and run in allowed:
                    yield run
