"""Join trees of any shape for any join graph, under a storage budget.

The tree of least probe cost is found for certain if operators can be split in at most 5000 ways altogether
(`plait.optimizer.join_trees.best_tree`). Every graph of seven relations has fewer, and so have chains and stars of
eight, the most a query may have. Beyond that the tree grows from the flat one: the store is added, taken away or
exchanged that lowers the probe cost most, until nothing does.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("bushy", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
>>> [store.id.split("~")[0] for store in bushy((query,), example_statistics(options), options).stores]
['r', 's', 's⋈t', 's⋈t⋈u', 't', 'u']
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.optimizer.join_trees.best_tree import best_tree, splits_of
from plait.optimizer.join_trees.join_tree import FLAT, Aliases, Inner, JoinTrees, are_compatible
from plait.optimizer.join_trees.plan_trees import RemainingBudget, plan_trees
from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics

MOST_SPLITS = 5000


def bushy(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan each query as the tree of least probe cost that fits the budget."""
    return plan_trees(queries, statistics, options, cheapest_tree)


def cheapest_tree(trees: JoinTrees, remaining: RemainingBudget, most_splits: int = MOST_SPLITS) -> Inner:
    """Return the cheapest tree that fits; ties: the one that keeps less. Exact up to `most_splits`."""
    splits = splits_of(trees, most_splits)
    return grown_tree(trees, remaining) if splits is None else best_tree(trees, remaining, splits)


def grown_tree(trees: JoinTrees, remaining: RemainingBudget) -> Inner:
    """Return a tree that fits and than which no neighbouring one is cheaper, found from the flat one."""

    def cost(inner: Inner) -> tuple[float, float]:
        return trees.probe_cost(inner), remaining.size_of_all(trees, inner)

    inner = FLAT
    while True:
        best = min((inner, *_neighbours(trees, remaining, inner)), key=cost)
        if best == inner:
            return inner
        inner = best


def _neighbours(trees: JoinTrees, remaining: RemainingBudget, inner: Inner) -> Iterator[Inner]:
    """Yield the trees with one store more or less, or with one exchanged for another."""
    smaller = [inner - {operator} for operator in trees.ordered(inner)]
    yield from filter(trees.are_probed, smaller)
    for base in (inner, *smaller):
        for candidate in trees.candidates:
            larger = base | {candidate}
            is_new = candidate not in inner and _may_join(candidate, base) and remaining.holds(trees, larger)
            if is_new and trees.are_probed(larger):
                yield larger


def _may_join(candidate: Aliases, inner: Inner) -> bool:
    return all(are_compatible(candidate, operator) for operator in inner)
