"""Comparisons of rows: ``(a.k, a.s) = (b.k, b.s)``, which Spark makes structs of.

Spark compares structs field by field, and **NULL fields are equal to each other** (a row is not NULL because a field
is; DuckDB says the same). So the fields are compared by ``<=>``. Where types are known that is still two equalities,
which an index looks up: both are NULL or neither is, and, with a constant in the place of NULL, the values are equal.

Inside OR, NOT and the like, and for ``<>`` and ``IN``, the fields are compared as parts of a residual predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from plait.errors import UnsupportedQueryError
from plait.query.model import Operand
from plait.query.types import is_key_type
from plait.sql.expressions.bound import BoundExpression, operand
from plait.sql.lexis.operations import called, taken_apart
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import depths, split, without_outer_parentheses

_COMPARISONS: Final = ("=", "==", "<=>")
_DIFFERENT: Final = ("<>", "!=")
_ORDERED: Final = ("<", "<=", ">", ">=")
_CONSTANTS: Final = {
    "boolean": "false",
    "date": "DATE'1970-01-01'",
    "timestamp": "TIMESTAMP'1970-01-01 00:00:00Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
    "string": "''",
    "binary": "X''",
}

Pair = tuple[BoundExpression, BoundExpression]


def row_pairs(conjunct: BoundExpression, text: SourceText) -> tuple[Pair, ...] | None:
    """Return the fields that are compared, None if the conjunct compares no rows. Raises SqlError if their numbers
    differ.
    """
    operation = taken_apart(conjunct.text, conjunct.tokens)
    if operation is None or operation.kind not in _COMPARISONS or not all(operation.parts):
        return None
    rows = [_fields(conjunct.part(part)) for part in operation.parts]
    left, right = rows
    if left is None or right is None:
        return None
    return _paired(left, right, conjunct, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTest:
    """Whether a row is equal to one of several, given as pairs of fields; or, if `is_negated`, to none of them."""

    alternatives: tuple[tuple[Pair, ...], ...]
    is_negated: bool

    def written(self, write: Callable[[BoundExpression], str]) -> str:
        """Write it with comparisons of fields, each side of which `write` writes."""
        rows = [
            "(" + " AND ".join(f"({write(left)} <=> {write(right)})" for left, right in pairs) + ")"
            for pairs in self.alternatives
        ]
        tested = rows[0] if len(rows) == 1 else f"({' OR '.join(rows)})"
        return f"(NOT {tested})" if self.is_negated else tested


def row_test(expression: BoundExpression, text: SourceText) -> RowTest | None:
    """Return what a comparison or IN of rows tests, None if the expression is neither. Raises SqlError for rows of
    different lengths, UnsupportedQueryError for the order of rows.
    """
    operation = taken_apart(expression.text, expression.tokens)
    if operation is None or operation.kind not in (*_COMPARISONS, *_DIFFERENT, *_ORDERED, "IN", "NOT IN"):
        return None
    rows = [_fields(expression.part(part)) for part in operation.parts]
    paired = [row for row in rows if row is not None]
    if len(paired) < len(rows):
        return None
    if operation.kind in _ORDERED:
        message = (
            f"Plait does not run '{operation.kind}' between rows; compare the fields: a.x < b.x OR (a.x = b.x AND a.y "
            "< b.y)"
        )
        raise text.error(message, expression.tokens[0].start, UnsupportedQueryError)
    return RowTest(
        alternatives=tuple(_paired(paired[0], other, expression, text) for other in paired[1:]),
        is_negated=operation.kind in (*_DIFFERENT, "NOT IN"),
    )


def _paired(
    left: list[BoundExpression], right: list[BoundExpression], whole: BoundExpression, text: SourceText
) -> tuple[Pair, ...]:
    if len(left) != len(right):
        message = (
            f"a row of {len(left)} cannot equal a row of {len(right)}; compare as many values on the left as on the "
            "right"
        )
        raise text.error(message, whole.tokens[0].start)
    return tuple(_flat(zip(left, right, strict=True)))


def _flat(pairs: Iterator[Pair]) -> Iterator[Pair]:
    for left, right in pairs:
        inner = (_fields(left), _fields(right))
        if inner[0] is not None and inner[1] is not None and len(inner[0]) == len(inner[1]):
            yield from _flat(zip(inner[0], inner[1], strict=True))
        else:
            yield left, right


def _fields(side: BoundExpression) -> list[BoundExpression] | None:
    """Return the fields of ``(x, y)`` or ``struct(x, y)``."""
    call = called(side.tokens)
    inner = without_outer_parentheses(side.tokens)
    if call is not None and call[0].value.lower() == "struct":
        parts = list(call[1])
    else:
        parts = split(inner, [index for index, depth, token in depths(inner) if depth == 0 and token.is_symbol(",")])
        if len(parts) < 2 or len(inner) == len(side.tokens):
            return None
    if not all(parts) or any(token.keyword == "AS" for part in parts for _, depth, token in depths(part) if not depth):
        return None
    return [side.part(part) for part in parts]


def without_null(side: BoundExpression, type_: str) -> tuple[Operand, Operand] | None:
    """Return (the value with a constant in the place of NULL, whether it is NULL), None if it cannot be a key."""
    if not is_key_type(type_):
        return None
    value = operand(side)
    sql, constant = value.expression.sql, _CONSTANTS.get(type_, "0")
    # Written so that it comes after the value in the order of texts: of keys about which nothing is known yet a store
    # is partitioned by the first, and this one tells next to no rows apart.
    null = replace(value.expression, sql=f"isnull({sql})")
    filled = replace(value.expression, sql=f"coalesce({sql}, CAST({constant} AS {type_.upper()}))")
    return replace(value, expression=filled), replace(value, expression=null)
