"""Make joined rows into partial aggregates, and several of these into one: by DuckDB, in the thread that asks.

Where matches are counted (`plait.operators.probe.counted_matches`) a row stands for as many joined ones as it weighs:
what is added up of its own columns is multiplied by that, and of the relation that was counted it has what its matches
come to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.errors import Failure
from plait.operators.evaluating import EvaluationError, database, naive
from plait.operators.traversal.session_rows import codes_of, sessions_of
from plait.sinks.delivery import Fold, Partial
from plait.state.gathered import microseconds

WEIGHT = "#w"
"""The column that says how many joined rows a row stands for."""


def measured_name(partial: Partial) -> str:
    """Return the column of what the matches of a row come to."""
    return f"#{partial.of}{partial.measured}"


def shared(folds: Sequence[Fold]) -> Fold:
    """Return how rows are kept for several that keep the same of them: by panes of the greatest common divisor, each of
    which lies in a window of any of them as a whole or not at all, or by the smallest gap of their sessions.

    >>> kept = [Fold(pane_us=pane, start_us=start, keys=(), partials=()) for pane, start in ((15, 5), (20, 0))]
    >>> both = shared(kept)
    >>> both.pane_us, both.start_us
    (5, 5)
    """
    first = folds[0]
    gaps = [each.gap_us for each in folds if each.gap_us is not None]
    if gaps:
        return replace(first, gap_us=min(gaps))
    apart = (each.start_us - first.start_us for each in folds)
    return replace(first, pane_us=reduce(math.gcd, (*(each.pane_us for each in folds), *apart)))


def fold(rows: pa.RecordBatch, how: Fold, time: str) -> pa.RecordBatch:
    """Return partial aggregates of joined rows. `time`: the column of event time. Raises EvaluationError.

    Its values become the beginnings of their panes; keys have the types they had.
    """
    places = {name: str(number) for number, name in enumerate(rows.schema.names)}
    made = [(partial.name, partial.first) for partial in how.partials]
    keys = [(places[key], key) for key in how.keys]
    return grouped(_with_panes(rows, how, time, places), rows.schema, keys, made, time)


def fold_counted(rows: pa.RecordBatch, how: Fold, time: str, columns: Sequence[str]) -> pa.RecordBatch:
    """Return partial aggregates of rows that weigh (`WEIGHT`), and have of the relation that was counted what their
    matches come to (`measured_name`). `columns`: those of the joined row, of which they have the others.
    """
    there = set(rows.schema.names)
    places = {name: str(number) for number, name in enumerate(columns) if name in there}
    table = _with_panes(rows, how, time, places)
    types = {number: table.schema.field(number).type for number in places.values()}
    made = [(each.name, _weighed(each, types, is_measured=measured_name(each) in there)) for each in how.partials]
    return grouped(table, rows.schema, [(places[key], key) for key in how.keys], made, time)


def fold_again(rows: pa.RecordBatch, how: Fold, time: str) -> pa.RecordBatch:
    """Return one partial aggregate of all that are of one pane, or session, and have the same keys."""
    made = [(partial.name, partial.again) for partial in how.partials]
    # Panes stay as long as they were made: the file may be shared with a query that needs them shorter.
    panes = microseconds(rows.column(time)) if how.gap_us is None else _sessions(rows, how.gap_us, how.keys, time)
    table = in_columns(rows, panes, time)
    return grouped(table, rows.schema, [(key, key) for key in how.keys], made, time)


def _weighed(partial: Partial, types: Mapping[str, pa.DataType], *, is_measured: bool) -> str:
    """Return DuckDB's aggregate over rows that weigh. `types`: of joined columns, by number; `is_measured`: rows have
    what their matches come to.
    """
    if is_measured:
        how = partial.measured if partial.measured in ("min", "max") else "sum"
        sql = f"{how}({_quoted(measured_name(partial))})"
    else:
        weight, column = _quoted(WEIGHT), f'"{partial.of}"'
        match partial.measured:
            case "rows":
                sql = f"sum({weight})"
            case "known":
                sql = f"coalesce(sum({weight}) FILTER (WHERE {column} IS NOT NULL), 0)"
            case "true":
                sql = f"coalesce(sum({weight}) FILTER (WHERE {column}), 0)"
            case "sum":
                sql = f"sum({_product(column, weight, types[str(partial.of)])})"
            case "min" | "max":
                sql = partial.first
    return sql if partial.type is None else f"CAST({sql} AS {partial.type})"


def _product(column: str, weight: str, type_: pa.DataType) -> str:
    """Return a column times the weight, as exact as a sum is."""
    if pa.types.is_decimal(type_):
        return f"{column} * CAST({weight} AS DECIMAL(10, 0))"  # no bucket has more rows; 28 digits and ten are 38
    if pa.types.is_floating(type_):
        return f"CAST({column} AS DOUBLE) * {weight}"
    return f"CAST({column} AS HUGEINT) * {weight}"


def _with_panes(rows: pa.RecordBatch, how: Fold, time: str, places: Mapping[str, str]) -> pa.Table:
    """Return the rows with the beginnings of their panes first, and joined columns named by number."""
    if how.gap_us is None:
        taus = microseconds(rows.column(time)).to_numpy()
        begins = (taus - how.start_us) // how.pane_us * how.pane_us + how.start_us
    else:
        begins = _sessions(rows, how.gap_us, how.keys, time)
    names = [places.get(name, name) for name in rows.schema.names]
    return pa.table([pa.array(begins), *map(naive, rows.columns)], names=["pane", *names])


def _sessions(rows: pa.RecordBatch, gap_us: int, keys: Sequence[str], time: str) -> npt.NDArray[np.int64]:
    """Return when the session of each row begins, as far as these rows tell."""
    return sessions_of(rows, time, codes_of(map(rows.column, keys), rows.num_rows), gap_us)[0]


def in_columns(rows: pa.RecordBatch, panes: pa.Array | npt.NDArray[np.int64], time: str) -> pa.Table:
    """Return partial aggregates as DuckDB reads them: what they are of as column ``pane``, the others by name."""
    others = [name for name in rows.schema.names if name != time]
    return pa.table([panes, *(naive(rows.column(name)) for name in others)], names=["pane", *others])


def grouped(
    table: pa.Table, schema: pa.Schema, keys: list[tuple[str, str]], made: list[tuple[str, str]], time: str
) -> pa.RecordBatch:
    """Group a table by its column ``pane``, which becomes `time`, and keys, (column, name) each; give these the types
    of the schema. `made`: aggregates, (name, DuckDB SQL) each. Raises EvaluationError.
    """
    import duckdb

    columns = [f"{_quoted(column)} AS {_quoted(name)}" for column, name in keys]
    by = ", ".join(["pane", *(_quoted(column) for column, _ in keys)])
    select = ", ".join(["pane", *columns, *(f"{sql} AS {_quoted(name)}" for name, sql in made)])
    cursor = database().cursor()
    cursor.register("gathered", table)
    try:
        folded = cursor.sql(f"SELECT {select} FROM gathered GROUP BY {by}").to_arrow_table().combine_chunks()
    except duckdb.Error as error:
        raise EvaluationError(str(error).splitlines()[0]) from error
    arrays = [_typed(folded.column(0), schema.field(time).type)]
    arrays += [_typed(folded.column(name), schema.field(name).type) for _, name in keys]
    partials = folded.column_names[1 + len(keys) :]
    arrays += [
        _typed(folded.column(name), schema.field(name).type) if name in schema.names else _whole(folded.column(name))
        for name in partials
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[time, *(name for _, name in keys), *partials])


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    return _whole(column if column.type.equals(type_) else column.cast(type_))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def not_folded(queries: Iterable[str], error: EvaluationError) -> tuple[Failure, ...]:
    """Return that partial aggregates of queries cannot be computed."""
    return tuple(
        Failure(
            query=query,
            reason=f"query '{query}' cannot compute partial aggregates of what it joins ({error}): aggregate what can "
            "be added up, with try_sum or of smaller values",
        )
        for query in queries
    )


__all__ = [
    "WEIGHT",
    "fold",
    "fold_again",
    "fold_counted",
    "grouped",
    "in_columns",
    "measured_name",
    "not_folded",
    "shared",
]
