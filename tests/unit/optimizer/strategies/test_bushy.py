"""Join trees against every tree there is, by what their plans cost."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import pytest

from plait.optimizer import plan
from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes, probe_cost
from plait.optimizer.join_trees.join_tree import FLAT, Inner, JoinTrees
from plait.optimizer.join_trees.plan_trees import RemainingBudget, plan_trees
from plait.optimizer.options import PlanOptions
from plait.optimizer.strategies.bushy import MOST_SPLITS, cheapest_tree, splits_of
from plait.optimizer.strategies.chain import cheapest_on_the_way
from plait.plan.model import Plan
from plait.plan.validate import validate
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics
from tests.unit.optimizer.join_trees.test_join_trees import all_trees, remaining
from tests.unit.optimizer.queries import options, query, stream
from tests.unit.optimizer.queries import planned as planned_with

NAMES = "rstuvwxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query and what is known of its streams."""

    query: Query
    options: PlanOptions

    @property
    def statistics(self) -> Statistics:
        """What the streams declare."""
        return declared_statistics(self.options.sources)

    def trees(self) -> JoinTrees:
        """Return the join trees of the query."""
        return JoinTrees(JoinSizes(self.query, Cardinality(statistics=self.statistics), self.options))

    def plan(self, strategy: str, rows: float | None = None) -> Plan:
        """Plan the query within a budget."""
        chosen = replace(self.options, strategy=strategy, storage_rows=rows)
        return plan((self.query,), self.statistics, chosen)

    def plan_of(self, inner: Inner) -> Plan:
        """Plan the query as one tree."""
        orders = [order for _, order in self.trees().orders(inner)]
        made = build((self.query,), orders, self.statistics, self.options)
        validate(made, (self.query,))
        return made


def edges_of(shape: str, count: int, rng: random.Random) -> list[tuple[str, str]]:
    names = NAMES[:count]
    pairs = {
        "chain": list(pairwise(names)),
        "star": [(names[0], name) for name in names[1:]],
        "clique": list(combinations(names, 2)),
        "any": [(names[rng.randrange(place)], names[place]) for place in range(1, count)],
    }[shape]
    more = [pair for pair in combinations(names, 2) if pair not in pairs and rng.random() < 0.3]
    return pairs + (more if shape == "any" else [])


def asked(shape: str, count: int, seed: int, *, parallelism: int = 1, at_random: float = 0.0) -> Asked:
    """Return a query over streams of random rates and keys, some of them placed at random."""
    rng = random.Random(f"{shape} {count} {seed}")
    pairs = edges_of(shape, count, rng)
    streams = [
        stream(
            name,
            rate=rng.choice((1.0, 10.0, 100.0)),
            distinct={f"k{edge}": rng.choice((2.0, 5.0, 20.0, 50.0, 100.0)) for edge in range(len(pairs))},
            placement="random" if rng.random() < at_random else "keys",
        )
        for name in NAMES[:count]
    ]
    conditions = [f"{left}.k{edge} = {right}.k{edge}" for edge, (left, right) in enumerate(pairs)]
    relations = {name: name for name in NAMES[:count]}
    return Asked(
        query=query("q", relations, conditions, select=["r.v"], windows=dict.fromkeys(relations, 1)),
        options=options("flat", streams, parallelism),
    )


def budgets_of(trees: JoinTrees) -> list[float]:
    """Return budgets from nothing but the inputs to more than enough, some of which a tree just fits."""
    inputs = trees.storage_cost(FLAT)
    some = sorted(trees.storage_cost(frozenset((each,))) * (1 + 1e-9) for each in trees.candidates)[::3]
    return sorted((inputs, inputs * 1.1, *some, math.inf))


CASES = [
    (shape, seed, parallelism, at_random)
    for shape in ("chain", "any")
    for seed in range(3)
    for parallelism, at_random in ((1, 0.0), (4, 0.0), (4, 0.4), (4, 1.0))
]


@pytest.mark.parametrize(("shape", "seed", "parallelism", "at_random"), CASES)
def test_no_tree_that_fits_has_a_cheaper_plan_than_bushy(
    shape: str, seed: int, parallelism: int, at_random: float
) -> None:
    case = asked(shape, 3 + seed % 3, seed, parallelism=parallelism, at_random=at_random)
    trees = case.trees()
    made = [(trees.storage_cost(inner), probe_cost(case.plan_of(inner).trees)) for inner in all_trees(trees)]
    before = math.inf
    for rows in budgets_of(trees):
        found = case.plan("bushy", None if rows == math.inf else rows)
        cost = probe_cost(found.trees)
        assert (found.stored_rows_estimate or 0.0) <= rows
        assert cost == pytest.approx(min(sent for kept, sent in made if kept <= rows))
        assert cost <= before * (1 + 1e-9)
        before = cost


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_of_a_chain_keeps_its_budget_and_lies_between_bushy_and_flat(seed: int) -> None:
    case = asked("chain", 3 + seed % 6, seed, parallelism=1 + seed % 4, at_random=0.3 * (seed % 2))
    flat, before = probe_cost(case.plan("flat").trees), math.inf
    for rows in budgets_of(case.trees())[::2]:
        found = case.plan("chain", None if rows == math.inf else rows)
        cost = probe_cost(found.trees)
        assert (found.stored_rows_estimate or 0.0) <= rows
        assert cost <= min(flat, before) * (1 + 1e-9)
        assert probe_cost(case.plan("bushy", None if rows == math.inf else rows).trees) <= cost * (1 + 1e-9)
        before = cost


@pytest.mark.parametrize("shape", ["chain", "star", "clique", "any"])
def test_what_bushy_minimizes_is_what_the_plan_costs(shape: str) -> None:
    case = asked(shape, 5, 1, parallelism=3, at_random=0.3)
    trees = case.trees()
    for inner in list(all_trees(trees))[::7]:
        assert probe_cost(case.plan_of(inner).trees) == pytest.approx(trees.probe_cost(inner))


@pytest.mark.parametrize("seed", range(8))
def test_flat_and_greedy_are_one_plan(seed: int) -> None:
    case = asked("any", 3 + seed % 4, seed, parallelism=3)
    flat, greedy = case.plan("flat"), case.plan("greedy")
    assert (flat.trees, flat.stores) == (greedy.trees, greedy.stores)


@pytest.mark.parametrize(("shape", "count"), [("chain", 8), ("star", 8), ("clique", 7)])
def test_chains_and_stars_of_eight_and_all_graphs_of_seven_are_searched_whole(shape: str, count: int) -> None:
    trees = asked(shape, count, 0).trees()
    assert splits_of(trees, MOST_SPLITS) is not None


def test_larger_graphs_are_not_and_the_tree_found_still_fits() -> None:
    trees = asked("clique", 8, 0).trees()
    assert splits_of(trees, MOST_SPLITS) is None
    inner = cheapest_tree(trees, remaining(1e4))
    assert sum(map(trees.rows, inner)) <= 1e4
    assert trees.probe_cost(inner) < trees.probe_cost(FLAT)


def test_the_ways_to_split_an_operator_are_all_there_are() -> None:
    splits = splits_of(asked("clique", 4, 0).trees(), 1000)
    assert splits is not None
    assert [len(splits[operator]) for operator in splits] == [1] * 6 + [4] * 4 + [14], "partitions into two or more"


def test_top_down_an_eight_fold_chain_is_no_worse_than_flat() -> None:
    trees = asked("chain", 8, 3).trees()
    assert trees.probe_cost(cheapest_on_the_way(trees, remaining())) <= trees.probe_cost(FLAT)


TWICE = query(
    "q",
    {"a": "r", "b": "s", "c": "t", "d": "r", "e": "s", "f": "t"},
    ["a.k1 = b.k1", "b.k2 = c.k2", "c.k3 = f.k3", "d.k1 = e.k1", "e.k2 = f.k2"],
    select=["a.v"],
)


@pytest.mark.parametrize("inner", ["abc def ab", "abc def ab ef", "abc def bc ef", "ab de"])
def test_a_store_that_two_operators_of_one_query_have_is_filled_once_and_paid_for_once(inner: str) -> None:
    chosen = frozenset(map(frozenset, inner.split()))
    streams = [stream(name, rate=10.0, distinct={f"k{key}": 20.0 for key in range(4)}) for name in "rst"]
    given = options("bushy", streams)

    def choose(trees: JoinTrees, remaining: RemainingBudget) -> Inner:
        once = {frozenset(trees.query.relation(alias).source for alias in operator): operator for operator in chosen}
        assert remaining.size_of_all(trees, chosen) == pytest.approx(sum(map(trees.rows, once.values())))
        return chosen

    made = plan_trees((TWICE,), declared_statistics(streams), given, choose)
    validate(made, (TWICE,))


@pytest.mark.parametrize("strategy", ["left-deep", "bushy", "chain"])
def test_a_join_with_an_equal_join_has_a_plan(strategy: str) -> None:
    made = planned_with((TWICE,), strategy)
    assert any(store.intermediate is not None for store in made.stores)
