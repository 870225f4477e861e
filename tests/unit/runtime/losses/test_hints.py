"""What a user is told about a field that does not convert, and about rows without event time."""

from __future__ import annotations

from typing import Any

import pytest

from plait.runtime.losses.hints import Misfit, misfit_hint, no_time_hint, shape_hint


def hint(kind: str, text: str, **more: Any) -> str:
    values: dict[str, Any] = {"format": "csv", "column": "x", "type": kind, "text": text, "options": {}, **more}
    return misfit_hint(Misfit(**values))


@pytest.mark.parametrize(
    ("kind", "text", "advice"),
    [
        ("double", "NA", "OPTIONS (nullValue 'NA')"),
        ("int", "N/A", "OPTIONS (nullValue 'N/A')"),
        ("timestamp", "NULL", "OPTIONS (nullValue 'NULL')"),
        ("bigint", "1.5", "DOUBLE or DECIMAL"),
        ("int", "3000000000", "too large; declare the column BIGINT"),
        ("bigint", "99999999999999999999", "too large; declare the column DECIMAL(38,0)"),
        ("double", "1,5", "comma"),
        ("decimal(10,2)", "1,234.50", "comma"),
        ("timestamp", "1700000000", "timestamp_seconds(...)"),
        ("timestamp", "1700000000000", "timestamp_millis(...)"),
        ("timestamp", "1700000000000000", "timestamp_micros(...)"),
        ("timestamp", "31/12/2025 10:00", "timestampFormat 'dd/MM/yyyy HH:mm:ss'"),
        ("timestamp_ntz", "31.12.2025 10:00", "timestampNTZFormat 'dd.MM.yyyy HH:mm:ss'"),
        ("date", "2025/12/31", "dateFormat 'yyyy/MM/dd'"),
        ("boolean", "maybe", "try_cast"),
    ],
)
def test_a_field_that_does_not_convert_gets_advice_for_its_type(kind: str, text: str, advice: str) -> None:
    said = hint(kind, text)
    assert said.startswith(f"'{text}' is no {kind.upper()}")
    assert advice in said


def test_a_header_read_as_data_is_recognized_and_a_word_that_is_a_column_name_by_chance_is_not() -> None:
    names = ("id", "price", "ts")
    assert "header 'true'" in hint("bigint", "ID", names=names, row=("ID", "Price", "when"))
    assert "header" not in hint("bigint", "price", names=names, row=("price", "3.5", "2026-01-01"))


def test_a_format_that_was_given_is_not_recommended_again() -> None:
    said = hint("timestamp", "2026-01-01", options={"TimestampFormat": "dd.MM.yyyy"})
    assert said.endswith("does not have the form timestampFormat 'dd.MM.yyyy'")


def test_numbers_in_quotes_are_strings_in_json_and_have_no_null_value_there() -> None:
    assert "it is a string" in hint("bigint", "12", format="json", is_string=True)
    assert "try_cast(x AS DOUBLE)" in hint("double", "NA", format="json", is_string=True)


def test_rows_without_event_time_are_explained_by_how_the_source_is_read() -> None:
    json = no_time_hint("ts", text_format="json", tells_malformed=True, all_of_them=True)
    assert "every row" in json
    assert "the name in the JSON may be another one" in json
    frame = no_time_hint("ts", text_format=None, tells_malformed=False, all_of_them=False)
    assert "timestampFormat" in frame
    assert "_corrupt_record" in frame
    assert "timestampFormat" not in no_time_hint("ts", text_format="csv", tells_malformed=True, all_of_them=False)


@pytest.mark.parametrize("sample", ['"""x, y""",4', '"say ""x, y""!",4'])
def test_doubled_quotes_are_recognized_where_no_option_says_how_quotes_are_written(sample: str) -> None:
    assert shape_hint("csv", 2, sample, {}) == "quotes are doubled in a field of it: OPTIONS (escape '\"') reads them"
    assert "more or fewer than the 2 fields" in shape_hint("csv", 2, sample, {"Escape": '"'})


@pytest.mark.parametrize("sample", ['"",4,5', '4,"",5', "a,b,c"])
def test_empty_quoted_fields_are_no_doubled_quotes(sample: str) -> None:
    assert "more or fewer than the 2 fields" in shape_hint("csv", 2, sample, {})
