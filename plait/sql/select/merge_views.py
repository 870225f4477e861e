"""A query over views as one over streams and tables: the text that says the same without them.

What comes out is read and bound like any other query, so that views cost nothing and share what queries share. Its
tokens know where they were written, in the query or in a view, and mistakes are told there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.places import TextPlace
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.text import MergedText, SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.select.grouping import keys_of
from plait.sql.select.over_views import OverViews
from plait.sql.select.select_text import select_tokens
from plait.sql.select.shown_items import Item, given_names, items_of
from plait.sql.select.syntax import JoinKind, SelectSyntax
from plait.sql.select.take_apart import Views, windows_of
from plait.sql.select.view_parts import Joined, Part, Pieces, enclosed, pieces_of, said, sql_of, together
from plait.sql.statements import WindowOverride

_JOINS: Final[Mapping[JoinKind, str]] = {
    "inner": "JOIN",
    "cross": "CROSS JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
_MOST_CHARACTERS: Final = 40_000
"""Binding takes time that grows with the square: this many take some seconds."""


def merge_views(
    text: SourceText, windows: Sequence[WindowOverride], views: Views, problems: list[SqlError]
) -> tuple[SourceText, tuple[WindowOverride, ...]] | None:
    """Return a query's text and its windows with views merged, the same ones if it reads none. None if something is
    wrong with it, which is noted. Raises SqlError if it is no SELECT, or what no query over streams and tables says.
    """
    _, tokens = select_tokens(text)
    if not _may_read_views(tokens, views):
        return text, tuple(windows)
    before = len(problems)
    syntax, written, read = views.read(text, problems)
    if read is not None and not read.taken and tokens[0].keyword != "WITH":
        return text, tuple(windows)
    if read is None:
        return None
    part, lacking = read.part(written)
    items = items_of(syntax, read, lacking)
    _refuse_derived_names(items, read)
    if syntax.at is not None:
        _refuse_columns_like_windows(part, syntax.at, read)
    grouped = [_group(group, items, read, lacking) for group in syntax.groups]
    having = _having(syntax.having, items, read, lacking)
    merged = windows_of(windows, read, problems)
    if len(problems) > before:
        return None
    return _written(text.text_place(tokens[0].start), syntax, items, part, grouped, having), merged


def _may_read_views(tokens: Sequence[Token], views: Views) -> bool:
    if tokens[0].keyword == "WITH":
        return True
    following = (*tokens[1:], tokens[-1])
    return any(
        views.named(token.value) is not None
        if token.kind in ("word", "quoted")
        else token.is_symbol("(") and after.keyword in ("SELECT", "WITH")
        for token, after in zip(tokens, following, strict=True)
    )


def _refuse_derived_names(items: Sequence[Item], read: OverViews) -> None:
    for item in items:
        if item.name is None and item.is_named_otherwise:
            message = "this column has no name, and Spark would derive one from inside the view: write AS and a name"
            read.expressions.report(message, item.at)


def _refuse_columns_like_windows(part: Part, at: Token, read: OverViews) -> None:
    """Refuse to group where ``window.start`` would mean a column that no view shows."""
    given = given_names(read)
    for step in part.steps:
        for name in (column.name for column in step.source.schema or () if folded(column.name) in given):
            message = (
                f"Plait does not run GROUP BY over a view of '{step.source.name}', which has a column '{name}': read "
                "it without the view"
            )
            read.expressions.report(message, at, UnsupportedQueryError)


def _group(group: tuple[Token, ...], items: Sequence[Item], read: OverViews, lacking: Collection[str]) -> Pieces:
    """Return an element of GROUP BY; names of the SELECT list in it become its numbers."""
    replaced: dict[int, tuple[int, Pieces]] = {}
    for key in keys_of(group):
        only, place = key[0], read.text.text_place(key[0].start)
        if len(key) == 1 and only.kind == "number":
            continue
        if len(key) == 1 and only.kind in ("word", "quoted") and not read.clause.scope.named(only.value):
            numbers = (n for n, item in enumerate(items, 1) if folded(item.name or "") == folded(only.value))
            number = next(numbers, None)
            if number is not None:
                replaced[only.start] = (only.end, said(str(number), place))
                continue
        bound = read.expressions.bind(
            read.expressions.parse(key, groups=True), key, read.clause.scope, given_names(read)
        )
        if bound is not None:
            replaced[only.start] = (key[-1].end, _no_position(read.pieces(bound, lacking)))
    return pieces_of(read.text, read.masked, group, replaced)


def _no_position(key: Pieces) -> Pieces:
    """Return a key of GROUP BY that a number in a view has become so that it is no position in the SELECT list."""
    if re.fullmatch(r"\(+-?\d+\)+", sql_of(key).replace(" ", "")) is None:
        return key
    return (*said("0 + ", key[0].place), *key)


def _having(
    having: tuple[Token, ...] | None, items: Sequence[Item], read: OverViews, lacking: Collection[str]
) -> Pieces | None:
    """Return HAVING; names of the SELECT list in it become what they stand for."""
    if having is None:
        return None
    named = {folded(item.name): item for item in items if item.name and not read.clause.scope.named(item.name)}
    parsed = read.expressions.parse(having, groups=True)
    bound = read.expressions.bind(parsed, having, read.clause.scope, {*named, *given_names(read)})
    if parsed is None or bound is None:
        return None
    replaced = {
        reference.start: (reference.ends[0], enclosed(named[folded(reference.parts[0])].pieces))
        for reference in parsed.references
        if folded(reference.parts[0]) in named
    }
    return read.pieces(bound, lacking, replaced)


def _written(
    place: TextPlace,
    syntax: SelectSyntax,
    items: Sequence[Item],
    part: Part,
    groups: Sequence[Pieces],
    having: Pieces | None,
) -> MergedText:
    shown = [
        item.pieces
        if item.name is None
        else (*item.pieces, *said(f" AS {backquoted(item.name)}", item.pieces[-1].place))
        for item in items
    ]
    pieces = [
        *said("SELECT DISTINCT " if syntax.is_distinct else "SELECT ", place),
        *together(shown, ", "),
        *said(" FROM ", part.steps[0].place),
        *(piece for number, step in enumerate(part.steps) for piece in _join(step, is_first=number == 0)),
    ]
    if part.filters:
        pieces += (*said(" WHERE ", part.filters[0][0].place), *_all_of(part.filters))
    if groups:
        pieces += (*said(" GROUP BY ", groups[0][0].place), *together(groups, ", "))
    if having is not None:
        pieces += (*said(" HAVING ", having[0].place), *having)
    starts, length = list[tuple[int, TextPlace]](), 0
    for piece in pieces:
        starts.append((length, piece.place))
        length += len(piece.text)
    whole = "".join(piece.text for piece in pieces)
    if len(whole) > _MOST_CHARACTERS:
        raise UnsupportedQueryError(
            f"with its views merged this query has {len(whole):,} characters, and Plait runs {_MOST_CHARACTERS:,} at "
            "most; compute what is read several times in the stream: CREATE STREAM ... AS SELECT",
            line=place.line,
            column=place.column,
            file=place.file,
        )
    return MergedText(text=whole, file=place.file, line=place.line, column=place.column, pieces=tuple(starts))


def _join(step: Joined, *, is_first: bool) -> Pieces:
    named = f"{backquoted(step.source.name)} AS {backquoted(step.alias)}"
    if is_first:
        return said(named, step.place)
    joined = said(f" {_JOINS[step.kind]} {named}", step.place)
    return joined if not step.on else (*joined, *said(" ON ", step.on[0][0].place), *_all_of(step.on))


def _all_of(conditions: Sequence[Pieces]) -> Pieces:
    each_enclosed = [(*said("(", each[0].place), *each, *said(")", each[-1].place)) for each in conditions]
    return together(each_enclosed, " AND ")


__all__ = ["merge_views"]
