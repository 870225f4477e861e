"""Cases that failed once, made small. Each test says what was wrong."""

from __future__ import annotations

import math

import pytest

from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import expected
from tests.oracle.nested_loop import nested_loop
from tests.property.case import Case
from tests.property.expressions import equal, greater
from tests.property.found import Condition, case, joined, query, stream, table
from tests.property.front_end import from_structure
from tests.property.patterns import distance
from tests.property.running import check

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
OF_LIMITS: tuple[tuple[str, tuple[object, ...], Condition], ...] = (
    ("BIGINT", (LARGEST, SMALLEST, 0), ("{a.v} < {b.v}", lambda x, y: x < y)),
    ("BIGINT", (LARGEST, SMALLEST, 0), ("{a.v} > {b.v}", lambda x, y: x > y)),
    ("DOUBLE", (math.nan, math.inf, -math.inf, 0.0, -0.0), ("{a.v} <= {b.v}", lambda x, y: not greater(x, y))),
    ("DOUBLE", (math.nan, math.inf, -math.inf, 0.0, -0.0), ("{a.v} > {b.v}", greater)),
    ("DOUBLE", (math.nan, math.inf, -math.inf, 1.0), ("{a.v} <> {b.v}", lambda x, y: not equal(x, y))),
    ("DOUBLE", (math.nan, math.inf, -math.inf, 1.0), ("abs({a.v} - {b.v}) < 1.5D", lambda x, y: abs(x - y) < 1.5)),
    (
        "STRING",
        ("", "é", "🎈", "ab"),
        ("levenshtein({a.v}, {b.v}) = length({a.v})", lambda x, y: distance(x, y) == len(x)),
    ),
)


def check_every_way(given: Case) -> None:
    """Check a case with its conditions through text, past it, and against loops."""
    wanted = expected(given)
    for asked in given.queries:
        assert difference(table_rows(wanted[asked.name]), nested_loop(given, asked)) is None
    assert check(given) is None
    assert check(given, from_structure) is None


@pytest.mark.parametrize(("type_", "values", "condition"), OF_LIMITS)
def test_comparisons_at_the_limits_of_a_type_are_those_of_sql(
    type_: str, values: tuple[object, ...], condition: Condition
) -> None:
    left = stream("r", f"k BIGINT, v {type_}", *((n % 2, n, n, value) for n, value in enumerate(values)))
    right = table("f", f"k BIGINT, v {type_}", *enumerate(values), (9, None))
    alone = joined(left, right, condition)
    beside = joined(
        left, right, condition, ("{a.k} = {b.k}", equal), ("abs({a.k} - {b.k}) < 2", lambda x, y: abs(x - y) < 2)
    )
    check_every_way(case((left, right), alone, beside, parallelism=2))


def test_a_stream_that_no_query_reads_is_taken_in_without_complaint() -> None:
    read = stream("r", "k BIGINT", (0, 1, 7))
    unread = stream("s", "k BIGINT", (0, 1, 7))
    assert check(case((read, unread), query("SELECT k FROM r", ("r", "r")))) is None


def test_a_table_of_which_no_column_is_needed_still_multiplies_rows() -> None:
    arrivals = stream("r", "k BIGINT", (0, 1, 7), (1, 2, 8))
    factor = table("f", "n INT", (1,), (2,), (3,))
    for parallelism in (1, 2):
        for selection in ("", " WHERE f.n > 1"):
            crossed = query(f"SELECT r.k FROM r CROSS JOIN f{selection}", ("r", "r"), ("f", "f"))
            assert check(case((arrivals, factor), crossed, parallelism=parallelism)) is None
