"""An expression that was read before is known again: wherever it stands, its references are where they are now."""

from __future__ import annotations

import pytest

from plait.errors import SqlError
from plait.sql.expressions.parsing import Parsed, parse_expression
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import tokenize


def parsed(before: str, text: str) -> Parsed:
    """Return what is read of `text`, which stands behind `before`."""
    whole = before + text
    source = SourceText(text=whole)
    return parse_expression(source, whole, tokenize(source, whole, len(before), len(whole)))


def test_references_are_counted_from_the_start_of_the_text() -> None:
    text = "o.first + coalesce(i.`a b`, current_date)"
    found = [parsed(before, text) for before in ("", "SELECT o.id, ", "SELECT ")]
    for before, each in zip(("", "SELECT o.id, ", "SELECT "), found, strict=True):
        whole = before + text
        spans = [whole[reference.start : reference.ends[-1]] for reference in each.references]
        assert spans == ["o.first", "i.`a b`", "current_date"]
        assert [reference.is_bare for reference in each.references] == [False, False, True]


def test_an_alias_is_the_token_that_stands_there() -> None:
    for before in ("", "SELECT "):
        alias = parsed(before, "o.price * 2 doubled").alias
        assert alias is not None
        assert (alias.value, alias.start) == ("doubled", len(before) + len("o.price * 2 "))
    assert parsed("", "o.price * 2").alias is None


def test_what_is_wrong_is_told_of_each_place() -> None:
    for before in ("", "SELECT o.id, "):
        with pytest.raises(SqlError) as raised:
            parsed(before, "o.price +")
        assert raised.value.column == len(before) + len("o.price ") + 1


def test_the_same_letters_in_other_tokens_are_another_expression() -> None:
    quoted, plain = parsed("", "`o.price`"), parsed("", "o.price")
    assert [reference.parts for reference in (*quoted.references, *plain.references)] == [("o.price",), ("o", "price")]
