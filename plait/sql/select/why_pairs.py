"""Of which relations a query that groups need only know how many rows match, and what they add up to.

Where such a relation is joined last, its matches are counted and no pairs are made. They lie side by side in an index,
in order of τ, if equal keys are all that it is joined by; and the partial aggregates of a range can be told without
going through it if all of them are counts, sums and extremes, and whatever else is read of the relation is one of those
keys, which is the same for all of the range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plait.query.model import ColumnRef, Operand, Query, relations_of
from plait.query.predicates import Equality
from plait.query.time_windows import SessionWindow
from plait.sinks.delivery import Fold
from plait.spelling import backquoted

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_SEVERAL_OF_ONE_KEY: Final = ("float", "double")
"""Types of which different values are equal: 0.0 and -0.0."""


def countable(query: Query, fold: Fold | None, types: Mapping[ColumnRef, str]) -> tuple[str, ...]:
    """Return the relations whose matches are counted where they are joined last. `fold`: how the rows of the query are
    kept; `types`: the columns of the joined row with their Spark types.
    """
    aliases = (relation.alias for relation in query.relations)
    return tuple(alias for alias in aliases if why_pairs(query, fold, types, alias) is None)


def why_pairs(query: Query, fold: Fold | None, types: Mapping[ColumnRef, str], alias: str) -> str | None:
    """Say why pairs are made where a relation is joined last; None if its matches are counted."""
    if fold is None:
        return "not all of what is computed can be put together from parts"
    if query.joins:
        return "rows may lack a partner"
    predicates = [each for each in query.predicates if alias in relations_of(each)]
    if not predicates or not all(isinstance(each, Equality) for each in predicates):
        return f"{alias} is joined by more than equal keys" if predicates else f"{alias} is joined with all rows"
    window = query.aggregation.window if query.aggregation is not None else None
    if isinstance(window, SessionWindow) and window.relation == alias:
        return f"sessions are of the time of {alias}"
    if window is not None and window.relation == alias:
        time = ColumnRef(relation=alias, column=window.column)
        if types[time] != "timestamp":
            return f"windows are of {time.name}, which is no TIMESTAMP"
    operands = [side for each in predicates if isinstance(each, Equality) for side in (each.left, each.right)]
    for ref, type_ in types.items():
        if ref.relation == alias and ref.name in fold.keys and not any(_is_key(each, ref, type_) for each in operands):
            return f"each value of {ref.name} is needed"
    return None


def _is_key(operand: Operand, ref: ColumnRef, type_: str) -> bool:
    """Tell whether rows with the same key have the same value of a column."""
    if operand.relation != ref.relation or operand.expression.sql != backquoted(ref.column):
        return False
    if type_ in _WHOLE:
        return operand.type in _WHOLE
    return operand.type == type_ and type_ not in _SEVERAL_OF_ONE_KEY


__all__ = ["countable", "why_pairs"]
