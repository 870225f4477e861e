"""The tokens of a text that is to be one SELECT."""

from __future__ import annotations

from functools import lru_cache

from plait.sql.lexis.text import SourceText, scan, unclosed_error
from plait.sql.lexis.tokens import Token, tokenize


@lru_cache(maxsize=16)  # it is read for views first, and then bound
def select_tokens(text: SourceText) -> tuple[str, tuple[Token, ...]]:
    """Return the masked text and the tokens of its one statement. Raises SqlError if it has none, or several."""
    scanned = scan(text.text)
    if scanned.unclosed is not None:
        raise unclosed_error(text, scanned.unclosed)
    if not scanned.statements:
        raise text.error("the query is empty; write SELECT ... FROM ...", 0)
    if len(scanned.statements) > 1:
        raise text.error("expected one SELECT, found more after ';'; remove it", scanned.statements[1][0])
    start, end = scanned.statements[0]
    return scanned.masked, tokenize(text, scanned.masked, start, end)


__all__ = ["select_tokens"]
