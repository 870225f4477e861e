"""What is read back out of a plan is what the plan was made from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer import STRATEGIES, plan
from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.orders_of_plan import choices_of
from plait.plan.model import Plan
from plait.query.model import Query
from plait.stats.model import Statistics
from tests.golden.cases import CASES
from tests.golden.test_explain import plan_of
from tests.random_joins import RandomJoins, draw
from tests.unit.optimizer.queries import options
from tests.unit.optimizer.random_queries import SOURCES, query_sets, random_statistics


def rebuilt(made: Plan, queries: tuple[Query, ...], statistics: Statistics, parallelism: int) -> Plan:
    choices = choices_of(made, queries)
    chosen = options(made.strategy, SOURCES, parallelism)
    again = build(queries, choices.orders, statistics, chosen, choices.store_name, covering=choices.joined)
    return replace(again, solution=made.solution)


@given(queries=query_sets(), statistics=random_statistics(), strategy=st.sampled_from(sorted(STRATEGIES)))
@settings(max_examples=60, deadline=None)
def test_a_plan_is_built_again_from_what_is_read_out_of_it(
    queries: tuple[Query, ...], statistics: Statistics, strategy: str
) -> None:
    made = plan(queries, statistics, replace(options(strategy, SOURCES, 3), time_limit_s=0.1))
    assert rebuilt(made, queries, statistics, 3) == made


def test_intermediate_stores_that_fill_each_other_are_read_back_too() -> None:
    drawn = draw(RandomJoins(relations=6, queries=8, size=5, seed=3))
    chosen = drawn.options("ilp", 1)
    made = plan(drawn.queries, drawn.statistics, chosen)
    assert max(len(store.intermediate.parts) for store in made.stores if store.intermediate is not None) > 2
    choices = choices_of(made, drawn.queries)
    again = build(drawn.queries, choices.orders, drawn.statistics, chosen, choices.store_name, covering=choices.joined)
    assert replace(again, solution=made.solution) == made


@pytest.mark.parametrize("name", ["stored_join", "split", "paper_independent"])
def test_the_edges_named_beside_an_order_lead_where_it_goes(name: str) -> None:
    made = plan_of(CASES[name])
    choices = choices_of(made, CASES[name].queries)
    steps = {step.edge: step for tree in made.trees for _, step in tree.walk()}
    for order, edges in zip(choices.orders, choices.edges, strict=True):
        assert [len(steps[edge].members) for edge in edges] == [len(unit) for unit in order.units[1:]]
        last = steps[edges[-1]]
        assert bool(last.fills) if order.fills else order.query in {output.query for output in last.outputs}
