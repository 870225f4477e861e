"""Event time: a column of the stream, or any row-wise Spark SQL expression over its columns that is a time.

In: the text after TIMESTAMP BY (in Python, `time=`) and the stream's columns. Out: the stream with its time column
spelled as in the schema, or with the expression over its columns and that expression's type. What is wrong with it is
an error that points into the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from plait.errors import SqlError
from plait.query.model import EventTime, Stream
from plait.spelling import did_you_mean, folded
from plait.sql.expressions.bound import BoundExpression
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.functions import IsFunction
from plait.sql.expressions.inference import inferred_type
from plait.sql.expressions.scope import BoundRelation, Scope
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.numbers import is_numeric
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import Token, depths, tokenize

TIME_TYPES: Final = ("timestamp", "timestamp_ntz", "date")

_FROM_UNIXTIME: Final = re.compile(r"from_unixtime\s*\(([^,]*?)(?:,.*)?\)", re.IGNORECASE | re.DOTALL)
_CLAUSES: Final = ("OPTIONS", "WINDOW", "DELAY", "FORMAT", "AS")
_INFIX: Final = frozenset(["AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "DIV", "COLLATE", "AT", "END"])


def read_event_time(cursor: Cursor) -> str:
    """Read the column or expression after TIMESTAMP BY, up to the next clause; a lone name comes without its quotes."""
    tokens = cursor.rest()
    taken = next((index for index, depth, _ in depths(tokens) if depth == 0 and _ends(tokens, index)), len(tokens))
    if taken == 0 or (taken == 1 and tokens[0].kind not in ("word", "quoted")):
        raise cursor.expected("the time column, or an expression such as timestamp_millis(ms)")
    for _ in range(taken):
        cursor.advance()
    return tokens[0].value if taken == 1 else cursor.raw(tokens[:taken])


def _ends(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether the expression ends before this token: a clause starts, or a word that cannot follow."""
    token = tokens[index]
    if index == 0:
        return token.kind == "symbol" and not token.is_symbol("(", "-", "+")
    before = tokens[index - 1]
    if before.is_symbol(".", "::") or token.kind not in ("word", "quoted"):
        return False
    follows = index + 1 < len(tokens) and tokens[index + 1].keyword == "BY"
    if token.keyword in _CLAUSES or (token.keyword == "TIMESTAMP" and follows):
        return True
    is_operand = before.is_symbol(")", "]") or (before.kind in ("word", "quoted") and before.keyword not in _INFIX)
    return (
        is_operand
        and token.keyword not in _INFIX
        and not _is_in_interval(tokens, index)
        and not _is_type(tokens, index)
    )


def _is_in_interval(tokens: Sequence[Token], index: int) -> bool:
    return any(token.keyword == "INTERVAL" for token in tokens[max(index - 6, 0) : index])


def _is_type(tokens: Sequence[Token], index: int) -> bool:
    return any(token.is_symbol("::") for token in tokens[max(index - 4, 0) : index])


def bind_event_time(stream: Stream, text: SourceText, is_function: IsFunction | None = None) -> Stream:
    """Return the stream with its event time found among its columns, which are known; `text`: where it is written.

    The type of an expression stays None where only Spark knows it. Raises SqlError.
    """
    columns = stream.schema or ()
    column = next((column for column in columns if folded(column.name) == folded(stream.time)), None)
    if column is not None:
        refuse_other_types(column.type, column.name, text)
        return replace(stream, time=column.name, computed=None)
    masked = scan(text.text).masked
    tokens = tokenize(text, masked, 0, len(masked))
    if len(tokens) <= 1:
        hint = did_you_mean(stream.time, (column.name for column in columns))
        raise text.error(f"the event time '{stream.time}' is no column{hint}", 0)
    bound = _bound(stream, text, masked, tokens, is_function)
    expression, type_ = bound.over_source(), inferred_type(bound)
    if not expression.columns:
        raise text.error(f"the event time {bound.as_written()} depends on no column of the stream", tokens[0].start)
    if type_ is not None:
        refuse_other_types(type_, bound.as_written(), text)
    computed = EventTime(sql=expression.sql, columns=expression.columns, type=type_)
    return replace(stream, time=bound.as_written(), computed=computed)


def _bound(
    stream: Stream, text: SourceText, masked: str, tokens: tuple[Token, ...], is_function: IsFunction | None
) -> BoundExpression:
    problems: list[SqlError] = []
    binder = ExpressionBinder(text, masked, problems, is_function=is_function)
    scope = Scope.of(BoundRelation(alias=stream.name, source=stream))
    bound = binder.bind(binder.parse(tokens), tokens, scope)
    for problem in problems:
        raise problem
    assert bound is not None
    return bound


def refuse_other_types(type_: str, written: str, text: SourceText) -> None:
    """Refuse an event time that is no time, and say what to write for one. Raises SqlError."""
    if type_ in TIME_TYPES:
        return
    if is_numeric(type_):
        advice = (
            f"write timestamp_millis({written}) if it counts milliseconds since 1970, timestamp_seconds({written}) or "
            f"timestamp_micros({written}) if it counts those"
        )
    elif (counted := _FROM_UNIXTIME.fullmatch(written)) is not None:
        advice = f"write timestamp_seconds({counted[1]}): from_unixtime makes a text of it"
    elif type_ == "string":
        advice = f"write to_timestamp({written}, 'yyyy-MM-dd HH:mm:ss') with the pattern it has"
    elif type_.startswith("struct<"):
        advice = f"name the field that is a time: {written}.field"
    else:
        advice = "write an expression that is a TIMESTAMP, TIMESTAMP_NTZ or DATE"
    raise text.error(f"the event time {written} has type {type_}, which is no time; {advice}", 0)
