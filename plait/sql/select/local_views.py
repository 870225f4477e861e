"""``WITH name AS (SELECT ...)`` and ``FROM (SELECT ...) name``: views that one SELECT alone reads."""

from __future__ import annotations

from collections.abc import Sequence

from plait.errors import UnsupportedQueryError
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.names import folded
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.select.syntax import enclosed_tokens
from plait.sql.select.view_parts import View


def without_with(
    text: SourceText, masked: str, tokens: tuple[Token, ...], known: tuple[View, ...]
) -> tuple[tuple[View, ...], tuple[Token, ...]]:
    """Return the views that WITH names, each of which may read those before it and those `known`, and the tokens after
    it. Raises SqlError if it cannot be read.
    """
    cursor = Cursor(text, masked, tokens, tokens[-1].end)
    local: tuple[View, ...] = ()
    if not cursor.take_word("WITH"):
        return local, tokens
    if cursor.at_word("RECURSIVE"):
        raise cursor.error("Plait does not run WITH RECURSIVE: join a stream with itself", None, UnsupportedQueryError)
    while not local or cursor.take_symbol(","):
        name = cursor.name("a name after WITH: WITH name AS (SELECT ...)")
        if any(folded(view.name) == folded(name.value) for view in local):
            raise cursor.error(f"WITH names '{name.value}' twice; give one another name", name)
        if cursor.at_symbol("("):
            raise cursor.error("columns are named in the SELECT list of WITH: write expression AS name there")
        cursor.expect_word("AS", f" and a SELECT in parentheses: WITH {name.value} AS (SELECT ...)")
        if not cursor.at_symbol("("):
            raise cursor.expected("a SELECT in parentheses")
        inner = enclosed_tokens(cursor)
        local = (*local, view_within(text, inner, name.value, (*known, *local)))
    if not cursor.at_word("SELECT"):
        raise cursor.expected("',' or SELECT after WITH name AS (SELECT ...)")
    return local, cursor.rest()


def view_within(text: SourceText, tokens: Sequence[Token], name: str, known: tuple[View, ...]) -> View:
    """Return a piece of a text as a view. `known`: the views that it may read besides those that all may."""
    line, column = text.place(tokens[0].start)
    piece = text.text[tokens[0].start : tokens[-1].end]
    return View(name=name, text=SourceText(text=piece, file=text.file, line=line, column=column), known=known)


__all__ = ["view_within", "without_with"]
