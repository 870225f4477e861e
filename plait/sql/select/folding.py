"""Which aggregates of a query can be kept as partial aggregates, and how these are put together in the end.

Columns that are read outside such aggregates are kept as they are, once for each value: what they are in, group keys
and aggregates that do not mind duplicates (``count(DISTINCT x)``, ``bool_or``), is computed in the end from the values.
An aggregate that does mind, and has no partial one (``stddev``, an average of decimals, one over an expression or with
FILTER), keeps the rows themselves. Types and overflow must come out as Spark's: so sums of integers are kept in 38
digits and cast when they are complete, and averages are of integers that a double holds exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plait.query.model import Aggregation, ColumnRef
from plait.query.time_windows import SessionWindow, Window
from plait.sinks.delivery import LAST, Fold, Measured, Partial
from plait.spelling import backquoted
from plait.sql.expressions.functions import GROUPED
from plait.sql.lexis.names import folded
from plait.sql.lexis.operations import called
from plait.sql.lexis.tokens import Token, tokens_of
from plait.sql.select.time_window import calls

_FLAT: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|date|timestamp|timestamp_ntz"
)
_SHORT: Final = ("tinyint", "smallint", "int")
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS: Final = 28
"""Of a decimal that is summed: Spark adds ten, and 38 is all that anybody has."""

_NO_MATTER_HOW_OFTEN: Final = "min max bool_and bool_or every bit_and bit_or approx_count_distinct grouping grouping_id"
_UNMINDFUL: Final = frozenset(_NO_MATTER_HOW_OFTEN.split())
_TIMES: Final = ("timestamp", "timestamp_ntz")
_EXTREMES: Final[Mapping[str, Measured]] = {"min": "min", "max": "max"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An aggregate, where it starts and ends in the text: `sql` over what is kept for it, and its Spark type."""

    start: int
    end: int
    sql: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """`sql`: the SELECT over what is kept, as `Aggregation.sql` is over joined rows. `kept`: the columns of that with
    their Spark types, event time first. `ends`: what has become of aggregates, in the order of `Aggregation.sql`.
    """

    fold: Fold
    sql: str
    kept: tuple[tuple[str, str], ...]
    ends: tuple[End, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A partial aggregate and its Spark type."""

    partial: Partial
    type: str


def folding_of(aggregation: Aggregation, joined: Mapping[ColumnRef, str]) -> Folding | None:
    """Return how the rows of a query are kept as partial aggregates; None if they have to be kept themselves.

    `joined`: the columns of the joined row with their Spark types, in the order that rows have.
    """
    window, text = aggregation.window, aggregation.sql
    types = {ref.name: type_ for ref, type_ in joined.items()}
    time = ColumnRef(relation=window.relation, column=window.column).name
    tokens, places = tokens_of(text), {name: place for place, name in enumerate(types)}
    kept: list[_Kept] = []
    ends: list[End] = []
    for call in calls([tokens], GROUPED | {"min_by", "max_by", "collect_list", "collect_set"}):
        made = _folded(call, types, places, len(kept))
        if made is None:
            if not _is_unmindful(call):
                return None
            continue
        kept += made[0]
        ends.append(End(start=call[0].start, end=call[-1].end, sql=made[1], type=made[2]))
    inside = [range(each.start, each.end) for each in ends]
    read = (
        token.value for token in tokens if token.kind == "quoted" and not any(token.start in span for span in inside)
    )
    keys = tuple(dict.fromkeys(name for name in read if name in types))
    summed = {place for each in kept for place in re.findall(r'"(\d+)"', each.partial.first)}
    if time in keys or str(places[time]) in summed or types[time] not in _TIMES:
        return None
    if not all(is_flat(types[name]) for name in keys):
        return None
    if isinstance(window, SessionWindow):
        kept.append(_last(places[time]))
    return Folding(
        fold=_fold(window, keys, tuple(each.partial for each in kept)),
        sql=edited(text, [(each.start, each.end, each.sql) for each in ends]),
        kept=(
            (time, types[time]),
            *((name, types[name]) for name in keys),
            *((each.partial.name, each.type) for each in kept),
        ),
        ends=tuple(ends),
    )


def _fold(window: Window, keys: tuple[str, ...], partials: tuple[Partial, ...]) -> Fold:
    if isinstance(window, SessionWindow):
        return Fold(pane_us=1, start_us=0, keys=keys, partials=partials, gap_us=window.gap_us)
    pane = math.gcd(window.size_us, window.slide_us)
    return Fold(pane_us=pane, start_us=window.start_us, keys=keys, partials=partials)


def _last(time: int) -> _Kept:
    """Return the partial aggregate that says when the last row of a session was. `time`: the column of event time."""
    partial = Partial(
        name=LAST,
        first=f'max(epoch_us("{time}"))',
        again=f'max("{LAST}")',
        measured="max",
        of=time,
        type="BIGINT",
    )
    return _Kept(partial=partial, type="bigint")


def is_flat(type_: str) -> bool:
    """Tell whether values of a Spark type are the same for DuckDB and for Spark where they are equal at all."""
    return _FLAT.fullmatch(type_) is not None


def _is_unmindful(call: Sequence[Token]) -> bool:
    """Tell whether it makes no difference to an aggregate how often a value is there."""
    return folded(call[0].value) in _UNMINDFUL or call[2].keyword == "DISTINCT"


def _folded(
    call: Sequence[Token], types: Mapping[str, str], places: Mapping[str, int], number: int
) -> tuple[list[_Kept], str, str] | None:
    """Return what is kept for an aggregate, `number` being that of its first column, the text that ends it, and its
    type.
    """
    parts = called(call)
    if parts is None or len(parts[1]) != 1 or len(parts[1][0]) != 1:
        return None
    name, (argument,) = folded(parts[0].value), parts[1][0]
    column = f"#p{number}"
    if name == "count" and (argument.is_symbol("*") or argument.kind == "number"):
        return [_count(column, "count(*)", "rows", None)], f"CAST(sum({backquoted(column)}) AS BIGINT)", "bigint"
    if argument.kind != "quoted" or argument.value not in types:
        return None
    type_, of = types[argument.value], places[argument.value]
    at = f'"{of}"'
    decimal = _DECIMAL.fullmatch(type_)
    ended = backquoted(column)
    if name == "count":
        return [_count(column, f"count({at})", "known", of)], f"CAST(sum({ended}) AS BIGINT)", "bigint"
    if name == "count_if" and type_ == "boolean":
        return [_count(column, f"count(*) FILTER (WHERE {at})", "true", of)], f"CAST(sum({ended}) AS BIGINT)", "bigint"
    if name in _EXTREMES and is_flat(type_):
        again = f'{name}("{column}")'
        partial = Partial(name=column, first=f"{name}({at})", again=again, measured=_EXTREMES[name], of=of, type=None)
        return [_Kept(partial=partial, type=type_)], f"{name}({ended})", type_
    if name == "sum" and type_ in (*_SHORT, "bigint"):
        return [_added(column, f"sum({at})", "DECIMAL(38, 0)", "sum", of)], f"CAST(sum({ended}) AS BIGINT)", "bigint"
    if name == "sum" and type_ in ("float", "double"):
        return [_added(column, f"sum(CAST({at} AS DOUBLE))", "DOUBLE", "sum", of)], f"sum({ended})", "double"
    if name == "sum" and decimal is not None and int(decimal[1]) <= _MOST_DIGITS:
        made = _added(column, f"sum({at})", f"DECIMAL(38, {decimal[2]})", "sum", of)
        digits = int(decimal[1]) + 10
        return [made], f"CAST(sum({ended}) AS DECIMAL({digits}, {decimal[2]}))", f"decimal({digits},{decimal[2]})"
    if name in ("avg", "mean") and type_ in _SHORT:
        counted = f"#p{number + 1}"
        made = _added(column, f"sum({at})", "DOUBLE", "sum", of)
        number_of = _count(counted, f"count({at})", "known", of)
        return [made, number_of], f"(sum({ended}) / nullif(sum({backquoted(counted)}), 0))", "double"
    return None


def _added(column: str, first: str, type_: str, measured: Measured, of: int | None) -> _Kept:
    """Return a partial aggregate of which several are added up, as a DuckDB type."""
    partial = Partial(
        name=column,
        first=f"CAST({first} AS {type_})",
        again=f'CAST(sum("{column}") AS {type_})',
        measured=measured,
        of=of,
        type=type_,
    )
    return _Kept(partial=partial, type=type_.lower().replace(" ", ""))


def _count(column: str, first: str, measured: Measured, of: int | None) -> _Kept:
    return _added(column, first, "BIGINT", measured, of)


def edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with spans, (start, end, new) each, replaced."""
    pieces, position = [], 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


__all__ = ["End", "Folding", "edited", "folding_of", "is_flat"]
