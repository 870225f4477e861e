"""Make joined rows into partial aggregates, and several of these into one: by DuckDB, in the thread that asks."""

from __future__ import annotations

import pyarrow as pa

from plait.operators.evaluating import database, naive
from plait.sinks.delivery import Fold
from plait.state.gathered import microseconds


def fold(rows: pa.RecordBatch, how: Fold, time: str) -> pa.RecordBatch:
    """Return partial aggregates of joined rows. `time`: the column of event time.

    Its values become the beginnings of their panes; keys have the types they had.
    """
    taus = microseconds(rows.column(time)).to_numpy()
    begins = (taus - how.start_us) // how.pane_us * how.pane_us + how.start_us
    numbered = [str(number) for number in range(rows.num_columns)]
    names = rows.schema.names
    keys = [(numbered[names.index(key)], key) for key in how.keys]
    made = [f"{partial.first} AS {_quoted(partial.name)}" for partial in how.partials]
    return _folded(
        pa.table([pa.array(begins), *map(naive, rows.columns)], names=["pane", *numbered]),
        rows.schema,
        keys,
        made,
        time,
    )


def fold_again(rows: pa.RecordBatch, how: Fold, time: str) -> pa.RecordBatch:
    """Return one partial aggregate of all that are of one pane and have the same keys."""
    panes = microseconds(rows.column(time))
    made = [f"{partial.again} AS {_quoted(partial.name)}" for partial in how.partials]
    others = [name for name in rows.schema.names if name != time]
    table = pa.table([panes, *(naive(rows.column(name)) for name in others)], names=["pane", *others])
    return _folded(table, rows.schema, [(key, key) for key in how.keys], made, time)


def _folded(
    table: pa.Table, schema: pa.Schema, keys: list[tuple[str, str]], made: list[str], time: str
) -> pa.RecordBatch:
    """Group a table by its column ``pane`` and keys, (column, name) each; give these the types of the schema."""
    columns = [f"{_quoted(column)} AS {_quoted(name)}" for column, name in keys]
    by = ", ".join(["pane", *(_quoted(column) for column, _ in keys)])
    select = ", ".join(["pane", *columns, *made])
    cursor = database().cursor()
    cursor.register("gathered", table)
    folded = cursor.sql(f"SELECT {select} FROM gathered GROUP BY {by}").to_arrow_table().combine_chunks()
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


__all__ = ["fold", "fold_again"]
