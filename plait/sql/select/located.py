"""Pieces of a text, found again in another text that says the same with some tokens replaced."""

from __future__ import annotations

from collections.abc import Iterator

from plait.errors import SqlError
from plait.sql.lexis.text import scan
from plait.sql.lexis.tokens import tokens_of


def occurrences_before(text: str, piece: str, offset: int) -> int:
    """Return how often the tokens of a piece occur in a text before an offset."""
    return sum(1 for offset_of in _occurrences(text, piece) if offset_of < offset)


def occurrence(text: str, piece: str, number: int) -> int | None:
    """Return where the tokens of a piece occur, after `number` other occurrences; None if they do not.

    Where there are fewer, the first one is as good a guess as any.
    """
    offsets = list(_occurrences(text, piece))
    if not offsets:
        return None
    return offsets[number] if number < len(offsets) else offsets[0]


def _occurrences(text: str, piece: str) -> Iterator[int]:
    tokens, wanted = _tokens(text), [word for word, _ in _tokens(piece)]
    if not wanted:
        return
    for index in range(len(tokens) - len(wanted) + 1):
        if [word for word, _ in tokens[index : index + len(wanted)]] == wanted:
            yield tokens[index][1]


def _tokens(text: str) -> list[tuple[str, int]]:
    masked = scan(text).masked
    try:
        return [(masked[token.start : token.end], token.start) for token in tokens_of(masked)]
    except SqlError:
        return []
