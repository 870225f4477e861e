"""What tells the kept rows of queries that group apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from plait.runtime.outputs.grouping import Grouping, grouping_of, rows_identity
from plait.sql.select.folding import folding_of
from tests.unit.sql.reading import bound

SELECT = "SELECT count(*) AS n, o.city FROM orders o WHERE o.city > 'b' GROUP BY window(o.ts, '1 hour'), o.city"
TYPES = {"ts": TimestampType(), "id": LongType(), "city": StringType()}


def grouping(text: str, *, can_be_null: bool = True) -> Grouping:
    query = bound(text)
    joined = tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))
    fields = [StructField(ref.name, TYPES[ref.column], can_be_null, {"m": 1 + can_be_null}) for ref in joined]
    made = grouping_of(query, joined, StructType(fields), StructType([]), time_zone="UTC", can_fold=False)
    assert made is not None
    return made


def folded(text: str) -> str:
    query = bound(text)
    assert query.aggregation is not None
    types = {ref: TYPES[ref.column].simpleString() for column in query.output for ref in column.expression.columns}
    folding = folding_of(query.aggregation, types)
    assert folding is not None
    return rows_identity(query.text, query.aggregation, types, folding.fold)


def test_checkpoints_hold_what_rows_mean_so_it_stays_the_same_in_later_versions() -> None:
    assert grouping(SELECT).identity == "b4a84fede1c71a00"
    assert folded(SELECT) == "01cdf61abd1356ac"


def test_whether_a_column_can_be_null_makes_no_difference() -> None:
    assert grouping(SELECT, can_be_null=False).identity == grouping(SELECT).identity


@pytest.mark.parametrize(
    "same",
    [
        SELECT + " HAVING n > 3",
        SELECT.replace("AS n", "AS many"),
        SELECT.replace("FROM orders o", "from  orders /* all */ o"),
    ],
)
def test_what_leaves_the_rows_what_they_are_makes_no_difference(same: str) -> None:
    assert (grouping(same).identity, folded(same)) == (grouping(SELECT).identity, folded(SELECT))


@pytest.mark.parametrize(
    "other",
    [
        SELECT.replace("'b'", "'c'"),
        SELECT.replace("'1 hour'", "'2 hours', '1 hour'"),
        SELECT.replace("'1 hour'", "'1 hour', '1 hour', '1 minute'"),
        SELECT.replace("count(*)", "count(o.id)"),
    ],
)
def test_other_rows_windows_and_columns_are_told_apart(other: str) -> None:
    assert grouping(other).identity != grouping(SELECT).identity
    assert folded(other) != folded(SELECT)


def test_other_types_keys_and_partial_aggregates_are_told_apart() -> None:
    query = bound(SELECT)
    assert query.aggregation is not None
    types = {ref: TYPES[ref.column].simpleString() for column in query.output for ref in column.expression.columns}
    folding = folding_of(query.aggregation, types)
    assert folding is not None
    fold, aggregation = folding.fold, query.aggregation
    others = [
        (types, None),
        (types, replace(fold, pane_us=1)),
        (types, replace(fold, keys=())),
        (types, replace(fold, partials=())),
        (dict.fromkeys(types, "varchar(3)"), fold),
    ]
    found = [rows_identity(query.text, aggregation, each, how) for each, how in [(types, fold), *others]]
    assert len(set(found)) == len(found)


SESSIONS = SELECT.replace("window(", "session_window(")


def test_sessions_are_told_apart_by_what_they_are_of() -> None:
    """Rows of a session that is over are let go, so other keys would lack rows although they read the same columns."""
    others = [
        SELECT,
        SESSIONS.replace("'1 hour'", "'2 hours'"),
        SESSIONS.replace("'1 hour'), o.city", "'1 hour'), o.city, length(o.city)"),
    ]
    found = [folded(text) for text in (SESSIONS, *others)]
    assert len(set(found)) == len(found)
    assert folded(SESSIONS + " HAVING n > 3") == folded(SESSIONS)


@pytest.mark.parametrize(
    ("keys", "columns"),
    [("", ()), (", o.city", ("o.city",)), (", o.city, o.id", ("o.city", "o.id")), (", o.city, o.id % 2", None)],
)
def test_keys_of_sessions_are_columns_unless_one_is_computed(keys: str, columns: tuple[str, ...] | None) -> None:
    made = grouping(f"SELECT count(*) AS n FROM orders o GROUP BY session_window(o.ts, '1 hour'){keys}")
    assert made.key_columns == columns
    assert made.read.names[-2:] == ["#begin", "#end"]
