"""What a view comes to once it is taken apart: streams and tables, joined one after the other, filters and columns.

Expressions are **pieces**: the tokens of the user's texts, each with its place, and columns of relations in between. So
a view can be put into a query under other aliases, and a view into a view, without any name meaning something else
there; the aliases are written down when all is put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from plait.query.model import ColumnRef, Source, Stream
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, TESTS
from plait.query.places import TextPlace
from plait.sql.expressions.bound import BoundExpression
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.select.syntax import JoinKind
from plait.sql.statements import WindowOverride

INNER: Final[frozenset[JoinKind]] = frozenset({"inner", "cross"})


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """``CREATE VIEW name AS SELECT ...``: its text, and the windows of its relations where they are its own. `known`:
    views that it may read besides those that all may.
    """

    name: str
    text: SourceText
    windows: tuple[WindowOverride, ...] = ()
    known: tuple[View, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A token as it is written, or a `column` of a relation, and its place in the user's texts."""

    place: TextPlace
    sql: str = ""
    column: ColumnRef | None = None

    @property
    def text(self) -> str:
        """What is written for it."""
        if self.column is None:
            return self.sql
        return f"{backquoted(self.column.relation)}.{backquoted(self.column.column)}"


Pieces: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A stream or table under an alias, how it is joined to what comes before it, and the conditions of that."""

    kind: JoinKind
    alias: str
    source: Source
    place: TextPlace
    on: tuple[Pieces, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Joins one after the other, and conditions on all the rows they come to."""

    steps: tuple[Joined, ...]
    filters: tuple[Pieces, ...] = ()

    @property
    def is_inner(self) -> bool:
        """Whether all its joins are inner ones."""
        return all(step.kind in INNER for step in self.steps[1:])

    @property
    def certain(self) -> frozenset[str]:
        """The relations with columns that have a row in each of its rows."""
        shown, lacking = {self.steps[0].alias}, set[str]()
        for step in self.steps[1:]:
            if step.kind in TESTS:
                continue
            lacking |= {step.alias} if step.kind in KEEPS_LEFT else set()
            lacking |= shown if step.kind in KEEPS_RIGHT else set()
            shown.add(step.alias)
        return frozenset(shown - lacking)

    @property
    def presence(self) -> ColumnRef | None:
        """A column that is NULL in none of its rows: the event time of a stream. None if there is no such column."""
        for step in self.steps:
            source = step.source
            if step.alias in self.certain and isinstance(source, Stream) and source.computed is None:
                for column in source.schema or ():
                    if folded(column.name) == folded(source.time):
                        return ColumnRef(relation=step.alias, column=column.name)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A column of a view. `type` None: only Spark knows it."""

    name: str
    pieces: Pieces
    type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenApart:
    """A view, taken apart. `windows`: of its relations, where they are not those of the streams."""

    part: Part
    columns: tuple[Shown, ...]
    windows: tuple[WindowOverride, ...] = ()

    def column(self, name: str) -> Shown | None:
        """Return the column of this name."""
        return next((each for each in self.columns if folded(each.name) == folded(name)), None)


def sql_of(pieces: Iterable[Piece]) -> str:
    """Return what pieces say."""
    return "".join(piece.text for piece in pieces)


def relations_of(pieces: Iterable[Piece]) -> frozenset[str]:
    """Return the aliases of the relations that pieces read."""
    return frozenset(piece.column.relation for piece in pieces if piece.column is not None)


def said(sql: str, place: TextPlace) -> Pieces:
    """Return words that no user wrote, for what stands at a place."""
    return (Piece(place=place, sql=sql),)


def column_at(column: ColumnRef, place: TextPlace) -> Pieces:
    """Return a column of a relation, for what stands at a place."""
    return (Piece(place=place, column=column),)


def enclosed(pieces: Pieces) -> Pieces:
    """Return an expression so that it can stand within another: in parentheses, unless it is a column."""
    if len(pieces) == 1 and pieces[0].column is not None:
        return pieces
    return (*said("(", pieces[0].place), *pieces, *said(")", pieces[-1].place))


def together(expressions: Sequence[Pieces], between: str) -> Pieces:
    """Return expressions one after the other, with these words between them."""
    return tuple(
        piece
        for number, each in enumerate(expressions)
        for piece in (*(said(between, each[0].place) if number else ()), *each)
    )


def pieces_of(
    text: SourceText, masked: str, tokens: Sequence[Token], replaced: Mapping[int, tuple[int, Pieces]]
) -> Pieces:
    """Return the tokens of a text, gaps made one blank, with some spans replaced: ``{start: (end, pieces)}``."""
    pieces: list[Piece] = []
    covered = before = -1
    for token in tokens:
        if token.start < covered:
            continue
        place = text.text_place(token.start)
        if 0 <= before < token.start:
            pieces += said(" ", place)
        covered, new = replaced.get(token.start, (token.end, None))
        pieces += said(masked[token.start : token.end], place) if new is None else new
        before = covered
    return tuple(pieces)


def names_its_fields(bound: BoundExpression, arguments: Sequence[tuple[Token, ...]]) -> bool:
    """Tell whether arguments that become a struct are those of ``struct(...)``, and not a row that is compared."""
    first = next((argument[0].start for argument in arguments if argument), -1)
    place = next((place for place, token in enumerate(bound.tokens) if token.start == first), 0)
    return place > 1 and bound.tokens[place - 2].value.lower() == "struct"


def with_aliases(view: TakenApart, aliases: Mapping[str, str]) -> TakenApart:
    """Return a view with its relations called otherwise."""

    def renamed(pieces: Pieces) -> Pieces:
        return tuple(
            piece
            if piece.column is None
            else replace(piece, column=replace(piece.column, relation=aliases[piece.column.relation]))
            for piece in pieces
        )

    steps = tuple(replace(step, alias=aliases[step.alias], on=tuple(map(renamed, step.on))) for step in view.part.steps)
    return TakenApart(
        part=Part(steps=steps, filters=tuple(map(renamed, view.part.filters))),
        columns=tuple(replace(each, pieces=renamed(each.pieces)) for each in view.columns),
        windows=tuple(replace(each, alias=aliases[each.alias]) for each in view.windows),
    )


__all__ = [
    "INNER",
    "Joined",
    "Part",
    "Piece",
    "Pieces",
    "Shown",
    "TakenApart",
    "View",
    "column_at",
    "enclosed",
    "names_its_fields",
    "pieces_of",
    "relations_of",
    "said",
    "sql_of",
    "together",
    "with_aliases",
]
