"""Where a column's name becomes a struct field's: ``struct(o.city)`` and ``(o.city, o.id)`` have a field ``city``.

A reference that is replaced by another name there must say the old one, or ``to_json(struct(o.city))`` would come out
different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from plait.sql.lexis.tokens import Token, depths, split

Tokens: TypeAlias = tuple[Token, ...]


def rows_of_fields(tokens: Sequence[Token]) -> Iterator[list[Tokens]]:
    """Yield the arguments that together become one struct, for each struct: their names become those of its fields."""
    for opener, arguments, following in _calls(tokens):
        previous = tokens[opener - 1] if opener else None
        is_lambda = following is not None and following.is_symbol("->")
        is_row = len(arguments) > 1 and not is_lambda and _is_value_position(previous)
        if is_row or (previous is not None and previous.value.lower() == "struct" and previous.kind == "word"):
            yield arguments


def zipped_arguments(tokens: Sequence[Token]) -> Iterator[Tokens]:
    """Yield the arguments of ``arrays_zip``, which take no other name."""
    for opener, arguments, _ in _calls(tokens):
        if opener and tokens[opener - 1].value.lower() == "arrays_zip":
            yield from arguments


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[int, list[Tokens], Token | None]]:
    """Yield (index of the parenthesis, what is between its commas, the token behind it)."""
    leveled = list(depths(tokens))
    for opener, level, token in leveled:
        if not token.is_symbol("("):
            continue
        closer = next(index for index, depth, _ in leveled[opener + 1 :] if depth == level)
        inner = tokens[opener + 1 : closer]
        commas = [index for index, depth, symbol in depths(inner) if depth == 0 and symbol.is_symbol(",")]
        yield opener, split(inner, commas), tokens[closer + 1] if closer + 1 < len(tokens) else None


def _is_value_position(previous: Token | None) -> bool:
    """Tell whether a parenthesis after this token opens a value, not the arguments of a function or of IN."""
    if previous is None or previous.keyword in ("THEN", "ELSE"):
        return True
    return previous.kind == "symbol" and not previous.is_symbol(")", "]")
