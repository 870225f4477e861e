"""Aggregates whose value depends on the order of rows: here it is that of event time, and of the values where times are
equal, so that it depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from plait.errors import UnsupportedQueryError
from plait.query.model import ColumnRef
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.functions import ORDERED
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.operations import called
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.select.time_window import calls

Edits = Mapping[int, tuple[int, str]]

_FIRST: Final = {"first": "min_by", "first_value": "min_by", "last": "max_by", "last_value": "max_by"}


def ordered(bound: BoundExpression, time: ColumnRef, edits: Edits, text: SourceText) -> Edits:
    """Return the edits with what stands for these aggregates in an expression over joined rows, `time` being the column
    of event time. Raises UnsupportedQueryError for a form of theirs that is not known.
    """
    return {**edits, **{call[0].start: (call[-1].end, _put(call, bound, time, edits, text)) for call in _calls(bound)}}


def _calls(bound: BoundExpression) -> list[list[Token]]:
    return list(calls([bound.tokens], ORDERED))


def _put(call: Sequence[Token], bound: BoundExpression, time: ColumnRef, edits: Edits, text: SourceText) -> str:
    name = folded(call[0].value)
    closing = next(index for index in range(2, len(call) + 1) if called(call[:index]) is not None)
    parts, rest = called(call[:closing]), call[closing:]
    arguments = () if parts is None else parts[1]
    value = arguments[0] if arguments else ()
    second = [token.keyword for token in arguments[1]] if len(arguments) == 2 else ["FALSE"]
    skips_null = second == ["TRUE"]
    is_known = second in (["TRUE"], ["FALSE"]) and len(arguments) <= 2 - (name not in _FIRST)
    if not value or value[0].keyword == "DISTINCT" or not is_known or _treats_nulls(call, bound):
        message = (
            f"Plait does not run this form of {name}(): write first(x), first(x, true) to pass over NULL, last(x), "
            "collect_list(x) or collect_set(x)"
        )
        raise text.error(message, call[0].start, UnsupportedQueryError)
    written = bound.part(value).over_join(edits).sql
    conditions = [f"({written}) IS NOT NULL"] if skips_null or name not in _FIRST else []
    if rest:  # FILTER (WHERE ...)
        conditions.append(f"({bound.part(rest[3:-1]).over_join(edits).sql})")
    chosen = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    row = f"struct({backquoted(time.name)} AS t, {written} AS x)"
    if name in _FIRST:
        return f"{_FIRST[name]}({written}, {row}){chosen}"
    if name == "collect_set":
        return f"array_sort(collect_set({written}){chosen})"
    return f"transform(array_sort(collect_list({row}){chosen}), each -> each.x)"


def _treats_nulls(call: Sequence[Token], bound: BoundExpression) -> bool:
    """Tell whether IGNORE NULLS or RESPECT NULLS follows."""
    following = [token.keyword for token in bound.tokens if token.start >= call[-1].end][:2]
    return following in (["IGNORE", "NULLS"], ["RESPECT", "NULLS"])


__all__ = ["ordered"]
