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


def in_batches_of(batch_s: float, *steps: StepStatistics, of: Query = CHAIN) -> QueryCosts:
    """Return costs where 100 rows a second are kept for one second, each with one partner."""
    return costs_of(of, replace(example_statistics(OPTIONS), batch_s=batch_s, steps=steps))


@pytest.mark.parametrize(("batch_s", "within_s"), [(0.5, 0.25), (1.0, 0.5), (4.0, 0.875)])
def test_of_what_arrives_in_one_batch_the_relation_of_the_higher_rank_finds_the_other(
    batch_s: float, within_s: float
) -> None:
    costs = in_batches_of(batch_s)
    assert costs.step(R, S, R).growth == pytest.approx(1.0 - within_s)
    assert costs.step(S, R, S).growth == pytest.approx(1.0 + within_s)
    # A row of s has one and a half partners in t, whatever it has been joined with.
    assert costs.step(S, T, S).growth == pytest.approx(1.5 * (1.0 - within_s))
    assert costs.step(R | S, T, R).growth == pytest.approx(1.5 * (1.0 - within_s))
    assert costs.step(S | T, R, T).growth == pytest.approx(1.0 + within_s)


def step_of(query: Query, before: int, unit: int, growth: float) -> StepStatistics:
    costs = costs_of(query, example_statistics(OPTIONS))
    names = [costs.name(mask, costs.everything) for mask in (before, before | unit)]
    return StepStatistics(before=names[0], after=names[1], matching=1.0, matches=growth)


@pytest.mark.parametrize(("start", "other", "growth"), [(R, S, 10.0), (S, R, 30.0)])
def test_how_much_is_found_is_counted_for_the_join_whichever_relation_began(
    start: int, other: int, growth: float
) -> None:
    costs = in_batches_of(1.0, step_of(CHAIN, start, other, growth))
    assert costs.size(R | S) == pytest.approx(2_000.0)
    assert costs.step(R, S, R).growth == pytest.approx(10.0)
    assert costs.step(S, R, S).growth == pytest.approx(30.0)


def test_what_was_counted_of_tuples_that_began_differently_is_what_they_find_on_average() -> None:
    """A row of r finds a half of its partners in s, one of t one and a half times as many; and t begins three times as
    many of the rows of both.
    """
    counted = step_of(ALL_EQUAL, R, T, 0.5), step_of(ALL_EQUAL, R | T, S, 10.0)
    costs = in_batches_of(1.0, *counted, of=ALL_EQUAL)
    assert costs.size(R | T) == pytest.approx(100.0)
    assert costs.size(R | S | T) == pytest.approx(1_000.0 / 1.25)
    assert costs.step(R | T, S, R).growth == pytest.approx(4.0)
    assert costs.step(R | T, S, T).growth == pytest.approx(12.0)


def test_where_a_window_is_many_batches_it_does_not_matter_which_relation_began() -> None:
    assert [in_batches_of(0.28).origin(start) for start in (R, S, T, U)] == [0, 0, 0, 0]
    assert [in_batches_of(0.32).origin(start) for start in (R, S, T, U)] == [R, S, T, U]
    assert in_batches_of(0.28).step(R, S, R).growth == pytest.approx(1.0)


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
