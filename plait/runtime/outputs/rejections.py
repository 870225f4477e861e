"""What Spark says against a query, told about the user's own text: its words without plans, at the place it means.

Spark analyzes another text than the user wrote (names of sources are replaced), and its offsets count in that. The
piece it complains about is found again in the user's text by its tokens: as the same occurrence of the same piece.
"""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
    TimeType,
    YearMonthIntervalType,
)

from plait.errors import SqlError
from plait.query.model import Query
from plait.query.places import TextPlace
from plait.sql.select.located import occurrence, occurrences_before
from plait.sql.select.output import INTERVAL_ADVICE

_VIEW = "_pyspark_" + "0" * 32
"""As long as the names that Spark's Python gives to the frames of ``spark.sql(text, name=frame)``."""

_SOURCE = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_TAIL = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_SEARCH_PATH = re.compile(r" on search path \[.*?\]")
_WHOLE = 0.9


def rejected(query: Query, error: PySparkException) -> SqlError:
    """Return what Spark says as an error in the user's text."""
    text = _CLASS.sub("", str(error).split("\nJVM stacktrace", 1)[0].split("== SQL", 1)[0].strip())
    text = _SEARCH_PATH.sub("", _TAIL.sub("", text.split(";\n", 1)[0])).strip().rstrip(".")
    message = f"query '{query.name}': Spark refuses it: {text}"
    place = _place(query, error)
    return SqlError(message, line=place.line, column=place.column, file=place.file)


def _place(query: Query, error: PySparkException) -> TextPlace:
    """Return the place of what Spark complains about, that of the query where it means all of it."""
    told = _SOURCE.sub(_VIEW, query.spark_text).replace("{{", "{").replace("}}", "}")
    for context in error.getQueryContext() or ():
        try:
            fragment, start = context.fragment(), context.startIndex()
        except Exception:  # a context of the DataFrame API has no fragment, and says so in several ways
            continue
        if not fragment.strip() or len(fragment) > _WHOLE * len(told):
            continue
        number = occurrence(query.text, fragment, occurrences_before(told, fragment, start))
        if number is not None:
            return query.place_of(number)
    return query.place


def refuse_types(query: Query, output: StructType) -> None:
    """Refuse output columns whose type Arrow, in which results travel, does not have. Raises SqlError."""
    for field in output.fields:
        problem = _type_problem(field.dataType)
        if problem is not None:
            raise SqlError(
                f"query '{query.name}': the column '{field.name}' {problem}",
                line=query.place.line,
                column=query.place.column,
                file=query.place.file,
            )


def _type_problem(type_: DataType) -> str | None:
    match type_:
        case YearMonthIntervalType() | CalendarIntervalType():
            return f"has type {type_.simpleString()}, which results cannot carry; {INTERVAL_ADVICE}"
        case TimeType():
            return f"has type {type_.simpleString()}, which results cannot carry; write CAST(... AS STRING)"
        case ArrayType():
            return _type_problem(type_.elementType)
        case MapType():
            if isinstance(type_.keyType, NullType):
                return "is a map without keys, whose type nobody knows; give it one: map(CAST(NULL AS STRING), ...)"
            return _type_problem(type_.keyType) or _type_problem(type_.valueType)
        case StructType():
            twice = next((name for name in type_.names if type_.names.count(name) > 1), None)
            if twice is not None:
                return f"is a struct with two fields '{twice}'; name them: struct(a.{twice} AS one, b.{twice} AS other)"
            return next(filter(None, (_type_problem(field.dataType) for field in type_.fields)), None)
        case _:
            return None


def nullable(type_: DataType) -> DataType:
    """Return the type with NULL allowed everywhere but in the keys of maps: Arrow has no empty list of nothing else."""
    match type_:
        case ArrayType():
            return ArrayType(nullable(type_.elementType), True)
        case MapType():
            return MapType(nullable(type_.keyType), nullable(type_.valueType), True)
        case StructType():
            fields = (StructField(f.name, nullable(f.dataType), True, f.metadata) for f in type_.fields)
            return StructType(list(fields))
        case _:
            return type_
