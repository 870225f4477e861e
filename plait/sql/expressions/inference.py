"""The type of an expression, as far as it can be told without Spark: from declared columns, casts and operators.

None means that only Spark knows. What is returned is what Spark finds (ANSI mode), so that it can be shown and relied
on; `tests/spark/test_front_end.py` compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from typing_extensions import assert_never

from plait.errors import SqlError
from plait.query.model import Source, SourceExpression
from plait.query.types import common_type
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.scope import BoundRelation, Scope
from plait.sql.lexis.literals import INTERVAL, NOTHING, literal
from plait.sql.lexis.numbers import FLOATING, INTEGERS, TIMES, is_numeric
from plait.sql.lexis.operations import Operation, taken_apart
from plait.sql.lexis.operators import Arithmetic, Binary
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import tokenize, without_outer_parentheses
from plait.sql.lexis.written_types import written_type

BOOLEAN: Final = "boolean"

_CASTS: Final = ("cast", "try_cast")
_FIRST_OF_SAME: Final = frozenset({"coalesce", "ifnull", "nvl", "greatest", "least"})

_BOOLEANS: Final = """
    isnull isnotnull isnan startswith endswith contains like ilike rlike regexp regexp_like array_contains
    arrays_overlap map_contains_key exists forall luhn_check is_valid_utf8 equal_null is_variant_null
"""
_STRINGS: Final = """
    upper ucase lower lcase trim ltrim rtrim btrim initcap concat_ws substring_index repeat replace regexp_replace
    regexp_extract translate soundex date_format to_json get_json_object base64 md5 sha1 sha2 hex bin chr char space
    format_number format_string printf monthname dayname typeof to_char from_unixtime to_varchar split_part
    regexp_substr url_decode url_encode
"""
_INTS: Final = """
    length char_length character_length levenshtein instr locate position ascii year month day dayofmonth dayofweek
    dayofyear hour minute quarter weekofyear weekday datediff date_diff unix_date size cardinality hash array_size
    bit_length octet_length
"""
_BIGINTS: Final = "unix_timestamp to_unix_timestamp unix_seconds unix_millis unix_micros xxhash64 crc32"
_DOUBLES: Final = "sqrt exp ln log10 log2 pow power sin cos tan months_between"
_INSTANTS: Final = """
    timestamp_seconds timestamp_millis timestamp_micros to_timestamp to_timestamp_ltz try_to_timestamp make_timestamp
    make_timestamp_ltz date_trunc from_utc_timestamp to_utc_timestamp timestamp
"""
_WALL_CLOCKS: Final = "to_timestamp_ntz make_timestamp_ntz try_make_timestamp_ntz"
_DATES: Final = "to_date try_to_date make_date last_day next_day date_from_unix_date trunc date"
_KEEPING_COLLATION: Final = frozenset(
    ["upper", "ucase", "lower", "lcase", "trim", "ltrim", "rtrim", "btrim", "initcap"]
)
"""Functions of one text whose result is compared by the same collation."""

_CONVERSIONS: Final = ("string", "int", "bigint", "double", "float", "boolean", "smallint", "tinyint", "binary")

RESULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(_BOOLEANS.split(), BOOLEAN),
        **dict.fromkeys(_STRINGS.split(), "string"),
        **dict.fromkeys(_INTS.split(), "int"),
        **dict.fromkeys(_BIGINTS.split(), "bigint"),
        **dict.fromkeys(_DOUBLES.split(), "double"),
        **dict.fromkeys(_INSTANTS.split(), "timestamp"),
        **dict.fromkeys(_WALL_CLOCKS.split(), "timestamp_ntz"),
        **dict.fromkeys(_DATES.split(), "date"),
        **{name: name for name in _CONVERSIONS},
        **dict.fromkeys(("make_interval", "try_make_interval"), "interval"),
        "make_ym_interval": "interval year to month",
        "make_dt_interval": INTERVAL,
    }
)
"""Functions that always give the same type (of texts without a collation)."""


def inferred_type(expression: BoundExpression) -> str | None:
    """Return the Spark type of an expression, None where only Spark knows. An interval of fixed length is `INTERVAL`,
    whatever its units.
    """
    inner = expression.part(without_outer_parentheses(expression.tokens))
    if not inner.tokens:
        return None
    if inner.is_column:
        return inner.column_type
    constant = None if inner.meanings else literal(inner.text, inner.tokens)
    if constant is not None:
        return constant.type
    if inner.tokens[0].keyword == "INTERVAL":
        return _interval_type(inner)
    operation = taken_apart(inner.text, inner.tokens)
    if operation is None or not all(operation.parts):
        return None
    return _type_of(operation, inner)


def _interval_type(written: BoundExpression) -> str | None:
    """Return the type of an INTERVAL literal of years and months; that of a fixed length is a literal already."""
    units = {token.keyword.removesuffix("S") for token in written.tokens[1:] if token.keyword not in ("", "TO")}
    if len(written.tokens) > 5 or not units or not units <= {"YEAR", "MONTH"}:
        return None
    return f"interval {' to '.join(unit.lower() for unit in ('YEAR', 'MONTH') if unit in units)}"


def _type_of(operation: Operation, whole: BoundExpression) -> str | None:
    match operation.kind:
        case "CAST":
            return _cast_type(operation, whole)
        case "SIGN":
            (part,) = _types_of_parts(operation, whole)
            return part if part is not None and (is_numeric(part) or part == INTERVAL) else None
        case "CASE":
            return _same(_branches(operation, _types_of_parts(operation, whole)))
        case "CALL":
            return _call_type(operation.name, _types_of_parts(operation, whole))
        case "+" | "-" | "*" | "/" | "%" | "DIV" | "|" | "^" | "&" | "<<" | ">>" | ">>>" | "||" as kind:
            left, right = _types_of_parts(operation, whole)
            return _binary_type(kind, left, right)
        case "=" | "==" | "<=>" | "<" | "<=" | ">" | ">=" | "<>" | "!=" | "IS DISTINCT":
            return BOOLEAN
        case "AND" | "OR" | "NOT" | "BETWEEN" | "IN" | "LIKE" | "ILIKE" | "RLIKE":
            return BOOLEAN
        case "NOT BETWEEN" | "NOT IN" | "NOT LIKE" | "NOT ILIKE" | "NOT RLIKE":
            return BOOLEAN
        case "IS NULL" | "IS NOT NULL" | "IS TRUE" | "IS NOT TRUE" | "IS FALSE" | "IS NOT FALSE":
            return BOOLEAN
        case _:
            assert_never(operation.kind)


def _types_of_parts(operation: Operation, whole: BoundExpression) -> list[str | None]:
    return [inferred_type(whole.part(part)) for part in operation.parts]


def _cast_type(operation: Operation, whole: BoundExpression) -> str | None:
    """Read the type after AS, or behind ``::``: the tokens after the value."""
    last = operation.parts[0][-1].end
    behind = [token for token in whole.tokens if token.start >= last]
    while behind and (behind[0].is_symbol(")", "::") or behind[0].keyword == "AS"):
        behind = behind[1:]
    if behind and behind[-1].is_symbol(")") and operation.pieces[0] != "" and whole.tokens[0].value.lower() in _CASTS:
        behind = behind[:-1]
    return written_type(whole.text, behind) if behind else None


def _branches(operation: Operation, parts: Sequence[str | None]) -> list[str | None]:
    """Return the types of what CASE can yield."""
    words = [piece.split()[-1] for piece in operation.pieces[:-1]]
    return [part for word, part in zip(words, parts, strict=True) if word in ("THEN", "ELSE")]


def _same(types: Sequence[str | None]) -> str | None:
    """Return the one type these have, NULLs aside; None if they are several, or one is not known."""
    distinct = {type_ for type_ in types if type_ != NOTHING}
    return next(iter(distinct)) if len(distinct) == 1 else None


def _call_type(name: str, parts: Sequence[str | None]) -> str | None:
    if name in _FIRST_OF_SAME:
        return _same(parts)
    if name == "if":
        return _same(parts[1:])
    if name == "nullif":
        return parts[0] if parts else None
    has_collation = any(part is not None and part.startswith("string collate") for part in parts)
    if has_collation and len(parts) == 1 and name in _KEEPING_COLLATION:
        return parts[0]
    return None if has_collation else RESULTS.get(name)


def _binary_type(kind: Binary, left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    are_plain = all(type_ in (*INTEGERS, *FLOATING) for type_ in (left, right))
    match kind:
        case "||":
            return "string" if left == right == "string" else None
        case "DIV":
            return "bigint" if left in INTEGERS and right in INTEGERS else None
        case "/":
            return "double" if are_plain else None
        case "+" | "-" | "*" | "%":
            return common_type(left, right) if are_plain else _type_of_times(kind, left, right)
        case "|" | "^" | "&" | "<<" | ">>" | ">>>":
            return None
        case _:
            assert_never(kind)


def _type_of_times(kind: Arithmetic, left: str, right: str) -> str | None:
    if kind in ("+", "-") and left in TIMES and right == INTERVAL:
        return left
    if kind == "+" and left == INTERVAL and right in TIMES:
        return right
    return "date" if kind in ("+", "-") and left == "date" and right in ("tinyint", "smallint", "int") else None


def type_over(source: Source, expression: SourceExpression) -> str | None:
    """Return the type of an expression over the source's columns, None where only Spark knows it."""
    if source.schema is None:
        return None
    text = SourceText(text=expression.sql)
    masked = scan(text.text).masked
    problems: list[SqlError] = []
    binder = ExpressionBinder(text, masked, problems, is_function=lambda name: True)
    tokens = tokenize(text, masked, 0, len(masked))
    bound = binder.bind(binder.parse(tokens), tokens, Scope.of(BoundRelation(alias="", source=source)))
    return None if bound is None or problems else inferred_type(bound)
