"""Join trees of any shape for any join graph, under a storage budget.

What an operator costs depends on its children alone, so trees are put together from the best trees of their parts: for
each join that may have a store, from the smallest on, over all ways to split it into children. Without a budget one
tree of each part is enough; with one it takes all that no other beats in both storage and probes. That is dynamic
programming in the number of splits, which for n relations is at most that of the set partitions of all their connected
subsets; with a budget each split is looked at once for every pair of unbeaten parts.

So the tree of least probe cost is found for certain if operators can be split in at most 5000 ways altogether. Every
graph of seven relations has fewer, and so have chains and stars of eight, the most a query may have. Beyond that the
tree grows from the flat one: the store is added, taken away or exchanged that lowers the probe cost most, until nothing
does.

>>> from plait.optimizer.examples import example_options, example_query, example_statistics
>>> options = example_options("bushy", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
>>> query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
>>> [store.id.split("~")[0] for store in bushy((query,), example_statistics(options), options).stores]
['r', 's', 's⋈t', 's⋈t⋈u', 't', 'u']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

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


Splits: TypeAlias = Mapping[Aliases, tuple[tuple[Aliases, ...], ...]]
"""Every way to split an operator into children, by operator; smaller operators first, the root last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is below one operator: the probe tuples it sends, what it takes of the budget, and the inner operators."""

    sent: float
    kept: float
    inner: Inner


_Choose: TypeAlias = Callable[[Iterable[_Part]], tuple[_Part, ...]]


def splits_of(trees: JoinTrees, most: int) -> Splits | None:
    """Return all splits of all operators that a tree may have; None if there are more than `most`."""
    candidates = trees.candidates
    by_operator: dict[Aliases, tuple[tuple[Aliases, ...], ...]] = {}
    for operator in (*candidates, trees.everything):
        blocks = [each for each in candidates if each < operator and trees.arrives_beside(each, operator)]
        splits = []
        for split in _splits(trees.members(operator), blocks):
            splits.append(split)
            most -= 1
            if most < 0:
                return None
        by_operator[operator] = tuple(splits)
    return by_operator


def best_tree(trees: JoinTrees, remaining: RemainingBudget, splits: Splits) -> Inner:
    """Return the cheapest tree that fits; ties: the one that keeps less.

    Two equal stores of one query, which joins a source with itself, are paid for twice while it searches.
    """
    cheapest = _search(trees, remaining, splits, math.inf, _cheapest)
    if cheapest.kept <= remaining.left:
        return cheapest.inner
    return _search(trees, remaining, splits, remaining.left, _unbeaten).inner


def _search(trees: JoinTrees, remaining: RemainingBudget, splits: Splits, left: float, choose: _Choose) -> _Part:
    best: dict[Aliases, tuple[_Part, ...]] = {}
    for operator, ways in splits.items():
        is_root = operator == trees.everything
        price = 0.0 if is_root else remaining.size(trees, operator)
        parts = choose(part for split in ways for part in _together(trees, split, best, left - price, choose))
        if not is_root:
            parts = tuple(
                _Part(sent=part.sent, kept=part.kept + price, inner=part.inner | {operator}) for part in parts
            )
        best[operator] = parts
    return _cheapest(best[trees.everything])[0]


def _together(
    trees: JoinTrees,
    split: tuple[Aliases, ...],
    best: Mapping[Aliases, tuple[_Part, ...]],
    left: float,
    choose: _Choose,
) -> tuple[_Part, ...]:
    """Return what is worth considering of all that can be below an operator with these children."""
    if left < 0:
        return ()
    parts: tuple[_Part, ...] = (_Part(sent=trees.operator_cost(split), kept=0.0, inner=FLAT),)
    for child in split:
        if len(child) > 1:
            parts = choose(
                _Part(sent=one.sent + two.sent, kept=one.kept + two.kept, inner=one.inner | two.inner)
                for one in parts
                for two in best[child]
                if one.kept + two.kept <= left
            )
    return parts


def _cheapest(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    """Return the one part that sends least, () of none."""
    best = min(parts, key=lambda part: (part.sent, part.kept, len(part.inner)), default=None)
    return () if best is None else (best,)


def _unbeaten(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    """Return the parts than which no other is better in one respect and no worse in the other."""
    unbeaten: list[_Part] = []
    for part in sorted(parts, key=lambda part: (part.kept, part.sent, len(part.inner))):
        if not unbeaten or part.sent < unbeaten[-1].sent:
            unbeaten.append(part)
    return tuple(unbeaten)


def _splits(members: list[str], blocks: list[Aliases]) -> Iterator[tuple[Aliases, ...]]:
    """Yield every split of relations, given in canonical order, into single ones and some of these blocks."""
    if not members:
        yield ()
        return
    inside = frozenset(members)
    for block in (frozenset(members[:1]), *(each for each in blocks if members[0] in each and each <= inside)):
        for others in _splits([alias for alias in members if alias not in block], blocks):
            yield (block, *others)
