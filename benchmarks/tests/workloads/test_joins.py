"""Join queries as text, and as plain values."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks.workloads.joins import Join, JoinQuery, OutputOf, QuerySet
from benchmarks.workloads.three_way import THREE_WAY

QUERY = JoinQuery(
    name="q",
    relations=("a", "b", "c"),
    joins=(
        Join(left="c", right="a", columns=(("x", "y"), ("v", "w"))),
        Join(left="a", right="b", columns=(("k", "k"),)),
    ),
    outputs=(OutputOf(relation="a", column="k", type="bigint"), OutputOf(relation="c", column="x", type="int")),
    selections=(("a", "a.k > 3"),),
)


def test_every_relation_is_joined_with_earlier_ones():
    assert QUERY.select_sql() == (
        "SELECT a.k AS a_k, c.x AS c_x FROM a JOIN b ON a.k = b.k JOIN c ON c.x = a.y AND c.v = a.w WHERE (a.k > 3)"
    )


def test_only_the_batch_text_says_what_the_window_means():
    windowed = replace(QUERY, window_s=2)
    times = {"a": "t", "b": "u", "c": "v"}
    assert windowed.select_sql() == QUERY.select_sql()
    assert QUERY.batch_sql(times) == QUERY.select_sql()
    assert windowed.batch_sql(times).endswith(
        "AND (abs(epoch_us(c.v) - epoch_us(a.t)) <= 2000000) AND (abs(epoch_us(a.t) - epoch_us(b.u)) <= 2000000) "
        "AND (greatest(epoch_us(a.t), epoch_us(b.u), epoch_us(c.v))"
        " - least(epoch_us(a.t), epoch_us(b.u), epoch_us(c.v)) <= 2000000)"
    )


def test_streams_nobody_reads_are_left_out():
    first, second, _ = THREE_WAY.streams
    query = replace(THREE_WAY.queries[0], relations=("r", "s"), joins=THREE_WAY.queries[0].joins[:1])
    assert QuerySet.over(THREE_WAY.streams, (query,)).streams == (first, second)


@pytest.mark.parametrize("questions", [THREE_WAY, QuerySet(streams=THREE_WAY.streams, queries=(QUERY,))])
def test_a_query_set_survives_json(questions: QuerySet):
    assert QuerySet.from_plain(json.loads(json.dumps(asdict(questions)))) == questions
