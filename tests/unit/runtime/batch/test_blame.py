"""A text that Spark cannot read as what it is compared with: the message names query, condition and place."""

from __future__ import annotations

import pytest

from plait.query.model import Operand, Query
from plait.query.types import resolve_types
from plait.runtime.batch.run_errors import blamed_condition, explained
from tests.unit.sql.reading import bound

VALUE = 'The value \'x1\' of the type "STRING" cannot be cast to "BIGINT" because it is malformed'
FAILED = f"[CAST_INVALID_INPUT] {VALUE}. Use `try_cast` to ... SQLSTATE: 22018\n== SQL (line 1, position 1) ==\n"
KEY = "CAST(CAST((`sku`) AS BIGINT) AS BIGINT) AS c3\n^^^^"


def query() -> Query:
    def type_of(operand: Operand) -> str:
        return "string" if operand.expression.sql == "`sku`" else "bigint"

    text = "SELECT o.id FROM orders o JOIN items i\nON o.id = i.sku WHERE o.city > 5"
    return resolve_types(bound(text), type_of)


def test_the_condition_that_compares_it_is_named_with_its_place_and_a_way_out() -> None:
    found = explained(RuntimeError(FAILED + KEY), [query()])
    assert str(found).startswith(
        "2:4: query 'q' compares o.`id` with i.`sku` as bigint, which Spark cannot do for some"
    )
    assert "the value 'x1' of the type" in str(found)
    assert "Write try_cast(i.`sku` AS BIGINT), which is NULL" in str(found)


def test_a_selection_is_named_too() -> None:
    found = blamed_condition(FAILED + "(CASE WHEN `city` > 5 THEN 1L ELSE 0L END) AS c1\n^^^", [query()])
    assert found is not None
    assert "query 'q' selects (o.`city` > 5)" in found.message


def test_several_conditions_that_read_it_are_counted() -> None:
    found = blamed_condition(FAILED + KEY, [query(), query()])
    assert found is not None
    assert "as bigint (1 more conditions read the same)" in found.message


@pytest.mark.parametrize(
    "text",
    [
        FAILED + "CAST((`other`) AS BIGINT)\n^^^",
        FAILED.split("==")[0],
        "[DIVIDE_BY_ZERO] Division by zero\n== SQL (line 1, position 1) ==\n" + KEY,
    ],
    ids=["no condition", "no SQL", "another error"],
)
def test_no_query_is_blamed_for_anything_else(text: str) -> None:
    assert blamed_condition(text, [query()]) is None
    assert "the run failed while Spark read or evaluated the input" in str(explained(RuntimeError(text), [query()]))
