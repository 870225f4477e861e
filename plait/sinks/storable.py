"""Spark's types as sinks see them, and which of them each sink can store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import assert_never

from plait.spelling import folded


@dataclass(frozen=True, slots=True)
class Atomic:
    """A type without parts: Spark DDL in lower case, such as ``decimal(10,2)`` or ``interval year to month``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values."""

    element: SparkType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A map."""

    key: SparkType
    value: SparkType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple[tuple[str, SparkType], ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{name}:{type_}' for name, type_ in self.fields)}>"


SparkType: TypeAlias = Atomic | Array | Map | Struct


def parts_of(type_: SparkType) -> Iterator[SparkType]:
    """Yield the type and all types inside it."""
    yield type_
    match type_:
        case Atomic():
            return
        case Array(element):
            yield from parts_of(element)
        case Map(key, value):
            yield from parts_of(key)
            yield from parts_of(value)
        case Struct(fields):
            for _, field in fields:
                yield from parts_of(field)
        case _:
            assert_never(type_)


AS_TEXT = "cast it to a string"
"""What to do about a type that only text can carry."""

_EXACT = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*\)|string|binary|date|timestamp|timestamp_ntz"
)


def is_same_in_arrow(type_: SparkType) -> bool:
    """Tell whether Arrow has the very same type, so that what Arrow writes Spark reads as it was."""
    return all(
        _EXACT.fullmatch(part.name) is not None if isinstance(part, Atomic) else twice(part, str) is None
        for part in parts_of(type_)
    ) and not any(isinstance(part, Struct) and not part.fields for part in parts_of(type_))


def twice(type_: SparkType, key: Callable[[str], str] = folded) -> str | None:
    """Return the name that two fields of a struct share, None if all differ or it is no struct."""
    names = [key(name) for name, _ in type_.fields] if isinstance(type_, Struct) else []
    return next((name for name in names if names.count(name) > 1), None)


def csv_problem(type_: SparkType) -> str | None:
    """Say what to do instead of writing this type to CSV, None if it can be written."""
    match type_:
        case Atomic("binary"):
            return "write base64(...) of it"
        case Atomic("variant") | Array() | Map() | Struct():
            return "write to_json(...) of it, or use parquet or json"
        case Atomic("void"):
            return "leave it out, or cast it: CAST(NULL AS STRING)"
        case Atomic(name):
            return _of_no_file(name)
        case _:
            assert_never(type_)


def json_problem(type_: SparkType) -> str | None:
    """Say what to do instead of writing this type to JSON, None if it can be written."""
    for part in parts_of(type_):
        problem = _nested_problem(part)
        if problem is not None:
            return problem
        if isinstance(part, Map) and not (isinstance(part.key, Atomic) and part.key.name not in ("binary", "variant")):
            return "JSON has texts for keys: use transform_keys(...), or map_entries(...), or parquet"
    return None


def parquet_problem(type_: SparkType) -> str | None:
    """Say what to do instead of writing this type to Parquet, None if it can be written."""
    return next((problem for problem in map(_nested_problem, parts_of(type_)) if problem is not None), None)


def memory_problem(type_: SparkType) -> str | None:
    """Say what to do instead of keeping this type in memory, None if it can be kept."""
    for part in parts_of(type_):  # of the next two Spark fails to hand over those that are NULL
        match part:
            case Atomic("variant"):
                return "write to_json(...) of it, or use parquet or json"
            case Atomic(name) if name.startswith(("geometry", "geography")):
                return _of_no_file(name)
            case _:
                pass
    return arrow_problem(type_)


def arrow_problem(type_: SparkType) -> str | None:
    """Say what to do instead of having rows of this type as Arrow, None if Arrow can have them."""
    for part in parts_of(type_):
        match part:
            case Atomic(name) if re.fullmatch(r"interval|interval (year|month)( to month)?", name):
                return AS_TEXT
            case Map(Atomic("void"), _):
                return "give it keys of some type: map(CAST(NULL AS STRING), ...)"
            case Struct() if twice(part, str) is not None:
                return f"name its fields apart: two are called '{twice(part, str)}'"
            case _:
                pass
    return None


def kept_problem(column: str, type_: str) -> str | None:
    """Say why the rows of a column cannot wait for their partners, and what to do; None if they can."""
    parsed = spark_type_of(type_)
    advice = None if parsed is None else arrow_problem(parsed)
    if advice is None:
        return None
    return (
        f"column {column} has type {type_}, which cannot be kept for a join; {advice} where it is read, before Plait "
        "sees it"
    )


def _nested_problem(part: SparkType) -> str | None:
    match part:
        case Struct(()):
            return "leave it out: it holds nothing"
        case Struct() if twice(part) is not None:
            return f"name its fields apart: two are called '{twice(part)}'"
        case Atomic(name):
            return _of_no_file(name)
        case _:
            return None


def _of_no_file(name: str) -> str | None:
    """Say what to do about a type that no files hold."""
    if name == "interval":
        return "cast it to a string, or write an interval of days and seconds, or of months"
    if name.startswith(("geometry", "geography")):
        return "write st_asbinary(...) of it"
    if name.startswith("time("):
        return "cast it to a string"
    return None


def spark_type_of(ddl: str) -> SparkType | None:
    """Return the type that Spark DDL names, None if it cannot be told."""
    text = ddl.strip()
    parametrized = re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.DOTALL)
    if parametrized is None:
        return Atomic(text) if text and "<" not in text else None
    pieces = _split(parametrized[2], ",")
    match parametrized[1]:
        case "array" if len(pieces) == 1:
            element = spark_type_of(pieces[0])
            return None if element is None else Array(element)
        case "map" if len(pieces) == 2:
            key, value = spark_type_of(pieces[0]), spark_type_of(pieces[1])
            return None if key is None or value is None else Map(key, value)
        case "struct":
            return _parse_struct(pieces)
        case _:
            return None


def _parse_struct(pieces: list[str]) -> SparkType | None:
    fields: list[tuple[str, SparkType]] = []
    for piece in pieces:
        name, *rest = _split(piece, ":")
        type_ = spark_type_of(rest[0]) if len(rest) == 1 else None
        if type_ is None:
            return None
        fields.append((name.strip().strip("`").replace("``", "`"), type_))
    return Struct(tuple(fields))


def _split(text: str, separator: str) -> list[str]:
    """Cut at the separators that stand in no brackets and no backquotes."""
    pieces, depth, is_quoted = [""], 0, False
    for char in text:
        is_quoted ^= char == "`"
        depth += 0 if is_quoted else (char in "<(") - (char in ">)")
        if char == separator and depth == 0 and not is_quoted:
            pieces.append("")
        else:
            pieces[-1] += char
    return [piece for piece in pieces if piece.strip()]
