import pytest

from plait.errors import SqlError
from plait.query.model import Column
from plait.sql.lexis.ddl import parse_columns, struct_fields
from tests.unit.sql.reading import columns, cursor_over


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BIGINT", "bigint"),
        ("long", "bigint"),
        ("INTEGER", "int"),
        ("Short", "smallint"),
        ("byte", "tinyint"),
        ("REAL", "float"),
        ("DECIMAL", "decimal(10,0)"),
        ("dec(5)", "decimal(5,0)"),
        ("NUMERIC(12, 3)", "decimal(12,3)"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("STRING COLLATE utf8_lcase", "string collate UTF8_LCASE"),
        ("ARRAY<ARRAY<INT>>", "array<array<int>>"),
        ("MAP<STRING, ARRAY<MAP<INT, DATE>>>", "map<string,array<map<int,date>>>"),
        ("STRUCT<Street: STRING COMMENT 'x', `zip code` INT NOT NULL>", "struct<Street:string,`zip code`:int>"),
        ("STRUCT<>", "struct<>"),
        ("INTERVAL DAY TO SECOND", "interval day to second"),
        ("INTERVAL YEAR", "interval year"),
        ("time", "time(6)"),
        ("TIME(3)", "time(3)"),
        ("VARIANT", "variant"),
    ],
)
def test_types_come_out_as_spark_prints_them(written: str, expected: str) -> None:
    assert columns(f"a {written}, b INT") == (Column(name="a", type=expected), Column(name="b", type="int"))


def test_names_keep_their_spelling_and_comments_and_not_null_are_left_out() -> None:
    found = columns("`O d.d` INT NOT NULL COMMENT 'a, b)', date DATE, `tick``et` STRING COMMENT 'it''s'")
    assert [column.name for column in found] == ["O d.d", "date", "tick`et"]
    assert [column.type for column in found] == ["int", "date", "string"]


def test_the_fields_of_a_struct_can_be_read_back() -> None:
    (column,) = columns("a STRUCT<City: STRING, `zip code`: STRUCT<n: DECIMAL(5,2)>>")
    fields = struct_fields(column.type)
    assert fields == (Column(name="City", type="string"), Column(name="zip code", type="struct<n:decimal(5,2)>"))
    assert struct_fields("array<int>") is None
    assert struct_fields("struct<zip code:int>") is None
    assert struct_fields("struct<>") == ()


@pytest.mark.parametrize(
    ("written", "column", "says"),
    [
        ("(a TEXT)", 4, "'TEXT' is not a type of Spark; use STRING"),
        ("(a VARCHAR(5))", 4, "declare the column as STRING"),
        ("(a BIGNIT)", 4, "did you mean 'bigint'"),
        ("(a ARRAY)", 9, "array<int>"),
        ("(a INT b INT)", 8, "expected '\\)' or ','"),
        ("(a)", 3, "expected a type"),
        ("(a STRUCT<b INT)", 16, "expected '>'"),
        ("(a DECIMAL(x))", 12, "expected a whole number"),
        ("(1 INT)", 2, "expected the name of a column"),
    ],
)
def test_a_wrong_column_list_is_refused_where_it_goes_wrong(written: str, column: int, says: str) -> None:
    with pytest.raises(SqlError, match=says) as caught:
        parse_columns(cursor_over(written))
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize("written", ["(a INT, A INT)", "(a DECIMAL(39,0))", "(a DECIMAL(5,6))"])
def test_mistakes_that_do_not_stop_the_reading_are_collected(written: str) -> None:
    cursor = cursor_over(written)
    parse_columns(cursor)
    assert len(cursor.problems) == 1
