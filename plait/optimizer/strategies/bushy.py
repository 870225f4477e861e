"""Join trees of any shape for any join graph, under a storage budget.

All trees are tried as long as there are at most 500 of them: every graph of five relations has fewer, and a chain of
six. Beyond that the tree grows from the flat one, step by step: the store is added, or taken away, that lowers the
probe cost most.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("bushy", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
>>> [store.id.split("~")[0] for store in bushy((query,), example_statistics(options), options).stores]
['r', 'r⋈s⋈t', 's', 's⋈t', 't', 'u']
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from plait.optimizer.join_trees import FLAT, Aliases, Inner, JoinTrees, are_compatible
from plait.optimizer.options import PlanOptions
from plait.optimizer.tree_plans import Room, plan_trees
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics

MOST_TREES = 500


def bushy(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Plan each query as the tree of least probe cost that fits the budget."""
    return plan_trees(queries, statistics, options, cheapest_tree)


def cheapest_tree(trees: JoinTrees, room: Room, most_trees: int = MOST_TREES) -> Inner:
    """Return the cheapest tree that fits; ties: the one that keeps less. Exact if there are at most `most_trees`."""

    def cost(inner: Inner) -> tuple[float, float]:
        return trees.probe_cost(inner), sum(room.size(trees, operator) for operator in trees.ordered(inner))

    found = list(islice(all_trees(trees, room), most_trees + 1))
    if len(found) <= most_trees:
        return min(found, key=cost)
    inner = FLAT
    while True:
        best = min((inner, *_neighbours(trees, room, inner)), key=cost)
        if best == inner:
            return inner
        inner = best


def all_trees(trees: JoinTrees, room: Room) -> Iterator[Inner]:
    """Yield every tree that fits and whose stores are all probed, the flat one first."""
    candidates = trees.candidates

    def grown(inner: Inner, first: int) -> Iterator[Inner]:
        if trees.are_probed(inner):
            yield inner
        for place in range(first, len(candidates)):
            larger = inner | {candidates[place]}
            if _may_join(candidates[place], inner) and room.holds(trees, larger):
                yield from grown(larger, place + 1)

    return grown(FLAT, 0)


def _neighbours(trees: JoinTrees, room: Room, inner: Inner) -> Iterator[Inner]:
    """Yield the trees with one store more or less, or with one exchanged for another."""
    smaller = [inner - {operator} for operator in trees.ordered(inner)]
    yield from filter(trees.are_probed, smaller)
    for base in (inner, *smaller):
        for candidate in trees.candidates:
            larger = base | {candidate}
            is_new = candidate not in inner and _may_join(candidate, base) and room.holds(trees, larger)
            if is_new and trees.are_probed(larger):
                yield larger


def _may_join(candidate: Aliases, inner: Inner) -> bool:
    return all(are_compatible(candidate, operator) for operator in inner)
