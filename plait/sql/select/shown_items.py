"""The SELECT list of a query over views, or of a view: each item as it reads streams and tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain

from plait.errors import SqlError, UnsupportedQueryError
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.inference import inferred_type
from plait.sql.expressions.structs import zipped_arguments
from plait.sql.lexis.names import folded
from plait.sql.lexis.tokens import Token
from plait.sql.select.output import bind_output, is_star, without_alias
from plait.sql.select.over_views import OverViews
from plait.sql.select.syntax import SelectSyntax
from plait.sql.select.time_window import NAMES
from plait.sql.select.view_parts import Pieces, enclosed, said, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`name` None: Spark derives one from the text, which over views may be another than over streams and tables where
    `is_named_otherwise`. `type` None: only Spark knows. `at`: its first token.
    """

    name: str | None
    pieces: Pieces
    type: str | None
    at: Token
    is_named_otherwise: bool = False


def items_of(syntax: SelectSyntax, read: OverViews, lacking: Collection[str]) -> list[Item]:
    """Return the items; wrong ones are noted and left out."""
    items: list[Item] = []
    for item in syntax.items:
        try:
            items += _star(item, read, lacking) if is_star(item) else _item(item, read, lacking, syntax.at is not None)
        except SqlError as problem:
            read.expressions.problems.append(problem)
    return items


def given_names(read: OverViews) -> set[str]:
    """Return the names in a query that groups which are no columns of its relations: those of windows of time."""
    scope = read.clause.scope
    return {name for name in NAMES if scope.relation(name) is None and not scope.named(name)}


def _star(item: tuple[Token, ...], read: OverViews, lacking: Collection[str]) -> list[Item]:
    place, items = read.text.text_place(item[0].start), list[Item]()
    for output, at in bind_output((item,), read.clause.scope, read.expressions):
        columns = [enclosed(read.column(column, lacking, place)) for column in output.expression.columns]
        coalesced = (*said("coalesce(", place), *together(columns, ", "), *said(")", place))
        relation = read.clause.scope.relation(output.expression.columns[0].relation)
        declared = None if relation is None else relation.column(output.expression.columns[0].column)
        pieces = columns[0] if len(columns) == 1 else coalesced
        items.append(Item(name=output.name, pieces=pieces, type=declared.type if declared else None, at=at))
    return items


def _item(item: tuple[Token, ...], read: OverViews, lacking: Collection[str], groups: bool) -> list[Item]:
    expressions = read.expressions
    tokens, alias = without_alias(item, expressions)
    parsed = expressions.parse(tokens, groups=groups)
    if parsed is not None and parsed.alias is not None:
        alias, tokens = parsed.alias, tokens[:-1]
    bound = expressions.bind(parsed, tokens, read.clause.scope, given_names(read) if groups else ())
    if bound is None:
        return []
    for argument in zipped_arguments(tokens):
        if argument and bound.part(argument).is_column:
            message = "Plait does not run arrays_zip() of columns: use zip_with(a, b, (x, y) -> struct(x, y))"
            raise read.text.error(message, argument[0].start, UnsupportedQueryError)
    return [
        Item(
            name=alias.value if alias else tokens[-1].value if bound.is_column else None,
            pieces=read.pieces(bound, lacking, is_item=True),
            type=inferred_type(bound),
            at=item[0],
            is_named_otherwise=_is_named_otherwise(bound, read),
        )
    ]


def _is_named_otherwise(bound: BoundExpression, read: OverViews) -> bool:
    """Tell whether it reads a column of a view that is no column of the same name in a stream or table."""
    for column in chain.from_iterable(meaning.columns for _, meaning in bound.meanings):
        view = read.taken.get(column.relation)
        shown = None if view is None else view.column(column.column)
        if shown is None:
            continue
        behind = shown.pieces[0].column
        if len(shown.pieces) > 1 or behind is None or folded(behind.column) != folded(column.column):
            return True
    return False


__all__ = ["Item", "given_names", "items_of"]
