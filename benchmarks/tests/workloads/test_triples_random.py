"""Random variants of the three-way join."""

from __future__ import annotations

from itertools import islice

from benchmarks.workloads.triples_random import STREAMS, WINDOWS_S, draw_triples

QUERIES = list(islice(draw_triples(0), 100))


def test_a_smaller_workload_is_the_beginning_of_a_larger_one():
    assert list(islice(draw_triples(0), 10)) == QUERIES[:10]
    assert list(islice(draw_triples(1), 10)) != QUERIES[:10]


def test_all_queries_differ():
    assert len({(query.joins, query.selections, query.window_s) for query in QUERIES}) == 100
    assert [query.name for query in QUERIES[:2]] == ["q1", "q2"]


def test_every_relation_is_joined_with_an_earlier_one():
    for query in QUERIES:
        for position, relation in enumerate(query.relations[1:], start=1):
            assert len(query.joins_of(relation, query.relations[:position])) == 1
        assert len(query.joins) == len(query.relations) - 1


def test_sizes_windows_and_selections_vary():
    assert {len(query.relations) for query in QUERIES} == {2, 3}
    assert {query.window_s for query in QUERIES} == {*WINDOWS_S}
    selected = sum(len(query.selections) for query in QUERIES) / sum(len(query.relations) for query in QUERIES)
    assert 0.4 < selected < 0.6


def test_columns_are_those_of_the_streams():
    columns = {(stream.name, column.name, column.type) for stream in STREAMS for column in stream.columns}
    assert {(output.relation, output.column, output.type) for query in QUERIES for output in query.outputs} == columns
