"""Expressions that are NULL where Spark could not convert a value, and would end the run; and when that is so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from plait.sql.lexis.operations import Operation, taken_apart
from plait.sql.lexis.tokens import Token, rendered, tokens_of, without_outer_parentheses

_TRIED: Final = frozenset(
    {"to_timestamp", "to_date", "to_number", "make_timestamp", "make_timestamp_ntz", "make_timestamp_ltz", "element_at"}
)
"""Functions of which Spark has a ``try_`` form."""

_NULL_ANYHOW: Final = frozenset({"element_at"})
"""Those of which NULL may be the right value of something that is there."""

_FIRST_ONLY: Final = frozenset({"coalesce", "ifnull", "nvl", "nvl2", "nullif", "if", "iff"})
"""Functions that do not always compute more than their first argument."""

_TO_TEXT: Final = re.compile(r"\bAS\s+string\b", re.IGNORECASE)


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
    if _is_conversion(operation):
        pieces[0] = f"try_{pieces[0]}"
    written = pieces[0] + "".join(part + piece for part, piece in zip(parts, pieces[1:], strict=False))
    return written if operation.kind in ("CALL", "CAST") else f"({written})"


def _is_conversion(operation: Operation) -> bool:
    return (operation.kind == "CAST" and operation.name == "CAST") or operation.name in _TRIED


def failures(sql: str) -> tuple[tuple[str, str], ...]:
    """Return for each conversion in an expression that is carried out for every row: the condition under which it has
    failed, and the conversion as written.

    Of those that CASE, AND, OR, coalesce and the like may leave out nothing is said: `forgiving` makes them NULL.

    >>> failures("timestamp_millis(CAST(`ms` AS BIGINT))")
    (('try_CAST(`ms` AS BIGINT) IS NULL AND `ms` IS NOT NULL', 'CAST(`ms` AS BIGINT)'),)
    """
    return tuple(dict.fromkeys(_failures(sql, tokens_of(sql))))


def _failures(text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    operation = taken_apart(text, tokens)
    if operation is None or operation.kind == "CASE":
        return
    takes_first = operation.kind in ("AND", "OR") or operation.name in _FIRST_ONLY
    for part in operation.parts[:1] if takes_first else operation.parts:
        yield from _failures(text, part)
    is_risky = _is_conversion(operation) and operation.name not in _NULL_ANYHOW
    if is_risky and not (operation.kind == "CAST" and _TO_TEXT.search(operation.pieces[-1])):
        given = " AND ".join(f"{_written(text, part)} IS NOT NULL" for part in operation.parts)
        yield f"{_written(text, tokens)} IS NULL AND {given}", rendered(text, without_outer_parentheses(tokens), {})


__all__ = ["failures", "forgiving"]
