"""Types written inside expressions: the ``type`` of ``CAST(x AS type)``, ``TRY_CAST`` and ``x::type``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from plait.errors import SqlError
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_type
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token, depths

Tokens: TypeAlias = tuple[Token, ...]

_CASTS: Final = ("cast", "try_cast")
_LENGTHS: Final = ("CHAR", "CHARACTER", "VARCHAR")


def cast_types(source: SourceText, masked: str, tokens: Sequence[Token]) -> Iterator[tuple[Tokens, str]]:
    """Yield each type written in an expression: its tokens, and the type as Spark prints it.

    Raises SqlError for a type that Spark does not have.
    """
    for start, end in _places(tokens):
        cursor = Cursor(source, masked, tokens[start:end], tokens[end - 1].end)
        type_ = _type(cursor)
        for problem in cursor.problems:
            raise problem
        if type_ == "void":
            raise source.error("nothing can be cast to VOID; write NULL", tokens[start].start)
        taken = len(tokens[start:end]) - len(cursor.rest())
        if end < len(tokens) and tokens[end].is_symbol(")") and cursor.token is not None and _is_cast_end(tokens, end):
            raise cursor.expected("')' after the type")
        yield tuple(tokens[start : start + taken]), type_


def written_type(text: str, tokens: Sequence[Token]) -> str | None:
    """Return the type that these tokens are, None if they are none."""
    cursor = Cursor(SourceText(text=text), text, tokens, tokens[-1].end)
    try:
        type_ = _type(cursor)
    except SqlError:
        return None
    return None if cursor.token is not None or cursor.problems else type_


def without_collations(masked: str, tokens: Sequence[Token]) -> str:
    """Return the text with the collations of written types blanked, which sqlglot takes for columns.

    Blanks keep every offset as it is.
    """
    pieces, position = [], 0
    for token, following in pairwise(tokens):
        if token.keyword == "COLLATE" and following.kind in ("word", "quoted"):
            pieces += [masked[position : token.start], " " * (following.end - token.start)]
            position = following.end
    return "".join([*pieces, masked[position:]])


def _type(cursor: Cursor) -> str:
    if cursor.at_word(*_LENGTHS):
        cursor.advance()
        cursor.expect_symbol("(", " and a length after CHAR or VARCHAR")
        cursor.advance()
        cursor.expect_symbol(")")
        return "string"
    return parse_type(cursor)


def _places(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield (first token, behind the last token that can belong to it) for each type."""
    leveled = list(depths(tokens))
    for index, token in enumerate(tokens[:-1]):
        if token.is_symbol("::"):
            yield index + 1, len(tokens)
        if token.value.lower() in _CASTS and token.kind == "word" and tokens[index + 1].is_symbol("("):
            level = leveled[index + 1][1]
            closer = next(place for place, depth, _ in leveled[index + 2 :] if depth == level)
            inside = range(index + 2, closer)
            words = [place for place in inside if leveled[place][1] == level + 1 and tokens[place].keyword == "AS"]
            if words and words[-1] + 1 < closer:
                yield words[-1] + 1, closer


def _is_cast_end(tokens: Sequence[Token], end: int) -> bool:
    return not any(token.is_symbol("::") for token in tokens[:end])
