"""What a column of a bucket is can be told from its name, whatever its type and expression are."""

from __future__ import annotations

import pytest

from plait.plan.columns import StoredColumn, stored_column
from plait.plan.model import KeyColumn, Selection, ValueColumn
from plait.query.model import SourceExpression

TYPES = (
    "bigint",
    "decimal(10,2)",
    "interval day to second",
    "interval month",
    "string collate UNICODE_CI",
    "struct<a b:interval day to second,c:decimal(3,1)>",
    "array<struct<x:map<string,int>>>",
)
HANDED_AS = {"interval month": "int"}
"""Types whose values Spark hands to a task as another one."""

TEXTS = ("`a`", "`a b`", "concat(`a`, ' to second ', `b`)", "`#k bigint`")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("type_", TYPES)
def test_keys_and_values_are_told_apart_with_type_and_expression(type_: str, text: str) -> None:
    expression = SourceExpression(sql=text, columns=("a",))
    for name, kind in (
        (KeyColumn(expression=expression, type=type_).name, "key"),
        (KeyColumn(expression=expression, type=type_, by_size=True).name, "ordered key"),
        (ValueColumn(expression=expression, type=type_).name, "value"),
    ):
        found = stored_column(name)
        assert (found.kind, found.type, found.text, found.name) == (kind, type_, text, name)
        assert found.stored_type == ("bigint" if kind != "value" else HANDED_AS.get(type_, type_))


def test_the_value_behind_a_key_is_the_one_the_key_names() -> None:
    key = KeyColumn(expression=SourceExpression(sql="lower(`a`)", columns=("a",)), type="string collate UTF8_LCASE")
    assert stored_column(key.name).value.name == key.value_name


def test_a_key_tells_the_column_it_is_if_it_is_one() -> None:
    bare = KeyColumn(expression=SourceExpression(sql="`a``b`", columns=("a`b",)), type="bigint")
    assert stored_column(bare.name).source_column == "a`b"
    computed = KeyColumn(expression=SourceExpression(sql="`a` + `b`", columns=("a", "b")), type="bigint")
    assert stored_column(computed.name).source_column is None


def test_other_columns_are_what_they_are() -> None:
    selection = Selection(conjuncts=(SourceExpression(sql="`v` > 5", columns=("v",)),))
    assert stored_column(selection.column) == StoredColumn(kind="selected", text=selection.sql)
    assert [stored_column(name).kind for name in ("#tau", "#bits", "#bits12", "a", "#")] == [
        "time",
        "bits",
        "bits",
        "raw",
        "raw",
    ]
    assert stored_column("qty").source_column == "qty"
    assert stored_column("#tau").source_column is None
