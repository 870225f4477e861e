"""Predicates over wall-clock times, dates and instants: which pairs they are true of, by hand."""

from __future__ import annotations

import datetime
from datetime import timedelta

import pytest

from plait.query.types import is_key_type
from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import expected
from tests.oracle.nested_loop import nested_loop
from tests.property.case import Case
from tests.property.expressions import equal, instant
from tests.property.found import Condition, case, joined, query, stream, table
from tests.property.front_end import from_structure
from tests.property.running import check
from tests.property.values import KINDS

SECOND_US = 1_000_000
FIRST = datetime.datetime(2026, 1, 1)
WALL_CLOCK = (FIRST, FIRST + timedelta(days=1), FIRST + timedelta(seconds=5))
DAY, SECONDS = timedelta(days=1), timedelta(seconds=10)
TIMES: tuple[tuple[str, str, int, Condition], ...] = (
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 6, ("{a.x} <= {b.x}", lambda x, y: x <= y)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 3, ("{a.x} < {b.x}", lambda x, y: x < y)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 3, ("NOT ({a.x} <= {b.x})", lambda x, y: x > y)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 8, ("{a.x} < {b.x} + INTERVAL 1 DAY", lambda x, y: x < y + DAY)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 6, ("{a.x} - {b.x} < INTERVAL 1 SECOND", lambda x, y: x - y < SECONDS / 10)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 5, ("{a.x} BETWEEN {b.x} - INTERVAL 10 SECONDS AND {b.x} + INTERVAL 10 SECONDS",
                                           lambda x, y: abs(x - y) <= SECONDS)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 6, ("{a.x} <> {b.x}", lambda x, y: x != y)),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", 3, ("{a.x} = {b.x}", equal)),
    ("TIMESTAMP_NTZ", "TIMESTAMP", 3, ("{a.x} < {b.x}", lambda x, y: x < y)),
    ("TIMESTAMP", "TIMESTAMP_NTZ", 3, ("CAST({a.x} AS TIMESTAMP_NTZ) < {b.x}", lambda x, y: x < y)),
    ("DATE", "TIMESTAMP_NTZ", 4, ("{a.x} < {b.x}", lambda x, y: instant(x) < y)),
    ("TIMESTAMP_NTZ", "DATE", 5, ("{a.x} <= {b.x} + 0", lambda x, y: x <= instant(y))),
    ("DATE", "TIMESTAMP", 4, ("{a.x} < {b.x}", lambda x, y: instant(x) < y)),
    ("DATE", "DATE", 7, ("{a.x} - {b.x} < INTERVAL 1 DAY", lambda x, y: x - y < DAY)),
)  # fmt: skip


def values(type_: str) -> list[datetime.date]:
    return [each.date() if type_ == "DATE" else each for each in WALL_CLOCK]


def results(given: Case) -> int:
    """Return how many rows the only query has, the same however it is run."""
    wanted = table_rows(expected(given)["q0"])
    if given.queries[0].conditions:
        assert difference(wanted, nested_loop(given, given.queries[0])) is None
        assert check(given, from_structure) is None
    assert check(given) is None
    return len(wanted)


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-an-equality"])
@pytest.mark.parametrize(("left", "right", "rows", "condition"), TIMES)
def test_times_of_all_types_compare_as_times(
    left: str, right: str, rows: int, condition: Condition, beside: bool
) -> None:
    one = stream("r", f"k INT, x {left}", *((n % 2, n, 1, value) for n, value in enumerate(values(left))))
    other = stream("s", f"k INT, x {right}", *((n // 2, n, 1, value) for n, value in enumerate(values(right))))
    conditions = (condition, ("{a.k} = {b.k}", equal)) if beside else (condition,)
    for parallelism in (1, 3):
        assert results(case((one, other), joined(one, other, *conditions), parallelism=parallelism)) == rows


@pytest.mark.parametrize(
    ("time", "condition", "rows"),
    [
        ("TIMESTAMP_NTZ", "a.ts <= b.ts", 14),
        ("TIMESTAMP_NTZ", "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS", 14),
        ("TIMESTAMP_NTZ", "b.ts - a.ts <= INTERVAL 2 SECONDS AND a.ts < b.ts", 4),
        ("TIMESTAMP_NTZ", "CAST(a.ts AS TIMESTAMP) <= b.ts", 14),
        ("TIMESTAMP", "a.ts <= b.ts", 14),
    ],
)
def test_event_times_of_all_types_compare_as_times(time: str, condition: str, rows: int) -> None:
    left = stream("a", "k INT", *((n // 3, at * SECOND_US, 1) for n, at in enumerate((0, 1, 5, 7, 8))), time=time)
    right = stream("b", "k INT", *((n // 2, at * SECOND_US, 1) for n, at in enumerate((0, 3, 5, 6, 9))), time=time)
    for text in (condition, f"a.k = b.k AND {condition}"):
        asked = query(f"SELECT a.ts, b.ts FROM a, b WHERE {text}", ("a", "a"), ("b", "b"))
        for strategy in ("greedy", "ilp"):
            assert results(case((left, right), asked, strategy=strategy, parallelism=2)) == rows


def test_random_cases_draw_every_type_that_can_be_a_key() -> None:
    declared = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(12,3)", "string", "boolean")
    declared += ("binary", "date", "timestamp", "timestamp_ntz")
    assert all(map(is_key_type, declared))
    assert set(declared) <= {kind.spark.lower() for kind in KINDS}


def test_event_times_may_be_dates() -> None:
    day_us = 86_400 * SECOND_US
    left = stream("a", "k INT", *((n, n * day_us, 1) for n in range(3)), time="DATE", window_us=day_us)
    right = stream("b", "k INT", *((n, n * day_us, 1) for n in range(3)), time="TIMESTAMP_NTZ", window_us=day_us)
    asked = query("SELECT a.ts, b.ts FROM a, b WHERE a.k = b.k AND a.ts < b.ts", ("a", "a"), ("b", "b"))
    assert results(case((left, right), asked)) == 2


def test_a_wall_clock_band_at_the_ends_of_time_does_not_overflow() -> None:
    ends = (datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999))
    left = stream("r", "x TIMESTAMP_NTZ", *((n, n, value) for n, value in enumerate(ends)))
    right = table("t", "x TIMESTAMP_NTZ", *((value,) for value in (*ends, None)))
    for condition, rows in (("a.x <= b.x", 3), ("a.x + INTERVAL 100000 DAYS > b.x", 3), ("a.x < b.x", 1)):
        asked = query(f"SELECT a.x, b.x FROM r a, t b WHERE {condition}", ("a", "r"), ("b", "t"))
        assert results(case((left, right), asked)) == rows
