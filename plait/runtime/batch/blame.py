"""Which condition of which query Spark could not evaluate, by the piece of SQL that its message shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from typing_extensions import assert_never

from plait.errors import SourceError
from plait.operators.ingest.projection import value_sql
from plait.plan.model import ValueColumn
from plait.query.model import Operand, Query
from plait.query.places import TextPlace
from plait.query.predicates import Band, Equality, Predicate, Residual, operands_of
from plait.sql.predicates.evaluation import named, shown

_SHOWN_SQL = re.compile(r"== SQL[^\n]*==\n(.*)", re.DOTALL)
_UNREADABLE = re.compile(r"\[CAST_INVALID_INPUT\] (The value .* cannot be cast to \"(.+?)\" because it is malformed)")


def blamed_condition(text: str, queries: Iterable[Query]) -> SourceError | None:
    """Return the error of a value that could not be cast where a query compares it; None if Spark tells of another
    error, or of a cast in no query's condition.
    """
    cast, shown_sql = _UNREADABLE.search(text), _SHOWN_SQL.search(text)
    if cast is None or shown_sql is None:
        return None
    found = [each for query in queries for each in _conditions(query, shown_sql[1], cast[2])]
    if not found:
        return None
    place, condition, advice = found[0]
    others = f" ({len(found) - 1} more conditions read the same)" if len(found) > 1 else ""
    reason = cast[1][0].lower() + cast[1][1:]
    return SourceError(
        f"{condition}{others}, which Spark cannot do for some row: {reason}. {advice}, or mend the data. The "
        "checkpoint is intact: start again then.",
        line=place.line,
        column=place.column,
        file=place.file,
    )


def _conditions(query: Query, sql: str, type_: str) -> Iterator[tuple[TextPlace, str, str]]:
    """Yield (where, what is done, what to do) for the conditions of a query that the SQL is made for."""
    for predicate in query.predicates:
        for operand in operands_of(predicate):
            if _computed(operand) in sql:
                yield (
                    _place(predicate) or query.place,
                    f"query '{query.name}' {_done(predicate)}",
                    _advice(operand, type_),
                )
    for relation in query.relations:
        for selection in relation.selections:
            if selection.sql in sql:
                operand = Operand(relation=relation.alias, expression=selection)
                yield query.place, f"query '{query.name}' selects {named(operand)}", _advice(None, type_)


def _computed(operand: Operand) -> str:
    """Return what Spark computes for an operand, without a doubt of its type: it has run."""
    return value_sql(ValueColumn(expression=operand.expression, type=operand.type or ""))


def _place(predicate: Predicate[Operand]) -> TextPlace | None:
    match predicate:
        case Equality() | Residual():
            return predicate.place
        case Band():
            return None
        case _:
            assert_never(predicate)


def _done(predicate: Predicate[Operand]) -> str:
    match predicate:
        case Residual():
            return f"checks {shown(predicate)}"
        case Equality() | Band():
            return f"compares {named(predicate.left)} with {named(predicate.right)} as {predicate.left.type}"
        case _:
            assert_never(predicate)


def _advice(operand: Operand | None, type_: str) -> str:
    text = "the text" if operand is None else named(operand)
    return f"Write try_cast({text} AS {type_}), which is NULL, and so in no result, where it cannot be read"
