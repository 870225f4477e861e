"""Random join queries."""

from __future__ import annotations

import pytest

from tests.random_joins import RandomJoins, draw

WANTED = RandomJoins(relations=10, queries=40, size=4, seed=5)


def test_queries_are_connected_trees_of_the_wanted_size_over_distinct_relations() -> None:
    for query in draw(WANTED).queries:
        assert len(query.relations) == len({relation.source for relation in query.relations}) == 4
        assert len(query.equalities) == 3
        assert len(query.graph.components) == 1


def test_joins_are_on_attributes_that_both_streams_have() -> None:
    made = draw(WANTED)
    attributes = {stream.name: {name for name, _ in stream.declared.distinct} for stream in made.streams}
    assert all(len(found) == 3 for found in attributes.values())
    for query in made.queries:
        for equality in query.equalities:
            for operand in (equality.left, equality.right):
                assert operand.expression.columns[0] in attributes[operand.relation]
            assert equality.left.expression == equality.right.expression


def test_duplicates_are_dropped() -> None:
    few = draw(RandomJoins(relations=4, queries=200, size=2, seed=1))
    assert len(few.queries) < 20
    assert len({tuple(map(str, query.equalities)) for query in few.queries}) == len(few.queries)


def test_equal_arguments_give_equal_instances() -> None:
    assert draw(WANTED) == draw(WANTED)
    assert draw(WANTED).queries != draw(RandomJoins(relations=10, queries=40, size=4, seed=6)).queries


def test_more_relations_than_can_be_joined_are_refused() -> None:
    with pytest.raises(ValueError, match="no 4 of these 3"):
        draw(RandomJoins(relations=3, queries=1, size=4, seed=1))
