"""The statement that says which rows are certain: what of predicates it has to say itself."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from plait.operators.close.certain_sql import Span, certain_sql, column_name, table_name
from plait.query.model import Query
from plait.query.types import resolve_types
from plait.sql.predicates.evaluation import resolve_residuals
from tests.unit.sql.select.test_outer_joins import bound

SPAN = Span(since_us=0, last_us=9)


def statement(on: str, type_: str, empty: tuple[str, ...] = ()) -> str:
    query = resolve_types(bound(f"SELECT a.k FROM a LEFT JOIN b ON {on}"), lambda operand: type_)
    return certain_sql(resolve_residuals(query, lambda operand: type_), SPAN, empty)


@pytest.mark.parametrize("type_", ["double", "bigint", "timestamp"])
def test_what_an_index_would_decide_is_a_comparison_of_its_keys(type_: str) -> None:
    assert '"1.s0" >= "0.s0"' in statement("a.x <= b.x", type_)


def test_a_bound_that_is_not_zero_cannot_overflow() -> None:
    assert 'CAST("1.s0" AS HUGEINT) - "0.s0" <= 5' in statement("b.x - a.x <= 5", "bigint")


def test_a_bound_between_fractions_may_be_wide_so_the_predicate_itself_is_asked() -> None:
    text = statement("abs(b.x - a.x) < 0.5", "double")
    assert "HUGEINT" not in text
    assert "0.5" in text


def test_texts_are_compared_beside_their_hashes() -> None:
    text = statement("a.x = b.x", "string")
    assert '"0.s0" = "1.s0"' in text
    assert '"0.s1" = "1.s1"' in text


def test_nothing_is_asked_of_a_relation_without_rows() -> None:
    assert '"1.s0"' not in statement("a.x = b.x", "string", empty=("b",))


def test_what_lacks_a_relation_that_has_no_rows_meets_what_its_nulls_allow() -> None:
    query = bound("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.x = c.x OR c.k > 3")
    query = resolve_types(query, lambda _: "bigint")
    query = resolve_residuals(query, lambda operand: "boolean" if ">" in operand.expression.sql else "bigint")
    row = {"tau": 1, "until": 5}
    assert found(query, [row], [], [row]) == [(0, None, 0)]


def test_a_row_that_a_first_partner_may_still_let_in_is_waited_for_by_what_it_would_meet() -> None:
    query = bound("SELECT a.k, c.k FROM a LEFT SEMI JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k")
    query = resolve_types(query, lambda _: "bigint")
    waiting, met = {"tau": 0, "until": 10_000_000, "s0": 7}, {"tau": 0, "until": 1, "s0": 7}
    assert found(query, [waiting], [], [met]) == []
    assert found(query, [waiting], [{"tau": 9, "until": 9, "s0": 7}], [met]) == [(0, 0)]


def found(query: Query, *rows: list[dict[str, int]]) -> list[tuple[int | None, ...]]:
    """Return what is certain of these rows, all of which are new."""
    connection = duckdb.connect()
    for position, given in enumerate(rows):
        names = ("i", "new", "tau", "until", *(f"s{number}" for number in range(3)))
        told = [{"i": place, "new": True, "s0": 7, "s1": 7, "s2": 7, **row} for place, row in enumerate(given)]
        columns = {column_name(position, name): [row[name] for row in told] for name in names}
        connection.register(table_name(position), pa.table(columns))
    empty = {relation.alias for relation, given in zip(query.relations, rows, strict=True) if not given}
    return connection.sql(certain_sql(query, SPAN, empty)).fetchall()


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("interval day to second", "INTERVAL"),
        ("interval hour", "INTERVAL"),
        ("timestamp_ntz", "TIMESTAMP"),
        ("binary", "BLOB"),
        ("decimal(9,2)", "decimal(9,2)"),
    ],
)
def test_a_null_of_a_relation_without_rows_has_a_type_that_duckdb_knows(type_: str, name: str) -> None:
    query = resolve_types(bound("SELECT a.k FROM a LEFT JOIN b ON a.x <=> b.x OR a.k > 3"), lambda _: type_)
    query = resolve_residuals(query, lambda operand: "boolean" if ">" in operand.expression.sql else type_)
    assert f"CAST(NULL AS {name})" in certain_sql(query, SPAN, ("b",))
    duckdb.sql(f"SELECT CAST(NULL AS {name})")
