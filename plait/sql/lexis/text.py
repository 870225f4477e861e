"""The user's text: where things are in it, where its statements end, and what in it is comment.

Everything after this module works on the *masked* text, in which each comment (hints included) is blank. It is as long
as the original, so offsets are the same in both, and quoting and comment rules are settled in one place: here.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeVar

from plait.errors import PlacedError, SqlError
from plait.query.places import TextPlace

Placed = TypeVar("Placed", bound=PlacedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A piece of a file. `line` and `column` (from 1) say where it starts in there."""

    text: str
    file: str | None = None
    line: int = 1
    column: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a character."""
        line_start = self.text.rfind("\n", 0, offset) + 1
        newlines = self.text.count("\n", 0, offset)
        return (self.line + newlines, offset - line_start + 1) if newlines else (self.line, self.column + offset)

    def text_place(self, offset: int) -> TextPlace:
        """Return the place of a character, with the file."""
        line, column = self.place(offset)
        return TextPlace(file=self.file, line=line, column=column)

    def error(self, message: str, offset: int, kind: type[Placed] = SqlError) -> Placed:  # type: ignore[assignment]
        """Build an error that points at a character."""
        place = self.text_place(offset)
        return kind(message, line=place.line, column=place.column, file=place.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedText(SourceText):
    """A text put together of pieces of others. `pieces`: where each starts in it, and where it was written."""

    pieces: tuple[tuple[int, TextPlace], ...]

    def text_place(self, offset: int) -> TextPlace:
        """Return where the piece was written that a character belongs to."""
        return self.pieces[max(bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1, 0)][1]

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of that."""
        place = self.text_place(offset)
        return place.line, place.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The masked text, the spans of its statements (without ``;``), and where a quote or comment is never closed."""

    masked: str
    statements: tuple[tuple[int, int], ...]
    unclosed: int | None = None


def scan(text: str) -> Scan:
    """Blank out the comments and find the statements.

    Spark's rules: ``--`` to the end of the line, ``/* */`` nested; a backslash escapes inside ``'`` and ``"`` unless
    the string is raw (``r'...'``); inside backquotes nothing does. A doubled quote needs no rule: it closes one piece
    and opens the next.
    """
    masked: list[str] = []
    statements: list[tuple[int, int]] = []
    start = position = 0
    unclosed = None
    while position < len(text):
        character, end = text[position], position + 1
        if text.startswith("--", position):
            end = _line_end(text, position)
            masked.append(" " * (end - position))
        elif text.startswith("/*", position):
            end, closed = _comment_end(text, position)
            unclosed = None if closed else position
            masked.append("".join("\n" if inside == "\n" else " " for inside in text[position:end]))
        elif character in "'\"`":
            end, closed = _quote_end(text, position)
            unclosed = None if closed else position
            masked.append(text[position:end])
        else:
            if character == ";":
                statements.append((start, position))
                start = end
            masked.append(character)
        position = end
    statements.append((start, len(text)))
    whole = "".join(masked)
    kept = tuple(span for span in statements if whole[slice(*span)].strip())
    return Scan(masked=whole, statements=kept, unclosed=unclosed)


def unclosed_error(source: SourceText, offset: int) -> SqlError:
    """Say which quote or comment is never closed."""
    opener = source.text[offset]
    what, closer = {
        "'": ("string", "'"),
        '"': ("string", '"'),
        "`": ("backquoted name", "`"),
    }.get(opener, ("comment", "*/"))
    return source.error(f"the {what} that starts here is never closed; add the missing {closer}", offset)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _comment_end(text: str, start: int) -> tuple[int, bool]:
    depth, position = 1, start + 2
    while position < len(text):
        if text.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position, True
        else:
            position += 1
    return len(text), False


def _quote_end(text: str, start: int) -> tuple[int, bool]:
    quote = text[start]
    escapes = quote != "`" and not _is_raw(text, start)
    position = start + 1
    while position < len(text):
        if text[position] == quote:
            return position + 1, True
        position += 2 if escapes and text[position] == "\\" else 1
    return len(text), False


def _is_raw(text: str, start: int) -> bool:
    return (
        start > 0
        and text[start - 1] in "rR"
        and not (start > 1 and (text[start - 2].isalnum() or text[start - 2] == "_"))
    )
