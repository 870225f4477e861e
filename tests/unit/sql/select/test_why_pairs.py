"""Of which relations a query only counts matches, and why pairs are made of others."""

from __future__ import annotations

import pytest

from plait.query.model import Operand
from plait.query.types import resolve_types
from plait.sql.select.folding import folding_of
from plait.sql.select.why_pairs import countable, why_pairs
from tests.unit.sql.reading import bound

TYPES = {"ts": "timestamp", "cust": "int", "city": "string", "id": "bigint", "flag": "boolean"}


def reasons(select: str, tail: str, **types: str) -> dict[str, str | None]:
    known = {**TYPES, **types}

    def type_of(operand: Operand) -> str:
        return known[operand.expression.columns[0]]

    query = resolve_types(bound(f"SELECT {select} FROM orders o {tail}"), type_of)
    assert query.aggregation is not None
    joined = {ref: known[ref.column] for column in query.output for ref in column.expression.columns}
    folding = folding_of(query.aggregation, joined)
    fold = None if folding is None else folding.fold
    found = {each.alias: why_pairs(query, fold, joined, each.alias) for each in query.relations}
    assert countable(query, fold, joined) == tuple(alias for alias, reason in found.items() if reason is None)
    return found


def test_matches_are_counted_where_nothing_else_is_asked() -> None:
    by = "GROUP BY window(o.ts, '1 hour')"
    assert reasons("count(*), sum(p.cust), max(o.city)", f"JOIN orders p ON o.id = p.id {by}") == {"o": None, "p": None}


def test_a_key_that_joins_is_the_same_for_all_matches() -> None:
    found = reasons("o.id, p.id, count(*)", "JOIN orders p ON o.id = p.id GROUP BY window(o.ts, '1 hour'), o.id, p.id")
    assert found == {"o": None, "p": None}
    found = reasons("o.city, count(*)", "JOIN orders p ON o.id = p.id GROUP BY window(o.ts, '1 hour'), o.city")
    assert found == {"o": "each value of o.city is needed", "p": None}


@pytest.mark.parametrize(
    ("key", "type_", "reason"),
    [
        ("o.city = p.city", "string", None),
        ("o.city = p.city", "double", "each value of o.city is needed"),
        ("lower(o.city) = p.city", "string", "each value of o.city is needed"),
    ],
)
def test_a_key_of_which_different_values_are_equal_is_not(key: str, type_: str, reason: str | None) -> None:
    tail = f"JOIN orders p ON {key} GROUP BY window(p.ts, '1 hour'), o.city"
    assert reasons("o.city, count(*)", tail, city=type_) == {"o": reason, "p": None}


@pytest.mark.parametrize(
    ("select", "on", "reason"),
    [
        ("collect_list(o.id)", "o.id = p.id", "not all of what is computed can be put together from parts"),
        ("count(DISTINCT p.city)", "o.id = p.id", "each value of p.city is needed"),
        ("count(*)", "o.id = p.id AND o.cust < p.cust", "p is joined by more than equal keys"),
        ("count(*)", "o.ts BETWEEN p.ts AND p.ts + INTERVAL 1 HOUR", "p is joined by more than equal keys"),
    ],
)
def test_pairs_are_made_where_more_is_asked(select: str, on: str, reason: str) -> None:
    assert reasons(select, f"JOIN orders p ON {on} GROUP BY window(o.ts, '1 hour')")["p"] == reason


def test_matches_are_counted_beside_the_relation_that_sessions_are_of() -> None:
    found = reasons("count(*), sum(p.cust)", "JOIN orders p ON o.id = p.id GROUP BY session_window(o.ts, '1 hour')")
    assert found == {"o": "sessions are of the time of o", "p": None}


def test_pairs_are_made_where_rows_may_lack_a_partner_and_of_other_times() -> None:
    by = "GROUP BY window(o.ts, '1 hour')"
    assert reasons("count(*)", f"LEFT JOIN orders p ON o.id = p.id {by}")["p"] == "rows may lack a partner"
    found = reasons("count(*)", f"JOIN orders p ON o.id = p.id {by}", ts="timestamp_ntz")
    assert found == {"o": "windows are of o.ts, which is no TIMESTAMP", "p": None}
    assert reasons("count(*)", f"CROSS JOIN orders p {by}")["p"] == "p is joined with all rows"
