import pytest

from plait.errors import SqlError
from plait.query.model import Operand
from plait.query.types import common_type, is_key_type, resolve_types
from tests.unit.sql.reading import bound


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("bigint", "bigint", "bigint"),
        ("tinyint", "smallint", "smallint"),
        ("int", "bigint", "bigint"),
        ("int", "decimal(10,2)", "decimal(12,2)"),
        ("bigint", "decimal(38,38)", "decimal(38,18)"),
        ("decimal(38,0)", "decimal(38,18)", "decimal(38,0)"),
        ("decimal(10,2)", "decimal(5,5)", "decimal(13,5)"),
        ("int", "float", "double"),
        ("decimal(10,2)", "float", "double"),
        ("float", "double", "double"),
        ("float", "float", "float"),
        ("string", "smallint", "bigint"),
        ("string", "decimal(10,2)", "double"),
        ("string", "float", "double"),
        ("string", "date", "date"),
        ("string", "timestamp_ntz", "timestamp_ntz"),
        ("string", "boolean", "boolean"),
        ("string", "binary", "binary"),
        ("date", "timestamp", "timestamp"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz", "timestamp"),
        ("boolean", "int", None),
        ("boolean", "date", None),
        ("date", "int", None),
        ("binary", "date", None),
        ("timestamp", "double", None),
        ("array<int>", "array<int>", None),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE", None),
        ("interval day to second", "interval day to second", "interval day to second"),
        ("interval day", "interval hour to minute", "interval day to minute"),
        ("interval month", "interval month", "interval month"),
        ("interval month", "interval year", "interval year to month"),
        ("interval month", "interval day", None),
        ("interval day", "string", None),
        ("interval day", "bigint", None),
        ("interval", "interval", None),
        ("void", "int", None),
    ],
)
def test_keys_are_compared_in_one_type_whichever_side_they_are_on(left: str, right: str, expected: str | None) -> None:
    assert common_type(left, right) == expected
    assert common_type(right, left) == expected


def test_nested_types_are_no_keys() -> None:
    assert is_key_type("decimal(38,18)")
    assert not any(map(is_key_type, ("map<int,int>", "struct<a:int>", "variant", "decimal", "char(5)")))


def test_types_are_filled_in_from_whoever_knows_the_operands() -> None:
    query = bound("SELECT 1 FROM orders o JOIN items i ON o.id = i.oid AND lower(o.city) = i.sku")
    types = {("o", "`id`"): "bigint", ("i", "`oid`"): "int", ("o", "lower(`city`)"): "string", ("i", "`sku`"): "string"}

    def type_of(operand: Operand) -> str:
        return types[operand.relation, operand.expression.sql]

    assert [equality.left.type for equality in query.equalities] == [None, None]
    assert [equality.left.type for equality in resolve_types(query, type_of).equalities] == ["bigint", "string"]


@pytest.mark.parametrize(
    ("types", "says"),
    [
        (
            ("bigint", "boolean"),
            r"query 'q': cannot compare `id` of o \(bigint\) with `oid` of i \(boolean\); cast one",
        ),
        (("bigint", "map<int,int>"), r"`oid` of i has type map<int,int>, which cannot be a join key"),
    ],
)
def test_operands_that_cannot_be_compared_are_refused(types: tuple[str, str], says: str) -> None:
    query = bound("SELECT 1 FROM orders o JOIN items i ON o.id = i.oid")
    with pytest.raises(SqlError, match=says):
        resolve_types(query, lambda operand: types[0] if operand.relation == "o" else types[1])
