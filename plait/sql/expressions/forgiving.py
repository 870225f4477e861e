"""Expressions that are NULL where Spark could not convert a value, and would end the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.sql.lexis.operations import taken_apart
from plait.sql.lexis.tokens import Token, rendered, tokens_of, without_outer_parentheses

_TRIED: Final = frozenset(
    {"to_timestamp", "to_date", "to_number", "make_timestamp", "make_timestamp_ntz", "make_timestamp_ltz", "element_at"}
)
"""Functions of which Spark has a ``try_`` form."""


def forgiving(sql: str) -> str:
    """Return the expression with every conversion in it tried.

    >>> forgiving("coalesce(to_timestamp(`t`), `ms`::timestamp) + INTERVAL 1 HOUR")
    '(coalesce(try_to_timestamp(`t`), try_CAST(`ms` AS timestamp)) + INTERVAL 1 HOUR)'
    """
    return _written(sql, tokens_of(sql))


def _written(text: str, tokens: Sequence[Token]) -> str:
    operation = taken_apart(text, tokens)
    if operation is None:
        inner = without_outer_parentheses(tokens)
        whole = rendered(text, inner, {})
        return whole if len(inner) == 1 or len(inner) == len(tokens) else f"({whole})"
    parts = [_written(text, part) for part in operation.parts]
    pieces = list(operation.pieces)
    if (operation.kind == "CAST" and operation.name == "CAST") or operation.name in _TRIED:
        pieces[0] = f"try_{pieces[0]}"
    written = pieces[0] + "".join(part + piece for part, piece in zip(parts, pieces[1:], strict=False))
    return written if operation.kind in ("CALL", "CAST") else f"({written})"


__all__ = ["forgiving"]
