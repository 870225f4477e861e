"""The one ``window(time, size[, slide[, start]])``, or ``session_window(time, gap)``, of a query that groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plait.errors import OptionError, SqlError, UnsupportedQueryError
from plait.query.model import ColumnRef, Stream
from plait.query.time_windows import SessionWindow, TimeWindow, Window
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.functions import GROUPED, ORDERED
from plait.sql.expressions.scope import Scope
from plait.sql.lexis.durations import parse_duration_us
from plait.sql.lexis.names import backquoted, folded
from plait.sql.lexis.operations import called
from plait.sql.lexis.tokens import Token, depths

WINDOW: Final = "window"
SESSION: Final = "session_window"
NAMES: Final = (WINDOW, SESSION)
"""The functions, and the columns of the joined row that hold a window."""

ADVICE: Final = "GROUP BY window(o.ts, '10 minutes'), with the time column of a stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWindow:
    """`edits`: where its calls start, where they end, and what stands there for the joined row."""

    window: Window
    edits: Mapping[int, tuple[int, str]]

    @property
    def time(self) -> ColumnRef:
        """The column of the windows' event time."""
        return ColumnRef(relation=self.window.relation, column=self.window.column)


def bind_window(
    expressions_of: Sequence[Sequence[Token]],
    scope: Scope,
    windows: Mapping[str, int | None],
    expressions: ExpressionBinder,
) -> FoundWindow | None:
    """Bind all calls of `NAMES`, which must be one and the same. Raises SqlError; None if the column is wrong."""
    written = list(calls(expressions_of, NAMES))
    found = [_window(call, scope, windows, expressions) for call in written]
    known = [each for each in found if each is not None]
    if len(known) < len(written) or not known:
        return None
    for call, window in zip(written, known, strict=True):
        if window != known[0]:
            message = "Plait does not run two windows of time in one query: write a query for each"
            raise expressions.text.error(message, call[0].start, UnsupportedQueryError)
    edits = {call[0].start: (call[-1].end, backquoted(folded(call[0].value))) for call in written}
    return FoundWindow(window=known[0], edits=edits)


def is_window(tokens: Sequence[Token]) -> bool:
    """Tell whether it is a window, or one of its ends: ``window(...)``, ``window(...).end``; of sessions the session as
    a whole, since its ends are not known row by row.
    """
    at_end = len(tokens) > 2 and tokens[-2].is_symbol(".") and tokens[-1].keyword in ("START", "END")
    call = called(tokens[:-2] if at_end else tokens)
    return call is not None and folded(call[0].value) in (WINDOW, *(() if at_end else (SESSION,)))


def aggregate_calls(tokens: Sequence[Token]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each aggregate, and where its call, with its FILTER, starts and ends in the text."""
    for call in calls([tokens], (GROUPED | ORDERED) - {*NAMES}):
        yield folded(call[0].value), (call[0].start, call[-1].end)


def calls(expressions_of: Sequence[Sequence[Token]], names: Collection[str]) -> Iterator[list[Token]]:
    """Yield the tokens of each call of these functions, but for those inside others; with FILTER (...) behind it."""
    for tokens in expressions_of:
        until = -1
        for index, token in enumerate(tokens[:-1]):
            is_field = index > 0 and tokens[index - 1].is_symbol(".")
            is_called = token.kind in ("word", "quoted") and tokens[index + 1].is_symbol("(") and not is_field
            if index > until and is_called and folded(token.value) in names:
                until = _closing(tokens, index + 1)
                if [each.keyword for each in tokens[until + 1 : until + 2]] == ["FILTER"]:
                    until = _closing(tokens, until + 2)
                yield list(tokens[index : until + 1])


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at `opening`."""
    rest = tokens[opening:]
    return opening + next(index for index, depth, token in depths(rest) if depth == 0 and token.is_symbol(")"))


def _window(
    call: Sequence[Token], scope: Scope, windows: Mapping[str, int | None], expressions: ExpressionBinder
) -> Window | None:
    parts = called(call)
    arguments = () if parts is None else parts[1]
    if folded(call[0].value) == SESSION:
        return _session(call[0], arguments, scope, windows, expressions)
    if not 2 <= len(arguments) <= 4 or not all(arguments):
        message = "window() takes the time column of a stream and a length: window(o.ts, '10 minutes')"
        raise expressions.text.error(f"{message}, then how far apart windows begin, and where", call[0].start)
    column = _time(arguments[0], scope, expressions)
    if column is None:
        return None
    size, slide, start = _lengths(arguments[1:], expressions)
    return TimeWindow(
        relation=column.relation,
        column=column.column,
        size_us=size,
        slide_us=slide,
        start_us=start,
        lag_us=_lag(column, arguments[0][0], scope, windows, expressions),
    )


def _session(
    at: Token,
    arguments: Sequence[Sequence[Token]],
    scope: Scope,
    windows: Mapping[str, int | None],
    expressions: ExpressionBinder,
) -> SessionWindow | None:
    if len(arguments) != 2 or not all(arguments):
        message = "session_window() takes the time column of a stream and a gap: session_window(o.ts, '10 minutes')"
        raise expressions.text.error(message, at.start)
    column = _time(arguments[0], scope, expressions, call=SESSION)
    if column is None:
        return None
    if arguments[1][0].kind != "string":
        message = (
            "Plait does not run session_window() with a gap that is computed: write one for all rows, such as "
            "'10 minutes', or a query for each gap, with the rows of each in WHERE"
        )
        raise expressions.text.error(message, arguments[1][0].start, UnsupportedQueryError)
    gap = _length(arguments[1], expressions, call=SESSION)
    if gap <= 0:
        raise expressions.text.error("the gap of session_window() must be longer than zero", arguments[1][0].start)
    lag = _lag(column, arguments[0][0], scope, windows, expressions)
    return SessionWindow(relation=column.relation, column=column.column, gap_us=gap, lag_us=lag)


def _time(
    tokens: Sequence[Token], scope: Scope, expressions: ExpressionBinder, *, call: str = WINDOW
) -> ColumnRef | None:
    """Return the event time that windows are of; None if it is no expression, or nobody knows."""
    bound = expressions.bind(expressions.parse(tokens), tokens, scope)
    if bound is None:
        return None
    column = bound.meanings[0][1].column if bound.is_whole_column else None
    alias = bound.relations[0] if len(bound.relations) == 1 else None
    relation = None if alias is None else scope.relation(alias)
    source = None if relation is None else relation.source
    if isinstance(source, Stream) and not source.time:
        return None  # of a stream with mistakes nothing is known
    if isinstance(source, Stream) and source.computed is None:
        if column is not None and folded(source.time) == folded(column.column):
            return column
        advice = f"write {call}({alias}.{source.time}, ...), after whose time '{source.name}' is read"
    elif isinstance(source, Stream) and source.computed is not None:
        advice = (
            f"the time of '{source.name}' is computed (TIMESTAMP BY {source.time}); let its source deliver a column of "
            "that time, and name that after TIMESTAMP BY"
        )
    else:
        advice = "only the time column of a stream moves on with the input"
    message = f"Plait does not run {call}() of anything but the time column of a stream: {advice}"
    raise expressions.text.error(message, tokens[0].start, UnsupportedQueryError)


def _lengths(arguments: Sequence[Sequence[Token]], expressions: ExpressionBinder) -> tuple[int, int, int]:
    """Return size, slide and start in microseconds."""
    lengths = [_length(argument, expressions) for argument in arguments]
    size, slide, start = lengths[0], lengths[min(1, len(lengths) - 1)], lengths[2] if len(lengths) > 2 else 0

    def wrong(index: int, message: str) -> SqlError:
        return expressions.text.error(message, arguments[min(index, len(arguments) - 1)][0].start)

    if size <= 0 or slide <= 0:
        raise wrong(0 if size <= 0 else 1, "a window and the distance between windows must be longer than zero")
    if slide > size:
        raise wrong(1, "windows that begin further apart than they are long would leave rows out; make them longer")
    if abs(start) >= slide:
        raise wrong(2, "where windows begin must lie less than one slide from 1970-01-01 00:00:00")
    return size, slide, start


def _length(argument: Sequence[Token], expressions: ExpressionBinder, *, call: str = WINDOW) -> int:
    if len(argument) != 1 or argument[0].kind != "string":
        message = f"the lengths of {call}() are texts, such as '10 minutes'"
        raise expressions.text.error(message, argument[0].start)
    try:
        length = parse_duration_us(argument[0].value)
    except OptionError as problem:
        raise expressions.text.error(problem.message, argument[0].start) from problem
    if length is None:
        raise expressions.text.error("a window of time must end: write '10 minutes', say", argument[0].start)
    return length


def _lag(
    column: ColumnRef, at: Token, scope: Scope, windows: Mapping[str, int | None], expressions: ExpressionBinder
) -> int:
    """Return how much later than this relation's tuple the newest member of a result may be."""
    streams = [relation for relation in scope.relations if isinstance(relation.source, Stream)]
    if len(streams) == 1:
        return 0
    length = windows[column.relation]
    if length is None:
        message = (
            f"'{column.relation}' is joined without a WINDOW, so a window of its time would never be over: say how far "
            f"apart rows may be, CREATE QUERY ... WINDOW ({column.relation} INTERVAL 10 MINUTES) AS SELECT ..."
        )
        raise expressions.text.error(message, at.start, UnsupportedQueryError)
    return length


__all__ = ["ADVICE", "NAMES", "FoundWindow", "aggregate_calls", "bind_window", "calls", "is_window"]
