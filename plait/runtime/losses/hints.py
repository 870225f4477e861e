"""What to do about a bad row: advice from its reason, its column and the text that did not convert. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from typing_extensions import assert_never

TextFormat: TypeAlias = Literal["csv", "json"]

_NULL_WORDS = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "\\n", "-", "--", "?", "."})
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_FRACTIONS = ("float", "double", "decimal")
_TIMES = ("timestamp", "timestamp_ntz", "date")
_WHOLE = re.compile(r"[+-]?\d+")
_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?|[+-]?\d+\.?[eE][+-]?\d+|[+-]?\d+\.")
_COMMA = re.compile(r"[+-]?[\d.' ]*\d,\d+|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_DOUBLED = re.compile(r'"""|[^",;|\t]""[^",;|\t]')
"""A quote within a field, doubled as most programs write it; Spark's reader has to be told."""
_UNITS: tuple[tuple[range, str, str], ...] = (
    (range(9, 11), "seconds", "timestamp_seconds"),
    (range(12, 14), "milliseconds", "timestamp_millis"),
    (range(15, 17), "microseconds", "timestamp_micros"),
)
"""How many digits a number of our time has, by unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A field whose text does not convert. `is_string`: JSON, and there it stands in quotes. `names`: the declared
    columns, `row`: the texts of all fields.
    """

    format: TextFormat
    column: str
    type: str
    text: str
    is_string: bool = False
    options: Mapping[str, str]
    names: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


def misfit_hint(field: Misfit) -> str:
    """Return what the text is not, and what to do."""
    wrong = f"'{_short(field.text)}' is no {field.type.upper()}"
    if field.format == "csv" and _is_header(field):
        return f"{wrong}, it looks like the header: add OPTIONS (header 'true')"
    if field.text.strip().lower() in _NULL_WORDS and not (field.format == "json" and not field.is_string):
        if field.format == "csv":
            return f"{wrong}: OPTIONS (nullValue '{field.text}') reads it as NULL"
        return f"{wrong}: declare the column STRING and use try_cast({field.column} AS {field.type.upper()})"
    if field.type in _TIMES:
        return f"{wrong}: {_time_advice(field)}"
    return f"{wrong}: {_value_advice(field)}"


def _is_header(field: Misfit) -> bool:
    """Tell whether the row is the declared names, or at least this field and most others are."""
    names = {name.lower() for name in field.names}
    alike = sum(text.strip().lower() in names for text in field.row)
    return field.text.strip().lower() in names and alike * 2 > len(field.row)


def _time_advice(field: Misfit) -> str:
    digits = field.text.strip()
    if digits.isdigit():
        unit = next((unit for unit in _UNITS if len(digits) in unit[0]), None)
        if unit is not None:
            return f"these are {unit[1]} since 1970; declare the column BIGINT and convert it with {unit[2]}(...)"
        return "declare the column BIGINT and convert it (timestamp_seconds, timestamp_millis, timestamp_micros)"
    option = {"timestamp": "timestampFormat", "timestamp_ntz": "timestampNTZFormat"}.get(field.type, "dateFormat")
    given = next((value for name, value in field.options.items() if name.lower() == option.lower()), None)
    if given is not None:
        return f"it does not have the form {option} '{given}'"
    return f"say what it looks like, such as OPTIONS ({option} '{_example(field)}')"


def _example(field: Misfit) -> str:
    day = "yyyy-MM-dd"
    if "/" in field.text:
        day = "yyyy/MM/dd" if re.match(r"\d{4}/", field.text.strip()) else "dd/MM/yyyy"
    elif re.match(r"\d{1,2}\.\d{1,2}\.", field.text.strip()):
        day = "dd.MM.yyyy"
    return day if field.type == "date" else f"{day} HH:mm:ss"


def _value_advice(field: Misfit) -> str:
    text = field.text.strip()
    is_number = field.type in _INTEGERS or field.type.startswith(_FRACTIONS)
    if field.format == "json" and field.is_string and is_number:
        return (
            f"in the JSON it is a string; declare the column STRING and convert it with "
            f"try_cast({field.column} AS {field.type.upper()})"
        )
    if field.type in _INTEGERS and _FRACTION.fullmatch(text):
        return "declare the column DOUBLE or DECIMAL"
    if field.type in _INTEGERS and _WHOLE.fullmatch(text):
        return "it is too large; declare the column " + ("DECIMAL(38,0)" if field.type == "bigint" else "BIGINT")
    if is_number and _COMMA.fullmatch(text):
        return (
            "it is written with a comma; declare the column STRING and convert it, as in CAST(replace(x, ',', '.') ...)"
        )
    return "declare the column as what it is, or STRING and convert it with try_cast"


def shape_hint(form: TextFormat, fields: int, sample: str, options: Mapping[str, str]) -> str:
    """Return advice on a record that is no row of so many fields."""
    match form:
        case "csv":
            if _DOUBLED.search(sample) and not {"quote", "escape"} & {name.casefold() for name in options}:
                return "quotes are doubled in a field of it: OPTIONS (escape '\"') reads them"
            return (
                f"it has more or fewer than the {fields} fields declared: check the columns, the separator "
                "(sep) and quotes (quote, escape)"
            )
        case "json":
            return "it is no JSON object of one line: records that take several lines need OPTIONS (multiLine 'true')"
        case _:
            assert_never(form)


def no_time_hint(time: str, *, text_format: TextFormat | None, tells_malformed: bool, all_of_them: bool) -> str:
    """Return why rows may have no event time. `tells_malformed`: fields that do not convert are counted elsewhere."""
    whose = f"'{time}' is NULL in {'every row so far' if all_of_them else 'these rows'}"
    match text_format:
        case "json":
            reason = "the field is missing or null; the name in the JSON may be another one, also in its case"
        case "csv":
            reason = "the field is empty, or equal to nullValue"
        case None:
            reason = "in the input, or made so by what was applied to it"
        case _:
            assert_never(text_format)
    if not tells_malformed:
        reason += (
            "; text that does not convert is NULL as well: check timestampFormat, or give the DataFrame's schema a "
            "column _corrupt_record STRING to see the text"
        )
    return f"{whose}: {reason}"


OUT_OF_RANGE = (
    "beyond the year 148,000: the unit is probably wrong; convert numbers with timestamp_millis(...) or "
    "timestamp_micros(...)"
)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
