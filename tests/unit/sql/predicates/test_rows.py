"""Rows are compared field by field, as Spark compares structs: NULL fields are equal to each other."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import duckdb
import pytest

from plait.errors import UnsupportedQueryError
from plait.query.model import Query
from plait.sql.predicates.evaluation import resolve_known_residuals
from tests.unit.sql.reading import SOURCES, bound, selections

ROWS = ((1, "x"), (1, None), (None, "x"), (None, None), (0, ""), (2, "x"), (1, "x"))
"""Of (a BIGINT, b STRING); 0 and '' are what stands for NULL in the index."""


def joined(query: Query) -> Counter[tuple[Any, Any]]:
    """Return the positions of the pairs that the query's equalities take, evaluated by DuckDB."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO is_null(x) AS (x IS NULL)")
    for name, columns in (("o", "id BIGINT, city VARCHAR"), ("i", "oid INT, sku VARCHAR")):
        connection.execute(f"CREATE TABLE {name} (place INT, {columns})")
        connection.executemany(
            f"INSERT INTO {name} VALUES (?, ?, ?)", [[place, *row] for place, row in enumerate(ROWS)]
        )
    conditions = [
        f"{found.left.expression.sql} = {found.right.expression.sql}".replace("`", "").replace("isnull(", "is_null(")
        for found in query.equalities
    ]
    found = connection.execute(f"SELECT o.place, i.place FROM o, i WHERE {' AND '.join(conditions)}").fetchall()
    return Counter(found)


@pytest.mark.parametrize(
    "condition",
    [
        "(o.id, o.city) = (i.oid, i.sku)",
        "(o.id, o.city) <=> (i.oid, i.sku)",
        "struct(o.id, o.city) == struct(i.oid, i.sku)",
        "((o.id), (o.city, o.id)) = (i.oid, (i.sku, i.oid))",
        "(o.id, i.sku) = (i.oid, o.city)",
    ],
)
def test_rows_are_equal_if_their_fields_are_null_or_equal(condition: str) -> None:
    query = bound(f"SELECT 1 FROM orders o JOIN items i ON {condition}")
    pairs = product(enumerate(ROWS), repeat=2)
    assert query.residuals == ()
    assert joined(query) == Counter((one, other) for (one, left), (other, right) in pairs if left == right)


def test_what_tells_rows_apart_comes_before_what_tells_null_apart() -> None:
    """A store is partitioned by the first of its keys, in the order of their texts, as long as nothing is known."""
    query = bound("SELECT 1 FROM orders o JOIN items i ON (o.id, o.city) = (i.oid, i.sku)")
    keys = sorted(found.left.expression.sql for found in query.equalities)
    assert [key.split("(")[0] for key in keys] == ["coalesce", "coalesce", "isnull", "isnull"]


def test_fields_of_one_relation_become_selections() -> None:
    query = bound("SELECT 1 FROM orders o JOIN items i ON o.id = i.oid AND (o.city, 1) = ('x', o.cust)")
    assert selections(query) == {"o": ["(`city`) <=> ('x')", "(1) <=> (`cust`)"]}


def test_fields_of_unknown_type_are_compared_without_an_index() -> None:
    query = bound("SELECT 1 FROM orders o JOIN unseen u ON (o.id, o.city) = (u.id, u.city)")
    assert query.equalities == ()
    assert [theta.text for theta in query.residuals] == ["(`0` <=> `1`)", "(`0` <=> `1`)"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("(o.id, o.city) <> (i.oid, i.sku)", lambda left, right: left != right),
        ("(o.id, i.sku) != (i.oid, o.city)", lambda left, right: left != right),
        ("NOT (o.id, o.city) = (i.oid, i.sku)", lambda left, right: left != right),
        ("(o.id, o.city) = (i.oid, i.sku) OR o.id < i.oid", lambda left, right: left == right or less(left, right)),
        ("(o.id, o.city) IN ((i.oid, i.sku))", lambda left, right: left == right),
        ("(o.id, o.city) NOT IN (((i.oid, i.sku)))", lambda left, right: left != right),
        ("(o.id, o.city) IN ((i.oid, i.sku), (i.oid, 'x'))", lambda left, right: left in (right, (right[0], "x"))),
        ("((o.id, o.city)) NOT IN ((i.oid, i.sku), (2, 'x'))", lambda left, right: left not in (right, (2, "x"))),
    ],
)
def test_rows_are_compared_by_their_fields_wherever_they_stand(
    condition: str, holds: Callable[[tuple[Any, ...], tuple[Any, ...]], bool]
) -> None:
    query = bound(f"SELECT 1 FROM orders o JOIN items i ON {condition}")
    (residual,) = resolve_known_residuals(query, SOURCES).residuals
    connection = duckdb.connect()
    taken = []
    for left, right in product(ROWS, repeat=2):
        values = {"`id`": left[0], "`city`": left[1], "`oid`": right[0], "`sku`": right[1]}
        columns = ", ".join(f'CAST(? AS {operand.type}) AS "{n}"' for n, operand in enumerate(residual.operands))
        found = connection.execute(
            f"SELECT {residual.sql} FROM (SELECT {columns})",
            [values[operand.expression.sql] for operand in residual.operands],
        ).fetchone()
        taken.append(found == (True,))
    assert taken == [holds(left, right) for left, right in product(ROWS, repeat=2)]
    assert 0 < sum(taken) < len(taken)


def less(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return left[0] is not None and right[0] is not None and left[0] < right[0]


def test_a_mixture_of_rows_is_refused_for_their_order() -> None:
    with pytest.raises(UnsupportedQueryError, match="between rows; compare the fields"):
        bound("SELECT 1 FROM orders o JOIN items i ON (o.id, i.sku) < (i.oid, o.city)")


def test_spark_is_told_of_fields_instead_of_rows() -> None:
    """Spark compares rows of equal names and types only."""
    query = bound("SELECT 1 FROM orders o JOIN items i ON NOT (o.id, city) = (i.oid, sku) OR (o.cust, 1) IN ((qty, 2))")
    assert query.spark_text.endswith(
        "ON NOT (((o.id) <=> (i.oid)) AND ((city) <=> (sku))) OR (((o.cust) <=> (qty)) AND ((1) <=> (2)))"
    )
