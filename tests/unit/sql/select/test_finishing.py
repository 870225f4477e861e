"""Which groups are made of partial aggregates without Spark, and how."""

from __future__ import annotations

import pytest

from plait.sinks.delivery import Finishing, Formula
from plait.sql.select.finishing import finishing_of
from plait.sql.select.folding import folding_of
from tests.unit.sql.reading import bound
from tests.unit.sql.select.test_folding import TYPES

TIME, COUNT, CITY = "timestamp", "bigint", "string"


def finishing(select: str, *results: str, groups: str = "window(o.ts, '10 minutes')", **types: str) -> Finishing | None:
    query = bound(f"SELECT {select} FROM orders o GROUP BY {groups}")
    assert query.aggregation is not None
    known = {**TYPES, **types}
    joined = {ref: known[ref.column] for column in query.output for ref in column.expression.columns}
    folding = folding_of(query.aggregation, joined)
    assert folding is not None
    return finishing_of(query.aggregation, folding, results, time_zone="UTC")


def test_columns_are_ends_of_the_window_keys_and_aggregates() -> None:
    groups = "window(o.ts, '10 minutes'), city HAVING count(*) > 2"
    found = finishing(
        "count(*) AS n, window(o.ts, '10 minutes').end, city, window.start AS b, sum(cust)",
        *(COUNT, TIME, CITY, TIME, COUNT),
        groups=groups,
    )
    assert found is not None
    assert found.keys == ("o.city",)
    assert found.made == (3, 1, 2, 0, 4)
    assert found.finals == ('CAST(sum("#p0") AS BIGINT)', 'CAST(sum("#p1") AS BIGINT)', 'CAST(sum("#p2") AS BIGINT)')
    assert found.having is not None
    assert found.having.reads == (5,)


def test_sessions_are_made_as_windows_are() -> None:
    groups = "session_window(o.ts, '10 minutes'), city HAVING count(*) > 2"
    found = finishing(
        "session_window.start, city, session_window.end, count(*)", TIME, CITY, TIME, COUNT, groups=groups
    )
    assert found is not None
    assert (found.keys, found.made) == (("o.city",), (0, 2, 1, 3))


def test_what_duckdb_computes_as_spark_does_is_computed() -> None:
    found = finishing("max(id) - min(id) AS spread, cust % 2", "bigint", "int", groups="window(o.ts, '1 hour'), cust")
    assert found is not None
    assert [type(each) for each in found.made] == [Formula, Formula]
    assert [each.reads for each in found.made if isinstance(each, Formula)] == [(3, 4), (2,)]


@pytest.mark.parametrize(
    ("select", "results", "groups"),
    [
        ("window.start, count(DISTINCT city)", (TIME, COUNT), "window"),
        ("count(*)", (COUNT,), "window, cust % 2"),
        ("city, count(*)", (CITY, COUNT), "window, CUBE (city)"),
        ("window, count(*)", ("struct<start:timestamp,end:timestamp>", COUNT), "window"),
        ("max(cust) FILTER (WHERE flag)", ("int",), "window"),
        ("window.start + INTERVAL 1 HOUR, count(*)", (TIME, COUNT), "window"),
        ("concat(city, '{}'), count(*)", (CITY, COUNT), "window, city"),
        ("count(*)", (COUNT,), "window HAVING count(DISTINCT city) > 1"),
        ("count(*)", (COUNT,), "window, flag HAVING flag"),
        ("sum(cust)", ("decimal(38,0)",), "window"),
    ],
)
def test_all_else_is_left_to_spark(select: str, results: tuple[str, ...], groups: str) -> None:
    window = "window(o.ts, '10 minutes')"
    groups = groups.replace("window", window, 1)
    select = select if "window.start" in select else select.replace("window", window)
    assert finishing(select, *results, groups=groups) is None


@pytest.mark.parametrize("type_", ["float", "double"])
def test_zeros_and_nans_are_made_one_by_spark(type_: str) -> None:
    groups = "window(o.ts, '10 minutes'), cust"
    assert finishing("cust, count(*)", type_, COUNT, groups=groups, cust=type_) is None
    assert finishing("cust, count(*)", "int", COUNT, groups=groups) is not None


def test_instants_that_are_aggregated_are_left_to_spark() -> None:
    assert finishing("max(city)", TIME, city=TIME) is None
    assert finishing("max(city)", "date", city="date") is not None
