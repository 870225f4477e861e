"""Which rows belong to sessions that are over, and which have to wait.

Whether a session is over shows only in all its rows together, wherever they are: so all that a query has gathered is
looked at, and only rows of sessions that may still go on are kept. With that a session is written once: of what has
been written nothing is left that a later row could be put together with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.close import groups
from plait.operators.close.groups import GroupedQuery, Over, Sessions, Windows
from plait.operators.evaluating import EvaluationError
from plait.operators.failing import computation_error
from plait.operators.traversal.gatherer import as_one
from plait.operators.traversal.partial_aggregates import fold_again, not_folded
from plait.operators.traversal.session_rows import codes_of, sessions_of
from plait.query.time_windows import SessionWindow
from plait.sinks.delivery import BEGIN, END
from plait.state.gathered import folder_of, read_gathered, write_gathered
from plait.state.model import GatheredRows
from plait.state.storage import Storage

Int64s = npt.NDArray[np.int64]
Codes: TypeAlias = Callable[[GroupedQuery, Sequence[GatheredRows]], Int64s]
"""What tells the rows of files apart, in their order: equal numbers for rows that are alike in what is grouped by."""


def part_sessions(
    storage: Storage, windows: Windows, queries: Iterable[GroupedQuery], codes: Codes, name: str
) -> Windows:
    """Return the windows with the sessions that are over, and without their rows in what waits. `codes`: of queries
    whose keys have to be computed. `name`: of files that are written for it, which no other attempt has.

    Queries that have the same files, and sessions of them that end alike, go on sharing what waits.
    """
    over = dict(windows.over)
    waiting = {each.query: each for each in windows.waiting}
    known = dict[object, tuple[Sessions, tuple[GatheredRows, ...]]]()
    for query in queries:
        if query.query not in over or not isinstance(query.window, SessionWindow):
            continue
        found = over.pop(query.query)
        alike = found, query.window, query.query if query.keys is None else query.keys, query.fold
        if alike not in known:
            known[alike] = _parted(storage, query, found, codes, name)
        sessions, left = known[alike]
        waiting[query.query] = replace(waiting[query.query], files=left)
        if sessions.rows.num_rows:
            over[query.query] = replace(found, sessions=sessions)
    return Windows(waiting=tuple(waiting.values()), over=over)


def _parted(
    storage: Storage, query: GroupedQuery, over: Over, codes: Codes, name: str
) -> tuple[Sessions, tuple[GatheredRows, ...]]:
    """Return the sessions of a query that are over, and the files with the rows of the others. Those of which all rows
    have to wait stay as they are.
    """
    assert isinstance(query.window, SessionWindow), f"query '{query.query}' has no sessions"
    parts = [as_one(list(read_gathered(storage, [file]))) for file in over.files]
    rows = as_one(parts)
    alike = codes(query, over.files) if query.keys is None else codes_of(map(rows.column, query.keys), rows.num_rows)
    begins, ends = sessions_of(rows, query.time, alike, query.window.gap_us)
    is_open = ends > over.until_us
    of_file = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    is_broken = np.bincount(of_file[~is_open], minlength=len(parts)) > 0
    if (~is_broken).sum() >= groups.MOST_FILES:
        is_broken[:] = True
    left = rows.filter(pa.array(is_open & is_broken[of_file]))
    files = [file for file, broken in zip(over.files, is_broken, strict=True) if not broken]
    if left.num_rows:
        files.append(_written(storage, query, left, f"{name}-open"))
    taken = np.flatnonzero(~is_open if over.after_us is None else ~is_open & (ends > over.after_us))
    return Sessions(rows=rows.take(pa.array(taken)), begins=begins[taken], ends=ends[taken]), tuple(files)


def _written(storage: Storage, query: GroupedQuery, rows: pa.RecordBatch, name: str) -> GatheredRows:
    if query.fold is not None:
        try:
            rows = fold_again(rows, query.fold, query.time)
        except EvaluationError as error:
            raise computation_error(not_folded((query.query,), error)) from error
    return write_gathered(storage, folder_of(query.query), name, rows, query.time)


def write_sessions(storage: Storage, query: GroupedQuery, sessions: Sessions, name: str) -> GatheredRows:
    """Write the rows of sessions with `BEGIN` and `END`, in a file that is read once."""
    rows = sessions.rows.append_column(BEGIN, pa.array(sessions.begins)).append_column(END, pa.array(sessions.ends))
    return write_gathered(storage, folder_of(query.query), f"{name}-over", rows, query.time)


__all__ = ["Codes", "Int64s", "part_sessions", "write_sessions"]
