"""The columns of a query's groups, as queries that read them see them: their names, and types where these are plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.plan.columns import name_problem
from plait.query.origin import UNTOLD, Column
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.inference import inferred_type
from plait.sql.lexis.names import folded
from plait.sql.lexis.numbers import FLOATING, INTEGERS, MAX_DIGITS, TIMES, decimal_size, is_decimal
from plait.sql.lexis.operations import called
from plait.sql.select.time_window import NAMES, aggregate_calls, is_window

_COUNTS: Final = frozenset({"count", "count_if", "approx_count_distinct"})
_ALIKE: Final = frozenset({"min", "max", "first", "first_value", "last", "last_value"})
_DOUBLES: Final = frozenset({"stddev", "std", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"})


def group_columns(
    items: Sequence[tuple[str | None, BoundExpression]], time_type: str | None
) -> tuple[tuple[Column, ...] | None, int | None]:
    """Return the items of a SELECT list, each with its name if it has one, as columns, and which of them is the end of
    the window. `time_type`: of the times that windows are of.

    There are no columns unless each has a name of its own, and no end where windows are of dates: these are days of the
    session's time zone, and their ends moments.
    """
    columns, end = list[Column](), None
    for place, (written, bound) in enumerate(items):
        of_window = _bound_of_window(bound)
        name = written
        if name is None and of_window is not None and len(bound.tokens) == 3:
            name = bound.tokens[-1].value  # Spark calls a field by its name
        if name is None or name_problem(name) is not None or any(folded(each.name) == folded(name) for each in columns):
            return None, None
        if of_window == "end" and end is None and time_type in (*TIMES, None):
            end = place
        type_ = _type_of(bound) if of_window is None else time_type if time_type in TIMES else None
        columns.append(Column(name=name, type=type_ or UNTOLD))
    return tuple(columns), end


def _bound_of_window(bound: BoundExpression) -> str | None:
    """Return which bound of its window an expression is, ``start`` or ``end``; None if it is none."""
    tokens = bound.tokens
    if len(tokens) < 3 or not tokens[-2].is_symbol(".") or folded(tokens[-1].value) not in ("start", "end"):
        return None
    # What is called so may also be a column.
    is_named = len(tokens) == 3 and folded(tokens[0].value) in NAMES and not bound.meanings
    return folded(tokens[-1].value) if is_named or is_window(tokens) else None


def _type_of(bound: BoundExpression) -> str | None:
    """Return the type of a key or of an aggregate; None where only Spark knows."""
    aggregates = list(aggregate_calls(bound.tokens))
    if not aggregates:
        return inferred_type(bound)
    name, (start, end) = aggregates[0]
    if bound.tokens[0].start != start or bound.tokens[-1].end != end:
        return None
    if name in _COUNTS:
        return "bigint"
    if name in _DOUBLES:
        return "double"
    call = called(bound.tokens)
    arguments = () if call is None else call[1]
    if len(arguments) != 1 or not arguments[0]:
        return None
    type_ = inferred_type(bound.part(arguments[0]))
    if type_ is None or name in _ALIKE:
        return type_
    if name == "sum":
        return _type_of_sum(type_)
    return "double" if name == "avg" and type_ in (*INTEGERS, *FLOATING) else None


def _type_of_sum(type_: str) -> str | None:
    size = decimal_size(type_) if is_decimal(type_) else None
    if size is not None:
        return f"decimal({min(MAX_DIGITS, size[0] + 10)},{size[1]})"
    if type_ in INTEGERS:
        return "bigint"
    return "double" if type_ in FLOATING else None


__all__ = ["group_columns"]
