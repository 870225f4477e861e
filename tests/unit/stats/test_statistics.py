from __future__ import annotations

import pytest

from plait.query.model import DeclaredStatistics, Stream, Table
from plait.stats.combine import with_measured
from plait.stats.declared import declared_statistics
from plait.stats.measured import Measurement, measured_statistics
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics

SECOND_US = 1_000_000


def test_declarations_become_statistics_in_order_and_silence_becomes_nothing() -> None:
    sources = (
        Stream(name="s", time="t", declared=DeclaredStatistics(rate_rows_per_s=5.0, distinct=(("b", 2.0), ("a", 1.0)))),
        Stream(name="silent", time="t"),
        Table(name="n", declared=DeclaredStatistics(rows=25.0)),
    )
    assert declared_statistics(sources) == Statistics(
        sources=(
            SourceStatistics(source="n", rows=25.0),
            SourceStatistics(source="s", rate_rows_per_s=5.0, distinct=(("a", 1.0), ("b", 2.0))),
        )
    )


def test_a_measured_rate_is_per_second_of_event_time() -> None:
    measured = measured_statistics([Measurement(source="s", rows=101, tau_min_us=0, tau_max_us=10 * SECOND_US)])
    assert measured.of("s").rate_rows_per_s == 10
    assert measured.of("s").rows == 101


@pytest.mark.parametrize(("low", "high"), [(None, None), (5, 5)])
def test_a_rate_without_a_span_is_unknown(low: int | None, high: int | None) -> None:
    measured = measured_statistics([Measurement(source="s", rows=3, tau_min_us=low, tau_max_us=high)])
    assert measured.of("s").rate_rows_per_s is None


def test_distinct_counts_and_selectivities_are_measured_by_name() -> None:
    measured = measured_statistics(
        [
            Measurement(
                source="s",
                rows=200,
                sketches=(("#k bigint `b`", (4, 5, 6)), ("#k bigint `a`", (1, 2)), ("#k bigint `c`", ())),
                kept=(("true", 200), ("(`v` > 1)", 50)),
            )
        ]
    )
    assert measured.of("s").distinct == (("#k bigint `a`", 2.0), ("#k bigint `b`", 3.0))
    assert measured.of("s").selectivity == (("(`v` > 1)", 0.25), ("true", 1.0))


def test_nothing_is_known_of_a_source_that_sent_nothing() -> None:
    assert measured_statistics([Measurement(source="s", rows=0)]) == Statistics()
    assert Statistics().of("s") == SourceStatistics(source="s")


def test_what_is_declared_wins_and_what_is_measured_fills_in() -> None:
    declared = Statistics(sources=(SourceStatistics(source="s", rate_rows_per_s=5.0, distinct=(("a", 7.0),)),))
    measured = Statistics(
        sources=(
            SourceStatistics(source="r", rows=1.0),
            SourceStatistics(
                source="s",
                rate_rows_per_s=99.0,
                rows=1_000.0,
                distinct=(("#k bigint `b`", 3.0), ("a", 8.0)),
                selectivity=(("true", 1.0),),
            ),
        )
    )
    assert with_measured(declared, measured) == Statistics(
        sources=(
            SourceStatistics(source="r", rows=1.0),
            SourceStatistics(
                source="s",
                rate_rows_per_s=5.0,
                rows=1_000.0,
                distinct=(("#k bigint `b`", 3.0), ("a", 7.0)),
                selectivity=(("true", 1.0),),
            ),
        )
    )


def test_a_declared_zero_is_a_declaration() -> None:
    declared = Statistics(sources=(SourceStatistics(source="s", rate_rows_per_s=0.0),))
    measured = Statistics(sources=(SourceStatistics(source="s", rate_rows_per_s=9.0),))
    assert with_measured(declared, measured).of("s").rate_rows_per_s == 0


def test_a_measured_selectivity_is_found_from_either_side_of_the_join() -> None:
    sides = (("r", "a"), ("s", "b"))
    known = Statistics(joins=(JoinSelectivity(sides=sides, selectivity=0.25),))
    assert known.selectivity(*sides) == known.selectivity(*reversed(sides)) == 0.25
    assert known.selectivity(("r", "a"), ("s", "c")) is None
