from __future__ import annotations

import pytest

from plait.optimizer.estimate.cardinality import ASSUMED, Cardinality, Extent
from plait.plan.model import KeyColumn, Selection
from plait.stats.model import JoinSelectivity, SourceStatistics, Statistics
from tests.unit.optimizer.queries import SECOND_US, expression, planned, query, stream, table

WINDOW = Extent(source="r", is_table=False, window_us=30 * SECOND_US)
FOREVER = Extent(source="r", is_table=False, window_us=None)
TABLE = Extent(source="r", is_table=True, window_us=None)


def knowing(**known: object) -> Cardinality:
    return Cardinality(statistics=Statistics(sources=(SourceStatistics(source="r", **known),)))  # type: ignore[arg-type]


def key(sql: str, type: str = "bigint") -> KeyColumn:
    return KeyColumn(expression=expression(sql), type=type)


def test_a_window_holds_rate_times_its_length() -> None:
    assert knowing(rate_rows_per_s=7.0, rows=5.0).rows(WINDOW) == 210
    assert knowing().rows(WINDOW) == 30 * ASSUMED.rate_rows_per_s


def test_tables_and_unbounded_streams_hold_all_rows() -> None:
    assert knowing(rate_rows_per_s=7.0, rows=5.0).rows(FOREVER) == 5
    assert knowing(rows=5.0).rows(TABLE) == 5
    assert knowing().rows(FOREVER) == ASSUMED.unbounded_stream_rows
    assert knowing().rows(TABLE) == ASSUMED.table_rows


def test_nothing_known_is_not_zero_but_zero_is() -> None:
    assert knowing(rows=0.0).rows(FOREVER) == 0
    assert knowing(rate_rows_per_s=0.0).rows(WINDOW) == 0


def test_a_declared_column_comes_before_a_measured_key() -> None:
    measured = ("#k bigint `a`", 20.0)
    assert knowing(distinct=(measured,)).distinct(WINDOW, key("`a`")) == 20
    assert knowing(distinct=(measured, ("a", 50.0))).distinct(WINDOW, key("`a`")) == 50


def test_an_expression_of_one_column_has_no_more_values_than_the_column() -> None:
    known = knowing(distinct=(("a", 50.0), ("#k string lower(`a`)", 26.0)))
    assert known.distinct(WINDOW, key("lower(`a`)", "string")) == 26, "measured for the key itself"
    assert known.distinct(WINDOW, key("upper(`a`)", "string")) == 50
    assert known.distinct(WINDOW, key("`a` + `b`")) == 3_000, "two columns: assumed"


def test_a_quoted_backquote_in_a_column_name_still_names_the_column() -> None:
    odd = KeyColumn(expression=expression("`a`"), type="bigint")
    strange = KeyColumn(
        expression=type(odd.expression)(sql="`a``b`", columns=("a`b",)),
        type="bigint",
    )
    assert knowing(distinct=(("a`b", 9.0), (strange.name, 3.0))).distinct(WINDOW, strange) == 9


def test_distinct_is_assumed_from_the_rows_and_never_below_one() -> None:
    assert knowing(rows=500.0).distinct(FOREVER, key("`a`")) == 50
    assert knowing(rows=500.0).distinct(TABLE, key("`a`")) == 500
    assert knowing(rows=3.0).distinct(FOREVER, key("`a`")) == 1
    assert knowing(distinct=(("a", 0.0),)).distinct(FOREVER, key("`a`")) == 1


def test_an_equality_passes_one_over_the_larger_distinct_count() -> None:
    known = knowing(distinct=(("a", 50.0), ("b", 20.0)))
    assert known.equality((WINDOW, key("`a`")), (WINDOW, key("`b`"))) == pytest.approx(1 / 50)


def test_a_selection_is_known_whole_or_by_conjunct_or_assumed() -> None:
    one, two = expression("`a` > 1"), expression("`b` > 1")
    both = Selection(conjuncts=(one, two))
    assert knowing().selectivity("r", Selection()) == 1
    assert knowing().selectivity("r", both) == ASSUMED.conjunct_selectivity**2
    assert knowing(selectivity=(("(`a` > 1)", 0.5),)).selectivity("r", both) == 0.5 * ASSUMED.conjunct_selectivity
    assert knowing(selectivity=(("(`a` > 1)", 0.5), (both.sql, 0.4))).selectivity("r", both) == 0.4


def test_a_starting_tuple_is_the_last_of_the_streams_since_tables_were_there_before() -> None:
    sources = (stream("r", rate=10), table("n", rows=50), stream("s", rate=10, distinct={"a": 1}))
    asked = query("q", {"r": "r", "n": "n", "s": "s"}, ["r.a = n.a", "n.b = s.a"], tables={"n"})
    made = planned((asked,), "fixed", sources=sources)
    first, second = (step for _, step in made.trees[0].walk())
    assert (first.estimate.probe_tuples, first.estimate.results) == (100, 100)
    assert (second.estimate.probe_tuples, second.estimate.results) == (100, 100 * 100 / 50 / 2)


def test_the_pace_is_one_over_the_window_or_over_the_time_the_rows_took() -> None:
    assert knowing(rate_rows_per_s=7.0).pace(WINDOW) == pytest.approx(1 / 30)
    assert knowing(rate_rows_per_s=7.0, rows=70.0).pace(FOREVER) == pytest.approx(1 / 10)
    assert knowing(rate_rows_per_s=0.0).pace(WINDOW) == 0


def test_an_equality_of_which_few_pairs_were_compared_holds_in_part_as_distinct_values_tell() -> None:
    sides = tuple((name, key("`a`").name) for name in "rs")

    def passing(selectivity: float, pairs: float) -> float:
        joins = (JoinSelectivity(sides=sides, selectivity=selectivity, pairs=pairs),)  # type: ignore[arg-type]
        sources = tuple(SourceStatistics(source=name, rows=9.0, distinct=(("a", 1_000.0),)) for name in "rs")
        known = Cardinality(statistics=Statistics(sources=sources, joins=joins))
        left, right = ((Extent(source=name, is_table=False, window_us=None), key("`a`")) for name in "rs")
        return known.equality(left, right)

    # As if 10 matches of 10,000 pairs had been seen before.
    assert passing(0.0, 5_000.0) == pytest.approx(10 / 15_000)
    assert passing(0.01, 1e9) == pytest.approx(0.01, rel=0.001)
    assert passing(0.01, float("inf")) == 0.01
