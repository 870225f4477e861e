"""What holds for every strategy, whatever it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer import STRATEGIES, plan
from plait.plan.codec import decode, encode
from plait.plan.explain import FORMATS, explain
from plait.plan.model import Plan
from plait.plan.validate import validate
from plait.query.model import Query
from plait.query.predicates import mapped
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import options
from tests.unit.optimizer.random_queries import SOURCES, query_sets, random_statistics

strategies = st.sampled_from(sorted(STRATEGIES))


@given(queries=query_sets(), statistics=random_statistics(), strategy=strategies, parallelism=st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_plans_are_valid_and_survive_their_codec(
    queries: tuple[Query, ...], statistics: Statistics, strategy: str, parallelism: int
) -> None:
    made = plan(queries, statistics, options(strategy, SOURCES, parallelism))
    validate(made, queries)
    assert decode(encode(made)) == made
    for format in FORMATS:
        assert explain(made, format).endswith("\n")


@given(queries=query_sets(), statistics=random_statistics(), strategy=strategies, data=st.data())
@settings(max_examples=80, deadline=None)
def test_the_order_of_the_queries_does_not_matter(
    queries: tuple[Query, ...], statistics: Statistics, strategy: str, data: st.DataObject
) -> None:
    chosen = options(strategy, SOURCES, 3)
    shuffled = tuple(data.draw(st.permutations(queries)))
    assert plan(queries, statistics, chosen) == plan(shuffled, statistics, chosen)


@given(queries=query_sets(), statistics=random_statistics(), strategy=strategies)
@settings(max_examples=80, deadline=None)
def test_aliases_do_not_matter(queries: tuple[Query, ...], statistics: Statistics, strategy: str) -> None:
    chosen = options(strategy, SOURCES, 3)
    made = plan(queries, statistics, chosen)
    renamed = plan(tuple(_reversed_aliases(query) for query in queries), statistics, chosen)
    assert made.stores == renamed.stores
    assert _skeleton(made) == _skeleton(renamed)


@given(queries=query_sets(largest=3), statistics=random_statistics())
@settings(max_examples=60, deadline=None)
def test_a_repeated_query_costs_nothing_unless_planned_independently(
    queries: tuple[Query, ...], statistics: Statistics
) -> None:
    twice = (*queries, replace(queries[0], name="again"))
    for strategy in ("fixed", "selectivity", "greedy", "shared"):
        once, repeated = (plan(each, statistics, options(strategy, SOURCES, 2)) for each in (queries, twice))
        assert once.stores == repeated.stores
        assert _edges(once) == _edges(repeated)
    once, repeated = (plan(each, statistics, options("independent", SOURCES, 2)) for each in (queries, twice))
    assert len(repeated.stores) > len(once.stores)


def _edges(made: Plan) -> list[tuple[str, float | None]]:
    return [(step.edge, step.estimate.probe_tuples) for tree in made.trees for _, step in tree.walk()]


def _skeleton(made: Plan) -> list[object]:
    """Everything but aliases."""
    return [
        (path[-1].edge if path else tree.start, step.edge, step.member, step.predicates, step.estimate,
         [output.query for output in step.outputs])
        for tree in made.trees
        for path, step in tree.walk()
    ]  # fmt: skip


def _reversed_aliases(query: Query) -> Query:
    """Rename every relation such that the alphabetical order of the aliases turns around."""
    names = {relation.alias: f"n{255 - ord(relation.alias)}" for relation in query.relations}
    return replace(
        query,
        relations=tuple(replace(relation, alias=names[relation.alias]) for relation in query.relations),
        predicates=tuple(
            mapped(predicate, lambda operand: replace(operand, relation=names[operand.relation]))
            for predicate in query.predicates
        ),
        output=tuple(
            replace(
                output,
                expression=replace(
                    output.expression,
                    columns=tuple(replace(ref, relation=names[ref.relation]) for ref in output.expression.columns),
                ),
            )
            for output in query.output
        ),
    )


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_no_queries_need_no_stores(strategy: str) -> None:
    made = plan((), Statistics(), options(strategy, SOURCES))
    assert (made.stores, made.trees, made.queries) == ((), (), ())
