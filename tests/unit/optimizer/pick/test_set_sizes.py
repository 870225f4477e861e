"""A set of relations has one size, whichever way leads to it, and measured steps put estimates right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.pick.query_costs import QueryCosts
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics, StepStatistics
from tests.unit.optimizer.queries import options, query, stream

OPTIONS = example_options("dppick")
CHAIN = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
ALL_EQUAL = example_query("q", "r.a = s.a", "s.a = t.a", "r.a = t.a")
R, S, T, U = 1, 2, 4, 8


def costs_of(query: Query, statistics: Statistics) -> QueryCosts:
    return QueryCosts(query, Cardinality(statistics=statistics), OPTIONS)


def told(query: Query, before: int, after: int, growth: float) -> Statistics:
    costs = costs_of(query, example_statistics(OPTIONS))
    names = costs.name(before, costs.everything), costs.name(after, costs.everything)
    step = StepStatistics(before=names[0], after=names[1], matching=0.5, matches=2 * growth)
    return replace(example_statistics(OPTIONS), steps=(step,))


def test_an_equality_that_follows_from_others_does_not_count() -> None:
    costs = costs_of(ALL_EQUAL, example_statistics(OPTIONS))
    # 100 rows each with 100 values: one partner each, however many of the equalities are written down.
    assert costs.size(R | S) == pytest.approx(100.0)
    assert costs.size(R | S | T) == pytest.approx(100.0)
    assert costs.step(R | S, T).growth == pytest.approx(1.0)


def test_a_measured_step_tells_the_size_of_the_set_it_leads_to_on_every_way() -> None:
    plain, seen = costs_of(CHAIN, example_statistics(OPTIONS)), costs_of(CHAIN, told(CHAIN, R, R | S, 20.0))
    assert seen.step(R, S).growth == pytest.approx(20.0)
    assert seen.step(S, R).growth == pytest.approx(20.0)
    # What has not been reached is off by as much as what it contains.
    assert seen.size(R | S | T) == pytest.approx(20.0 * plain.size(R | S | T))
    assert seen.step(R | S, T).growth == pytest.approx(plain.step(R | S, T).growth)
    assert seen.size(S | T) == plain.size(S | T)


def test_a_way_that_is_guessed_does_not_look_better_than_one_that_is_measured() -> None:
    """Both ways to a set have its one size, so that plans do not change places for being measured."""
    seen = costs_of(CHAIN, told(CHAIN, S, S | T, 7.0))
    by_way_of_t = seen.step(S, T).growth * seen.step(S | T, R).growth
    by_way_of_r = seen.step(S, R).growth * seen.step(S | R, T).growth
    assert by_way_of_r == pytest.approx(by_way_of_t)


def test_a_size_of_which_little_was_counted_is_what_it_would_be_guessed_in_part() -> None:
    plain = costs_of(CHAIN, example_statistics(OPTIONS))

    def size(growth: float, weight: float) -> float:
        (step,) = told(CHAIN, R, R | S, growth).steps
        return costs_of(CHAIN, replace(example_statistics(OPTIONS), steps=(replace(step, weight=weight),))).size(R | S)

    assert plain.size(R | S) == pytest.approx(100.0)
    # As if 30 tuples had found 30 partners before 30 partners were counted of 25 tuples, or one of two.
    assert size(1.2, 30.0) == pytest.approx(100.0 * 60 / 55)
    assert size(0.5, 1.0) == pytest.approx(100.0 * 31 / 32)
    assert size(20.0, 1e12) == pytest.approx(2_000.0)
    # What is estimated counts for nothing where it is refuted, and chance refutes nothing.
    assert size(50.0, 1_000.0) == pytest.approx(5_000.0, rel=0.01)
    assert size(0.02, 1_000.0) == pytest.approx(2.0, rel=0.01)
    assert size(2.0, 2.0) == pytest.approx(100.0 * 32 / 31)


def test_of_two_ways_to_a_join_the_one_counts_more_of_which_more_was_counted_and_lately() -> None:
    plain = costs_of(CHAIN, example_statistics(OPTIONS))
    names = {mask: plain.name(mask, plain.everything) for mask in (R, S, R | S)}

    def size(fresh: float, old: float) -> float:
        steps = (
            StepStatistics(before=names[R], after=names[R | S], matching=1.0, matches=20.0, weight=1e12 * fresh),
            StepStatistics(before=names[S], after=names[R | S], matching=1.0, matches=1.0, weight=1e12 * old),
        )
        return costs_of(CHAIN, replace(example_statistics(OPTIONS), steps=steps)).size(R | S)

    assert size(99.0, 1.0) == pytest.approx(100.0 * (20.0 * 0.99 + 0.01))
    assert size(1.0, 99.0) == pytest.approx(100.0 * (20.0 * 0.01 + 0.99))


def test_measured_steps_tell_sizes_of_a_query_with_too_many_sets_to_name_them_all() -> None:
    names = tuple(f"s{number:02}" for number in range(24))
    asked = options("dppick", tuple(stream(name, rate=100.0, distinct={"a": 100.0}) for name in names))
    star = query("q", {name: name for name in names}, [f"s00.a = {name}.a" for name in names[1:]])
    statistics = declared_statistics(asked.sources)

    def costs(steps: tuple[StepStatistics, ...] = ()) -> QueryCosts:
        return QueryCosts(star, Cardinality(statistics=replace(statistics, steps=steps)), asked)

    plain = costs()
    assert plain.is_wide
    sets = [plain.name((1 << count) - 1, plain.everything) for count in (1, 2, 3)]
    measured = tuple(
        StepStatistics(before=before, after=after, matching=1.0, matches=growth, weight=1e12)
        for before, after, growth in zip(sets, sets[1:], (20.0, 3.0), strict=False)
    )
    assert costs(measured).size(0b111) == pytest.approx(60.0 * plain.size(1))
