"""Views, each taken apart once: from its text to streams and tables, filters and columns.

A view may read views. One that reads itself, or groups, is no row of streams and tables, and refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import Column, Source, Stream, Table
from plait.query.places import TextPlace
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.functions import IsFunction
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.names import did_you_mean, folded
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.select.derived import HOW
from plait.sql.select.from_clause import FromClause, bind_from
from plait.sql.select.join_parts import without_needless
from plait.sql.select.local_views import view_within, without_with
from plait.sql.select.over_views import Collected, OverViews
from plait.sql.select.select_text import select_tokens
from plait.sql.select.shown_items import Item, items_of
from plait.sql.select.syntax import RelationSyntax, SelectSyntax, parse_select
from plait.sql.select.view_parts import Joined, Part, Shown, TakenApart, View, with_aliases
from plait.sql.select.where_tests import WhereSyntax, split_where
from plait.sql.statements import WindowOverride

_MOST_PIECES: Final = 4_000
"""Binding takes time that grows with the square: this many take about a second."""
_UNKNOWN: Final = "variant"
"""The type that a column of a view is taken for whose type only Spark knows: it may have any field."""


class Views:
    """The views there are, those called like a stream or table left out."""

    def __init__(
        self,
        views: Iterable[View],
        sources: Mapping[str, Source],
        registered: Sequence[str] = (),
        is_function: IsFunction | None = None,
    ) -> None:
        taken = set(map(folded, sources))
        self._views = {folded(view.name): view for view in views if folded(view.name) not in taken}
        self._sources, self._registered, self._is_function = sources, registered, is_function
        self._taken: dict[View, TakenApart] = {}
        self._open: list[View] = []

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(view.name for view in self._views.values())

    def named(self, name: str) -> View | None:
        """Return the view of this name."""
        return self._views.get(folded(name))

    def taken_apart(self, view: View, problems: list[SqlError]) -> TakenApart | None:
        """Return what a view comes to; None if something is wrong with it, which is noted."""
        before = len(problems)
        if view not in self._taken:
            self._open.append(view)
            try:
                taken = self._take_apart(view, problems)
            except SqlError as problem:
                problems.append(problem)
                return None
            finally:
                self._open.pop()
            if taken is None or len(problems) > before:
                return None
            self._taken[view] = taken
        return self._taken[view]

    def _take_apart(self, view: View, problems: list[SqlError]) -> TakenApart | None:
        syntax, written, read = self.read(view.text, problems, view.known)
        if syntax.at is not None:
            raise view.text.error(
                f"'{view.name}' groups, and cannot be read so: {HOW}", syntax.at.start, UnsupportedQueryError
            )
        if read is None:
            return None
        part, lacking = read.part(written)
        items = items_of(syntax, read, lacking)
        _refuse_names(view, items, problems)
        if max((len(item.pieces) for item in items), default=0) > _MOST_PIECES:
            raise view.text.error(
                f"a column of view '{view.name}' is too long once the views that it reads are merged, each as often as "
                "its columns are read; compute what is read several times in the stream: CREATE STREAM ... AS SELECT",
                0,
                UnsupportedQueryError,
            )
        return TakenApart(
            part=without_needless(part),
            columns=tuple(Shown(name=item.name or "", pieces=item.pieces, type=item.type) for item in items),
            windows=windows_of(view.windows, read, problems),
        )

    def read(
        self, text: SourceText, problems: list[SqlError], known: tuple[View, ...] = ()
    ) -> tuple[SelectSyntax, WhereSyntax, OverViews | None]:
        """Return a SELECT over streams, tables and views; without what its names mean if one of its relations is wrong.
        `known`: views that it may read besides those that all may. Raises SqlError if it is none.
        """
        masked, tokens = select_tokens(text)
        local, tokens = without_with(text, masked, tokens, known)
        cursor = Cursor(text, masked, tokens, tokens[-1].end)
        syntax = parse_select(cursor)
        written = split_where(cursor, syntax)
        relations = (*syntax.relations, *(test.relation for test in written.tests))
        views: dict[str, TakenApart] = {}
        read = [(self._view_of(each, text, (*known, *local)), each.source) for each in relations]
        for view, at in (*((view, tokens[0]) for view in local), *read):
            if view is not None:
                self._refuse_circle(view, text, at)
                taken = self.taken_apart(view, problems)
                if taken is None:
                    return syntax, written, None
                views[view.name] = taken
        expressions = ExpressionBinder(text, masked, problems, self._registered, self._is_function)
        sources = {**self._sources, **{name: _as_source(name, view) for name, view in views.items()}}
        clause = bind_from(relations, sources, expressions, lambda: Collected(text), is_view=True, views=self.names)
        if clause is None:
            return syntax, written, None
        return syntax, written, _over_views(text, masked, relations, clause, expressions, views, tokens)

    def _view_of(self, relation: RelationSyntax, text: SourceText, known: tuple[View, ...]) -> View | None:
        """Return the view that a relation is: in parentheses, one that the text alone knows, or any."""
        name = relation.source.value
        if relation.inner is not None:
            return view_within(text, relation.inner, name, known)
        own = (view for view in reversed(known) if folded(view.name) == folded(name))
        return next(own, None) or self.named(name)

    def _refuse_circle(self, view: View, text: SourceText, at: Token) -> None:
        if view in self._open:
            circle = " reads ".join(f"'{each.name}'" for each in (*self._open[self._open.index(view) :], view))
            raise text.error(f"view {circle}, a circle; let one of them read streams and tables", at.start)


def _refuse_names(view: View, items: Sequence[Item], problems: list[SqlError]) -> None:
    """Refuse columns that a query could not name."""
    seen: set[str] = set()
    for item in items:
        if item.name is None:
            message = f"this column of view '{view.name}' has no name: write AS and one behind it"
            problems.append(view.text.error(message, item.at.start))
        elif folded(item.name) in seen:
            message = f"two columns of view '{view.name}' are called '{item.name}'; give one another name with AS"
            problems.append(view.text.error(message, item.at.start))
        seen.add(folded(item.name or ""))


def _as_source(name: str, view: TakenApart) -> Source:
    """Return a view as its columns are seen from outside."""
    columns = tuple(Column(name=each.name, type=each.type or _UNKNOWN) for each in view.columns)
    if any(isinstance(step.source, Stream) for step in view.part.steps):
        return Stream(name=name, time="", schema=columns)
    return Table(name=name, schema=columns)


def _over_views(
    text: SourceText,
    masked: str,
    relations: Sequence[RelationSyntax],
    clause: FromClause,
    expressions: ExpressionBinder,
    views: Mapping[str, TakenApart],
    tokens: Sequence[Token],
) -> OverViews:
    """Put the relations of each view under aliases of their own: that of the view, if it has one relation."""
    written = [piece.sql for view in views.values() for each in view.columns for piece in each.pieces]
    used = {folded(name) for name in (*(token.value for token in tokens), *written)}
    parts: dict[str, Part] = {}
    taken: dict[str, TakenApart] = {}
    for relation in clause.relations:
        alias, view = relation.alias, views.get(relation.source.name)
        if view is None:
            step = Joined(kind="first", alias=alias, source=relation.source, place=_place(text, clause, alias))
            parts[alias] = Part(steps=(step,))
            continue
        inner = [step.alias for step in view.part.steps]
        aliases = {inner[0]: alias} if len(inner) == 1 else {each: _free(f"{alias}_{each}", used) for each in inner}
        taken[alias] = with_aliases(view, aliases)
        parts[alias] = taken[alias].part
    return OverViews(
        text=text,
        masked=masked,
        clause=clause,
        expressions=expressions,
        taken=taken,
        parts=parts,
        views={
            bound.alias: bound.alias if syntax.inner is not None else bound.source.name
            for syntax, bound in zip(relations, clause.relations, strict=True)
            if bound.alias in taken
        },
    )


def _place(text: SourceText, clause: FromClause, alias: str) -> TextPlace:
    return text.text_place(clause.places[alias].start)


def _free(alias: str, used: set[str]) -> str:
    """Return an alias like this that nothing is called, and remember it."""
    free, number = alias, 2
    while folded(free) in used:
        free, number = f"{alias}{number}", number + 1
    used.add(folded(free))
    return free


def windows_of(
    written: Sequence[WindowOverride], read: OverViews, problems: list[SqlError]
) -> tuple[WindowOverride, ...]:
    """Return the windows of streams that are not their own: those that views say, and those `written`, which of a view
    are of all its streams.
    """
    found = {each.alias: each for view in read.taken.values() for each in view.windows}
    aliases = [relation.alias for relation in read.clause.relations]
    for override in written:
        alias = next((each for each in aliases if folded(each) == folded(override.alias)), None)
        steps = () if alias is None else read.parts[alias].steps
        streams = [step.alias for step in steps if isinstance(step.source, Stream)]
        if alias is None:
            hint = did_you_mean(override.alias, aliases)
            problem = f"WINDOW names '{override.alias}', which is no relation of the query{hint}"
        elif not streams:
            problem = f"'{override.alias}' is of tables, which have no window; remove it from WINDOW"
        elif override.window_us is not None and override.window_us <= 0:
            problem = f"the window of '{override.alias}' must be longer than zero"
        else:
            found |= {stream: replace(override, alias=stream) for stream in streams}
            continue
        place = read.text.text_place(0)
        line, column = override.line or place.line, override.column or place.column
        problems.append(SqlError(problem, line=line, column=column, file=place.file))
    return tuple(found.values())


__all__ = ["Views", "windows_of"]
