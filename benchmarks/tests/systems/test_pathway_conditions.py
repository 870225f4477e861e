"""Conditions read for Pathway mean what they mean in SQL, and what cannot be asked is said."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.systems.pathway_conditions import Condition, Value
from benchmarks.systems.pathway_types import typed
from benchmarks.systems.task import UnableError

TYPES = {
    "a.k": "bigint",
    "b.k": "bigint",
    "a.d": "decimal(12,2)",
    "b.d": "decimal(9,4)",
    "a.f": "double",
    "a.ts": "timestamp",
    "b.ts": "timestamp",
    "a.day": "date",
    "a.s": "string",
    "b.s": "string",
    "a.ok": "boolean",
}
EPOCH = datetime(1970, 1, 1)
CONDITIONS = (
    "a.k < b.k",
    "a.k % 3 = 1",
    "a.k % -3 <> b.k % 3",
    "a.k - b.k * 2 + 1 >= -(b.k) AND a.k != 4",
    "a.k BETWEEN -5 AND 5 AND b.k IN (1, 2, 3, -4)",
    "NOT (a.k = b.k OR a.k > 7)",
    "abs(a.k - b.k) <= 6",
    "a.d < b.d",
    "a.d * b.d > 10.5 AND a.d <= 90",
    "a.f > a.d OR a.f < a.k",
    "a.ts <= b.ts + INTERVAL 5 SECONDS",
    "a.ts > b.ts - INTERVAL '1 MINUTE' and INTERVAL '2' HOUR + a.ts >= b.ts",
    "a.ts - b.ts < INTERVAL 90 MINUTES",
    "a.ts >= TIMESTAMP '2024-01-01 06:30:00.5' AND b.ts < '2024-01-01 12:00:00'",
    "a.day = DATE '2024-01-02' OR a.day > '2024-01-03'",
    "a.day <= a.ts AND a.day + INTERVAL 1 DAY > b.ts",
    "a.s = 'it''s' OR a.s < b.s",
    "a.ok AND a.k > 0",
    "a.ok = false",
)


def held(value: Any, type_: str) -> Any:
    """Return what Pathway holds for a value."""
    match value:
        case Decimal():
            return int(value.scaleb(typed(type_).scale))
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - EPOCH.date()).days
    return value


def read(text: str, row: dict[str, Any]) -> Any:
    columns = {name: Value(expression=held(row.get(name, 1), kind), typed=typed(kind)) for name, kind in TYPES.items()}
    return Condition(text=text, columns=columns).read()


moments = st.datetimes(datetime(2024, 1, 1), datetime(2024, 1, 1, 23))
ROWS = st.fixed_dictionaries(
    {
        "a.k": st.integers(-9, 9),
        "b.k": st.integers(-9, 9),
        "a.d": st.decimals(-99, 99, places=2),
        "b.d": st.decimals(-99, 99, places=4),
        "a.f": st.floats(-99, 99),
        "a.ts": moments,
        "b.ts": moments,
        "a.day": st.dates(date(2023, 12, 31), date(2024, 1, 4)),
        "a.s": st.sampled_from(["", "it's", "z", "é"]),
        "b.s": st.sampled_from(["", "it's", "z", "é"]),
        "a.ok": st.booleans(),
    }
)


@settings(deadline=None)
@given(row=ROWS)
def test_a_condition_holds_where_it_does_in_duckdb(row: dict[str, Any]):
    sides = ", ".join(f"(SELECT {', '.join(_given(name) for name in row if name[0] == side)}) {side}" for side in "ab")
    values = [row[name] for side in "ab" for name in row if name[0] == side]
    found = duckdb.execute(f"SELECT {', '.join(f'({condition})' for condition in CONDITIONS)} FROM {sides}", values)
    expected = found.fetchone()
    assert [bool(read(condition, row)) for condition in CONDITIONS] == list(expected or ())


def _given(name: str) -> str:
    kind = "varchar" if TYPES[name] == "string" else TYPES[name]
    return f"CAST(? AS {kind}) AS {name[2:]}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a.k / 2 = 1", "'/ 2 = 1'"),
        ("sqrt(a.k) = 1", "'sqrt'"),
        ("a.k", "a number as a condition"),
        ("a.k = 1 b.k", "'b.k'"),
        ("a.k = 'x'", "a number beside a text"),
        ("a.ts + b.ts > a.ts", "the sum of two times"),
        ("a.s + a.k > a.k", "a text + a number"),
        ("a.k < c.k", "'c.k'"),
        ("a.k <", "the end"),
        ("a.k IN (1, 2", "what stands where ')' was expected"),
        ("a.ts < a.ts + INTERVAL 1 MONTH", "the interval"),
        ("a.day = 'soon'", "'soon' as a date"),
        ("a.f % 2 = 1", "a remainder of floating point"),
    ],
)
def test_what_is_not_translated_is_named(text: str, what: str):
    with pytest.raises(UnableError) as raised:
        read(text, {"a.f": 1.0, "a.ok": True, "a.s": "", "b.s": ""})
    assert str(raised.value).startswith(what)
    assert f"the condition '{text}'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "rejects"),
    [("a.k < b.k AND a.k IN (1, 2)", True), ("a.k < 1 OR b.k > 2", False), ("NOT a.k = 1", False)],
)
def test_only_conjunctions_of_comparisons_are_known_to_reject_null(text: str, rejects: bool):
    columns = {name: Value(expression=1, typed=typed("bigint")) for name in ("a.k", "b.k")}
    condition = Condition(text=text, columns=columns)
    condition.read()
    assert condition.rejects_null is rejects


@pytest.mark.parametrize("kind", ["array<int>", "decimal(38,2)", "binary"])
def test_a_type_that_pathway_lacks_is_named(kind: str):
    with pytest.raises(UnableError, match="no type for a column of type"):
        typed(kind)
