"""Join trees under a storage budget (paper 002)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from plait.optimizer import plan
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.estimate.storage_budget import StorageBudget
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.join_trees.join_tree import FLAT, Inner, JoinTrees, are_compatible
from plait.optimizer.join_trees.plan_trees import RemainingBudget
from plait.optimizer.options import PlanOptions
from plait.optimizer.strategies.bushy import cheapest_tree, grown_tree
from plait.optimizer.strategies.chain import cheapest_on_the_way, materialized, neighbouring_runs
from plait.optimizer.strategies.left_deep import smallest_prefixes
from plait.plan.model import Plan
from plait.query.model import Query

CHAIN = ("r.a = s.a", "s.b = t.b", "t.c = u.c")
SHAPES = {
    "chain": CHAIN,
    "star": ("r.a = s.a", "r.b = t.b", "r.c = u.c"),
    "cycle": (*CHAIN, "u.d = r.d"),
    "long chain": (*CHAIN, "u.d = v.d"),
    "clique": (*CHAIN, "u.d = r.d", "r.e = t.e", "s.f = u.f"),
}


def trees_of(query: Query, options: PlanOptions) -> JoinTrees:
    cardinality = Cardinality(statistics=example_statistics(options))
    return JoinTrees(JoinSizes(query, cardinality, options))


def equal_rates() -> JoinTrees:
    return trees_of(example_query("q", *CHAIN), example_options("flat"))


def remaining(left: float = math.inf) -> RemainingBudget:
    return RemainingBudget(
        budget=StorageBudget(left=left, inputs=0.0, in_bytes=False, width_bytes=dict.fromkeys("rstuv", 8.0)), left=left
    )


def tree(*operators: str) -> Inner:
    return frozenset(map(frozenset, operators))


def all_trees(trees: JoinTrees) -> Iterator[Inner]:
    """Yield every tree whose stores are all probed."""
    candidates = trees.candidates

    def grown(inner: Inner, first: int) -> Iterator[Inner]:
        if trees.are_probed(inner):
            yield inner
        for place in range(first, len(candidates)):
            if all(are_compatible(candidates[place], operator) for operator in inner):
                yield from grown(inner | {candidates[place]}, place + 1)

    return grown(FLAT, 0)


def random_options(seed: int, strategy: str = "bushy") -> PlanOptions:
    rng = random.Random(seed)
    return example_options(strategy, *((source, rng.choice((1.0, 10.0, 100.0, 1000.0))) for source in "rstuv"))


def test_one_operator_costs_what_the_design_computes() -> None:
    trees = trees_of(example_query("q", "r.a = s.a", "s.b = t.b"), example_options("flat"))
    assert trees.probe_cost(FLAT) == 475
    assert trees.storage_cost(FLAT) == 300


def test_a_kept_join_saves_the_probes_of_what_arrives_beside_it_and_costs_its_rows() -> None:
    trees = trees_of(example_query("q", "r.a = s.a", "s.b = t.b"), example_options("flat"))
    assert trees.probe_cost(tree("st")) == pytest.approx(100 + (100 + 75) * 2)
    assert trees.storage_cost(tree("st")) == pytest.approx(300 + 150)


def test_four_relations_in_a_chain_have_the_trees_of_figure_6() -> None:
    found = set(all_trees(equal_rates()))
    shapes = {
        "I": {tree()},
        "II": {tree("rs"), tree("st"), tree("tu")},
        "III": {tree("rs", "tu")},
        "IV": {tree("rst"), tree("stu")},
        "V": {tree("rs", "rst"), tree("st", "rst"), tree("st", "stu"), tree("tu", "stu")},
    }
    assert found == set().union(*shapes.values())


@pytest.mark.parametrize(
    ("shape", "inner", "stored", "sent"),
    [
        ("I", tree(), 400, 800),
        ("II", tree("rs"), 500, 700),
        ("III", tree("rs", "tu"), 600, 600),
        ("IV", tree("rst"), 550, 725),
        ("V", tree("rs", "rst"), 650, 650),
    ],
)
def test_the_shapes_of_figure_6_cost_what_can_be_worked_out_by_hand(
    shape: str, inner: Inner, stored: float, sent: float
) -> None:
    """On the relations of the design's check: 100 tuples each, |s ⋈ t| = 150, the other pairs 100."""
    trees = equal_rates()
    assert trees.storage_cost(inner) == pytest.approx(stored), shape
    assert trees.probe_cost(inner) == pytest.approx(sent), shape


@pytest.mark.parametrize(
    ("inner", "runs"),
    [
        (tree(), {"rs", "rst", "st", "stu", "tu"}),
        (tree("rs"), {"rst", "tu"}),
        (tree("rst"), {"rs", "st"}),
        (tree("rs", "rst"), set()),
    ],
)
def test_the_pairs_that_figure_7_considers_are_those_of_the_paper(inner: Inner, runs: set[str]) -> None:
    assert set(neighbouring_runs(equal_rates(), inner)) == set(map(frozenset, runs))


def test_the_top_down_strategy_adds_the_cheapest_run_until_the_budget_is_spent() -> None:
    options = example_options("chain", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
    trees = trees_of(example_query("q", *CHAIN), options)
    assert list(materialized(trees, remaining(0.0))) == [FLAT]
    assert list(materialized(trees, remaining(2.0))) == [FLAT, tree("st")]
    assert list(materialized(trees, remaining()))[1:] == [tree("st"), tree("st", "rst")]


@pytest.mark.parametrize("seed", range(12))
def test_more_budget_never_costs_more_and_no_tree_exceeds_it(seed: int) -> None:
    trees = trees_of(example_query("q", *SHAPES["long chain"]), random_options(seed))
    inputs = trees.storage_cost(FLAT)
    for choose in (cheapest_on_the_way, cheapest_tree):
        before = math.inf
        for left in (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e9):
            inner = choose(trees, remaining(left))
            assert trees.storage_cost(inner) - inputs <= left + 1e-6
            assert trees.probe_cost(inner) <= before + 1e-9
            before = trees.probe_cost(inner)


@pytest.mark.parametrize("seed", range(4))
def test_beyond_the_limit_the_search_still_fits_and_is_no_worse_than_flat(seed: int) -> None:
    trees = trees_of(example_query("q", *SHAPES["clique"]), random_options(seed))
    exact = trees.probe_cost(cheapest_tree(trees, remaining(50.0)))
    inner = cheapest_tree(trees, remaining(50.0), most_splits=3)
    assert inner == grown_tree(trees, remaining(50.0))
    assert exact <= trees.probe_cost(inner) + 1e-9 <= trees.probe_cost(FLAT) + 1e-6
    assert sum(map(trees.rows, inner)) <= 50.0


def test_a_left_deep_tree_keeps_every_prefix_of_the_order_with_the_fewest_rows() -> None:
    options = example_options("left-deep", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0))
    assert smallest_prefixes(trees_of(example_query("q", *CHAIN), options), remaining()) == tree("st", "rst")


@pytest.mark.parametrize("strategy", ["flat", "left-deep", "chain", "bushy"])
@pytest.mark.parametrize("seed", range(3))
def test_the_plan_costs_what_its_tree_does(strategy: str, seed: int) -> None:
    options, query = random_options(seed, strategy), example_query("q", *SHAPES["long chain"])
    trees, made = trees_of(query, options), planned(options, query)
    inner = frozenset(
        frozenset(part.store for part in store.intermediate.parts) for store in made.stores if store.intermediate
    )
    steps = sum(step.estimate.probe_tuples or 0.0 for each in made.trees for _, step in each.walk())
    assert steps == pytest.approx(trees.probe_cost(inner))
    assert made.stored_rows_estimate == pytest.approx(trees.storage_cost(inner))


def planned(options: PlanOptions, *queries: Query) -> Plan:
    return plan(queries, example_statistics(options), options)


def test_a_store_that_two_queries_want_is_kept_and_paid_for_once() -> None:
    options = replace(
        example_options("bushy", ("r", 1000.0), ("s", 10.0), ("t", 10.0), ("u", 1000.0)), storage_rows=2022.0
    )
    one, two = example_query("p", "r.a = s.a", "s.b = t.b"), example_query("q", "s.b = t.b", "t.c = u.c")
    made = planned(options, one, two)
    assert [store.id.split("~")[0] for store in made.stores if store.intermediate] == ["s⋈t"]
    assert (made.stored_rows_estimate or 0.0) <= 2022.0


def test_only_what_something_arrives_beside_is_kept() -> None:
    options = example_options("left-deep")
    trees = trees_of(example_query("q", "r.a = s.a", "s.b = t.b"), options)
    query = replace(
        trees.query,
        relations=tuple(replace(each, is_table=each.alias == "t", window_us=None) for each in trees.query.relations),
    )
    assert trees_of(query, options).are_probed(tree("st"))
    assert not trees_of(query, options).are_probed(tree("rs"))
