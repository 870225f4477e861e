"""The statement that says which rows are certain: what of predicates it has to say itself."""

from __future__ import annotations

import pytest

from plait.operators.close.certain_sql import Span, certain_sql
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
