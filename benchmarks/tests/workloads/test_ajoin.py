"""Queries after AJoin are as similar as wanted, and come and go as scheduled."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from benchmarks.workloads import ajoin
from benchmarks.workloads.ajoin_queries import (
    SIZES,
    WINDOWS_S,
    AjoinWanted,
    Link,
    Selection,
    draw_chain,
    draw_queries,
    expected_results,
    pattern,
    similarity,
)
from benchmarks.workloads.ajoin_schedule import Sc1, Sc2, schedule
from benchmarks.workloads.case import Request
from plait.errors import OptionError

A, B = Link(stream="A", right="a"), Link(stream="B", left="b")


def queries(count: int, **changes: object):
    return tuple(islice(draw_queries(replace(AjoinWanted(), **changes), 1), count))


def test_similarity_of_the_papers_example():
    assert similarity((A, replace(B, left="a")), to=(A, B)) == 2 * 1 / 2**2


def test_a_query_is_like_itself_and_unlike_one_over_other_streams():
    assert similarity((A, B), to=(A, B)) == 1
    assert similarity((replace(A, stream="C"), replace(B, stream="D")), to=(A, B)) == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wanted", [0.25, 0.5, 0.75, 1.0])
def test_queries_are_as_similar_as_wanted_on_average(size: int, wanted: float):
    random, model = Random(5), pattern(size)
    drawn = [draw_chain(size, wanted, random) for _ in range(1500)]
    assert sum(similarity(chain, model) for chain in drawn) / len(drawn) == pytest.approx(wanted, abs=0.02)
    assert all(len({link.stream for link in chain}) == size for chain in drawn)


def test_queries_have_the_sizes_windows_and_selections_of_the_template():
    drawn = queries(200)
    assert {len(query.relations) for query in drawn} == set(SIZES)
    assert {query.window_s for query in drawn} == set(WINDOWS_S)
    for query in drawn:
        assert [relation for relation, _ in query.selections] == list(query.relations)
    assert not any(query.selections for query in queries(5, selections=False))
    assert {len(query.relations) for query in queries(5, sizes=(3,))} == {3}


def test_a_smaller_workload_is_the_beginning_of_a_larger_one():
    assert queries(5) == queries(9)[:5]


def test_expected_results_know_selections_on_what_is_joined():
    wanted = AjoinWanted(rows_per_s=501, span_s=10)
    below, above = (Selection(attribute=name, operator=op, value=250) for name, op in (("a", "<"), ("b", ">")))
    assert expected_results(wanted, (A, B), 1, {}) == pytest.approx(5010 * 2 * 501 / 501)
    assert expected_results(wanted, (A, B), 1, {"A": below}) == pytest.approx(10_020 * 250 / 501)
    assert expected_results(wanted, (A, B), 1, {"A": below, "B": above}) == 0
    assert expected_results(wanted, (A, B), 1, {"A": replace(below, attribute="c")}) == pytest.approx(
        10_020 * 250 / 501
    )


def test_too_few_rows_for_results_are_refused():
    with pytest.raises(OptionError, match="more rows"):
        queries(1, rows_per_s=0.1)


def test_impossible_wishes_are_refused():
    with pytest.raises(OptionError, match="similarity"):
        AjoinWanted(similarity=1.5)
    with pytest.raises(OptionError, match="relations"):
        AjoinWanted(sizes=(6,))


def test_sc1_creates_until_enough_run_and_deletes_nothing():
    planned = schedule(Sc1(per_second=3, parallel=8), draw_queries(AjoinWanted(), 1))
    assert [(change.second, len(change.create), change.delete) for change in planned.changes] == [
        (0, 3, ()),
        (1, 3, ()),
        (2, 2, ()),
    ]
    assert planned.running_at(1.5) == ("q1", "q2", "q3", "q4", "q5", "q6")
    assert planned.running_at(1000) == tuple(query.name for query in planned.queries)


def test_sc1_may_create_less_often():
    planned = schedule(Sc1(per_second=2, parallel=4, every_s=3), draw_queries(AjoinWanted(), 1))
    assert [(change.second, len(change.create)) for change in planned.changes] == [(0, 2), (3, 2)]


def test_sc2_replaces_all_that_run():
    planned = schedule(Sc2(batch=2, every_s=10, seconds=30), draw_queries(AjoinWanted(), 1))
    assert [change.second for change in planned.changes] == [0, 10, 20]
    assert [planned.running_at(second) for second in (-1, 9, 10, 29)] == [
        (),
        ("q1", "q2"),
        ("q3", "q4"),
        ("q5", "q6"),
    ]


def test_a_schedule_without_enough_queries_is_refused():
    with pytest.raises(OptionError, match="only 1 more"):
        schedule(Sc1(per_second=2, parallel=4), queries(3))
    with pytest.raises(OptionError, match="positive"):
        Sc2(batch=1, every_s=5, seconds=4)


@pytest.mark.parametrize(
    ("variants", "mixtures"),
    [
        ("usual", ["2- to 5-way"]),
        ("plain", ["2- to 5-way", "plain 2-way"]),
        ("all", ["2- to 5-way", "2-way", "3-way", "4-way", "5-way", "plain 2-way"]),
    ],
)
def test_variants_are_asked_with_every_number_of_queries(tmp_path, monkeypatch, variants: str, mixtures: list[str]):
    monkeypatch.setattr(ajoin, "make_streams", lambda wanted: iter(()))
    cases = list(ajoin.cases(Request(sizes=(1, 3), directory=tmp_path, variants=variants)))
    named = [f"{kind} {of}".strip() for _, kind, of in (_named(case.name) for case in cases)]
    assert named == [*mixtures, *mixtures]
    assert [len(case.questions.queries) for case in cases] == [1] * len(mixtures) + [3] * len(mixtures)
    plain = [case for case in cases if "plain" in case.name]
    assert all(not query.selections for case in plain for query in case.questions.queries)


def _named(name: str) -> tuple[str, str, str]:
    """Return how many queries, of what kind, of how many relations."""
    question, of = name.split(", ")
    count, *kind = question.split(" ")
    return count, "plain" if "plain" in kind else "", of
