"""Spark functions that DuckDB computes with the same result, by name: what they take, and what to write.

Only what `tests/spark/test_residual_semantics.py` compares with Spark is here. ``{0}`` is the first argument, already
in parentheses where it needs them. Where the two differ for some arguments, the text says what Spark does: square roots
and logarithms of negative numbers, NULL in concat(), texts beyond ASCII in levenshtein() (DuckDB 1 counts bytes).

The trigonometric functions, exp(), logarithms and pow() come from two mathematical libraries, Java's and C's, which may
differ in the last bit; a comparison that hangs on it may, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

INEXACT: Final = frozenset(
    ("cbrt", "exp", "ln", "log", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "pow", "power")
) | {"radians", "degrees"}
"""Those whose last bit is not Spark's for every argument: good for comparing, not for showing."""

DOUBLE: Final = "double"
STRING: Final = "string"
_NAN: Final = "CAST('NaN' AS DOUBLE)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """`takes` are the types its arguments are (strings, booleans) or are made (numbers); `gives` is its own."""

    takes: tuple[str, ...]
    gives: str
    sql: str


def _numeric(sql: str, arguments: int = 1) -> Function:
    return Function(takes=(DOUBLE,) * arguments, gives=DOUBLE, sql=sql)


def _guarded(name: str, condition: str, otherwise: str) -> Function:
    return _numeric(f"(CASE WHEN {condition} THEN {otherwise} ELSE {name}({{0}}) END)")


def _textual(sql: str, gives: str = "boolean") -> Function:
    return Function(takes=(STRING, STRING), gives=gives, sql=sql)


_POWER: Final = (  # of one, Java has no infinite power
    f"(CASE WHEN abs({{0}}) = 1 AND (isnan({{1}}) OR isinf({{1}})) THEN {_NAN} ELSE pow({{0}}, {{1}}) END)"
)
_INFINITE: Final = "isinf({0})"
_COMMON: Final = "list_intersect(string_split({0}, ''), string_split({1}, ''))"


def _coded(text: str, alone: int) -> str:
    """Write one byte for each character: its place among the common ones, or `alone` if it is none."""
    code = f"chr(coalesce(list_position(common, letter) + 2, {alone})::INTEGER)"
    return f"array_to_string(list_transform(string_split({text}, ''), lambda letter: {code}), '')"


# A character that the other text lacks matches nothing, so all of these may be one: 125 codes are left for the rest.
_LEVENSHTEIN: Final = (
    "(CASE WHEN strlen({0}) = length({0}) AND strlen({1}) = length({1}) OR levenshtein('é', 'e') = 1"
    " THEN levenshtein({0}, {1})"
    " WHEN {0} = '' OR {1} = '' THEN length({0}) + length({1})"
    f" WHEN len({_COMMON}) > 125"
    " THEN error('levenshtein(): more than 125 different characters in common; update DuckDB: ' || {0})"
    f" ELSE list_transform([{_COMMON}], lambda common: levenshtein({_coded('{0}', 1)}, {_coded('{1}', 2)}))[1] END)"
)

FUNCTIONS: Mapping[tuple[str, int], Function] = MappingProxyType(
    {
        ("sqrt", 1): _guarded("sqrt", "{0} < 0", _NAN),
        ("cbrt", 1): _numeric("cbrt({0})"),
        ("exp", 1): _numeric("exp({0})"),
        ("ln", 1): _guarded("ln", "{0} <= 0", "NULL"),
        ("log", 1): _guarded("ln", "{0} <= 0", "NULL"),
        ("log10", 1): _guarded("log10", "{0} <= 0", "NULL"),
        ("log2", 1): _guarded("log2", "{0} <= 0", "NULL"),
        ("sin", 1): _guarded("sin", _INFINITE, _NAN),
        ("cos", 1): _guarded("cos", _INFINITE, _NAN),
        ("tan", 1): _guarded("tan", _INFINITE, _NAN),
        ("asin", 1): _guarded("asin", "abs({0}) > 1", _NAN),
        ("acos", 1): _guarded("acos", "abs({0}) > 1", _NAN),
        ("atan", 1): _numeric("atan({0})"),
        ("atan2", 2): _numeric("atan2({0} + 0, {1} + 0)", 2),
        ("radians", 1): _numeric("({0} * CAST('0.017453292519943295' AS DOUBLE))"),
        ("degrees", 1): _numeric("({0} * CAST('57.29577951308232' AS DOUBLE))"),
        ("pow", 2): _numeric(_POWER, 2),
        ("power", 2): _numeric(_POWER, 2),
        ("pi", 0): Function(takes=(), gives=DOUBLE, sql="CAST('3.141592653589793' AS DOUBLE)"),
        ("isnan", 1): Function(takes=(DOUBLE,), gives="boolean", sql="coalesce(isnan({0}), FALSE)"),
        ("startswith", 2): _textual("starts_with({0}, {1})"),
        ("endswith", 2): _textual("suffix({0}, {1})"),
        ("contains", 2): _textual("contains({0}, {1})"),
        ("levenshtein", 2): _textual(_LEVENSHTEIN, "int"),
        ("length", 1): Function(takes=(STRING,), gives="int", sql="length({0})"),
        ("char_length", 1): Function(takes=(STRING,), gives="int", sql="length({0})"),
        ("character_length", 1): Function(takes=(STRING,), gives="int", sql="length({0})"),
        ("len", 1): Function(takes=(STRING,), gives="int", sql="length({0})"),
    }
)
"""By (name, number of arguments)."""
