"""Make the groups of windows that are over of partial aggregates, by DuckDB, in the thread that asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.close.groups import GroupedQuery, Over
from plait.operators.close.window_parts import parts_of_windows
from plait.operators.evaluating import evaluated
from plait.operators.traversal.partial_aggregates import grouped, in_columns
from plait.operators.traversal.results import made_rows
from plait.query.time_windows import SessionWindow, TimeWindow, Window
from plait.sinks.delivery import LAST, Finishing
from plait.state.gathered import microseconds

Int64s = npt.NDArray[np.int64]
MOST_WINDOWS: Final = 8
"""A pane that lies in no more windows is put into each of them by itself."""

_LAST: Final = "#until"


def final_groups(parts: Sequence[pa.RecordBatch], query: GroupedQuery, how: Finishing, over: Over) -> pa.RecordBatch:
    """Return the results of a query for the windows that are over, with columns by number. `parts`: files of partial
    aggregates, at least one; of sessions, their rows. Raises EvaluationError if DuckDB cannot compute one: what becomes
    of it Spark says.
    """
    schema = parts[0].schema  # a start may have called the time zone otherwise
    rows = pa.concat_batches([part if part.schema.equals(schema) else part.cast(schema) for part in parts])
    finals = [(f"#f{number}", sql) for number, sql in enumerate(how.finals)]
    begins, pieces = _in_windows(rows, query, over)
    table = in_columns(pieces, begins, query.time)
    lasts = [(_LAST, f'max("{LAST}")')] if over.sessions is not None else []
    groups = grouped(table, schema, [(key, key) for key in how.keys], [*finals, *lasts], query.time)
    made = [groups.column(0), _ends(groups, query.window), *groups.columns[1 : groups.num_columns - len(lasts)]]
    columns = pa.RecordBatch.from_arrays(made, names=[str(number) for number in range(len(made))])
    if how.having is not None:
        read = {place: columns.column(place) for place in how.having.reads} or {0: columns.column(0)}
        columns = columns.filter(evaluated([how.having.sql], read)[0])
    return made_rows(columns, how.made)


def _in_windows(rows: pa.RecordBatch, query: GroupedQuery, over: Over) -> tuple[Int64s, pa.RecordBatch]:
    """Return partial aggregates of all windows that are over, once for each, and where it begins."""
    window = query.window
    if isinstance(window, SessionWindow):
        assert over.sessions is not None, f"nobody knows which sessions of '{query.query}' are over"
        return over.sessions.begins, rows
    if query.fold is not None and window.size_us > MOST_WINDOWS * window.slide_us:
        return parts_of_windows(rows, query, over)
    begins, places = _windows(microseconds(rows.column(query.time)).to_numpy(), window, over)
    return begins, rows.take(pa.array(places))


def _windows(panes: Int64s, window: TimeWindow, over: Over) -> tuple[Int64s, Int64s]:
    """Return where the windows begin that panes lie in and that are over, and which pane each of them is of."""
    last = (panes - window.start_us) // window.slide_us * window.slide_us + window.start_us
    begins, places = list[Int64s](), list[Int64s]()
    for back in range(0, window.size_us, window.slide_us):
        ends = last - back + window.size_us
        is_over = (ends > panes) & (ends <= over.until_us)
        if over.after_us is not None:
            is_over &= ends > over.after_us
        places.append(np.flatnonzero(is_over))
        begins.append(last[places[-1]] - back)
    return np.concatenate(begins), np.concatenate(places)


def _ends(groups: pa.RecordBatch, window: Window) -> pa.Array:
    begins = groups.column(0)
    if isinstance(window, SessionWindow):
        return pa.array(groups.column(_LAST).to_numpy() + window.gap_us).cast(begins.type)
    return pa.array(begins.cast(pa.int64()).to_numpy() + window.size_us).cast(begins.type)


__all__ = ["final_groups"]
