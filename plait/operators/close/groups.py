"""Windows of event time that are over: whose groups are to be written, from which rows, and what still waits.

Rows wait as they were joined, or as partial aggregates of them, in immutable files (`plait.state.gathered`). A window
is over once the watermark has come to its end (`TimeWindow`): no row that can come belongs to it. Its groups are
written once, in the batch whose watermark says so first: what `OpenGroups.over_until_us` has passed is never written
again, even if the watermark falls back because other streams take part, and rows that such a batch still brings are
left out. A query that is left out of a run closes nothing: what it had gathered, and up to where its windows have been
written, waits for it (`resting_groups`).

When a session is over its rows tell, together with those that they belong to; so `plait.operators.close.parting` says
which are, and keeps the others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.close.levels import NOTHING_TAKEN
from plait.operators.evaluating import EvaluationError
from plait.operators.failing import computation_error
from plait.operators.reports import ProbeReport
from plait.operators.traversal.partial_aggregates import fold_again, not_folded, shared
from plait.query.time_windows import SessionWindow, TimeWindow, Window
from plait.sinks.delivery import Fold
from plait.state.gathered import folder_of, microseconds, read_gathered, write_gathered
from plait.state.model import GatheredRows, Manifest, OpenGroups
from plait.state.storage import Storage

MOST_FILES: Final = 16
"""So many files of a query are read one by one; of more, those below `_SMALL_BYTES` are made one."""

_SMALL_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Rows of sessions, and when that of each of them begins and ends (int64[n] each)."""

    rows: pa.RecordBatch
    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Windows whose end lies in ``(after_us, until_us]``, and the files with rows in them. `after_us` None: all up to
    there. Of sessions these are all files of the query; `sessions`: those that are over, once that is known.
    """

    after_us: int | None
    until_us: int
    files: tuple[GatheredRows, ...]
    sessions: Sessions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQuery:
    """A query that groups: by windows of the event time in column `time` of its joined rows. `identity` as in
    `OpenGroups`, `fold` as in `Gathering`. `complete_from_us`: of one that has gathered nothing yet, windows that began
    before then have not all of their rows, and are left out; None: there are none.
    `keys`: the columns that tell sessions apart, None if what does has to be computed.
    """

    query: str
    identity: str
    window: Window
    time: str
    fold: Fold | None = None
    complete_from_us: int | None = None
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """What waits of the queries that group, and what is over, by query."""

    waiting: tuple[OpenGroups, ...]
    over: Mapping[str, Over]


def close_windows(
    storage: Storage,
    before: Manifest | None,
    probed: Iterable[ProbeReport],
    queries: Iterable[GroupedQuery],
    watermark_us: int | None,
    name: str,
    marks: Mapping[str, int | None] = NOTHING_TAKEN,
) -> Windows:
    """Return which windows are over once the watermark has come there, and what still waits after that. `name`: of
    files that are written for it, which no other attempt has. `marks`: of queries over groups, where these have come to
    instead.
    """
    known = {} if before is None else {groups.query: groups for groups in before.groups}
    # Results of before a query came, which it gets bit by bit, belong to windows that are over already.
    going_on = set() if before is None else {each.query for each in before.filling_up if each.left}
    gathered: dict[str, list[GatheredRows]] = {}
    for file in (file for report in probed for file in report.results):
        gathered.setdefault(file.query, []).extend(file.gathered)
    waiting, over = list[tuple[OpenGroups, GroupedQuery]](), dict[str, Over]()
    for each in queries:
        groups = gathered_after(known.get(each.query), each, gathered.get(each.query, ()))
        mark = None if each.query in going_on else marks.get(each.query, watermark_us)
        groups, found = over_at(groups, each.window, mark)
        waiting.append((groups, each))
        if found is not None:
            over[each.query] = found
    parted = {query.query for _, query in waiting if query.query in over and isinstance(query.window, SessionWindow)}
    return Windows(waiting=with_fewer_files(storage, waiting, name, but=parted), over=over)


def resting_groups(before: Manifest | None, answered: Container[str]) -> tuple[OpenGroups, ...]:
    """Return what waits of the queries that are left out: it stays as it is until they come back or are dropped."""
    return () if before is None else tuple(groups for groups in before.groups if groups.query not in answered)


def gathered_after(before: OpenGroups | None, query: GroupedQuery, gathered: Sequence[GatheredRows]) -> OpenGroups:
    """Return what a query has gathered after a batch. Rows of another query that had its name are let go."""
    if before is None or before.identity != query.identity:
        begins_us = query.complete_from_us
        left_out = None if begins_us is None else _left_out(query.window, begins_us)
        before = OpenGroups(query=query.query, identity=query.identity, over_until_us=left_out)
    return replace(before, files=(*before.files, *gathered))


def _left_out(window: Window, begins_us: int) -> int:
    """Return the last end of windows that began before then. How far back a session goes its rows alone tell, so none
    is told of where some of them are lacking (`plait.operators.close.lacking.complete_from`).
    """
    assert isinstance(window, TimeWindow), f"some rows of {window} are lacking"
    return window.last_end(begins_us - 1)


def over_at(groups: OpenGroups, window: Window, watermark_us: int | None) -> tuple[OpenGroups, Over | None]:
    """Return what waits once the watermark has come there, and what is over with that; None if nothing is. Of sessions
    some may be, and all rows still wait.
    """
    if watermark_us is None:
        return groups, None
    after, until = groups.over_until_us, window.over_until(watermark_us)
    if after is not None and until <= after:
        return groups, None
    if isinstance(window, SessionWindow):
        may_be = any(window.first_end(file.tau_min) <= until for file in groups.files)
        over = Over(after_us=after, until_us=until, files=groups.files) if may_be else None
        return replace(groups, over_until_us=until), over
    files = [file for file in groups.files if _has_over(file, window, after, until)]
    waiting = tuple(file for file in groups.files if window.last_end(file.tau_max) > until)
    left = replace(groups, over_until_us=until, files=waiting)
    return left, Over(after_us=after, until_us=until, files=tuple(files)) if files else None


def _has_over(file: GatheredRows, window: TimeWindow, after_us: int | None, until_us: int) -> bool:
    """Tell whether a window that ends in ``(after_us, until_us]`` may have rows in a file."""
    end = window.first_end(file.tau_min if after_us is None else max(file.tau_min, after_us))
    return end <= min(until_us, window.last_end(file.tau_max))


def with_fewer_files(
    storage: Storage, waiting: Sequence[tuple[OpenGroups, GroupedQuery]], name: str, *, but: Container[str] = ()
) -> tuple[OpenGroups, ...]:
    """Return the groups of queries with many small files made one, called `name`, without rows of which all windows are
    over. Queries that have the same small files share the one too; those in `but` are left alone.
    """
    sharing: dict[tuple[GatheredRows, ...], list[tuple[OpenGroups, GroupedQuery]]] = {}
    for groups, query in waiting:
        small = tuple(file for file in groups.files if file.bytes < _SMALL_BYTES)
        if len(groups.files) > MOST_FILES and len(small) > 1 and query.query not in but:
            sharing.setdefault(small, []).append((groups, query))
    fewer: dict[str, OpenGroups] = {}
    for small, sharers in sharing.items():
        merged = _merged(storage, small, sharers, name)
        for groups, query in sharers:
            kept = (file for file in groups.files if file not in small)
            fewer[query.query] = replace(groups, files=(*kept, *merged))
    return tuple(fewer.get(query.query, groups) for groups, query in waiting)


def _merged(
    storage: Storage,
    files: tuple[GatheredRows, ...],
    sharers: Sequence[tuple[OpenGroups, GroupedQuery]],
    name: str,
) -> tuple[GatheredRows, ...]:
    """Return files that queries share as one with the rows that some of them still needs; none if nobody needs any."""
    first = sharers[0][1]
    parts = list(read_gathered(storage, files))
    schema = parts[0].schema  # a start may have called the time zone otherwise
    rows = pa.concat_batches([part if part.schema.equals(schema) else part.cast(schema) for part in parts])
    taus = microseconds(rows.column(first.time)).to_numpy()
    needed = np.zeros(len(taus), np.bool_)
    for groups, query in sharers:
        until, window = groups.over_until_us, query.window
        if until is None or isinstance(window, SessionWindow):
            needed[:] = True
        else:
            needed |= _last_ends(window, taus) > until
    rows = rows.filter(pa.array(needed))
    folds = [query.fold for _, query in sharers if query.fold is not None]
    if folds:
        try:
            rows = fold_again(rows, shared(folds), first.time)
        except EvaluationError as error:
            raise computation_error(not_folded((query.query for _, query in sharers), error)) from error
    return (write_gathered(storage, folder_of(first.query), name, rows, first.time),) if rows.num_rows else ()


def _last_ends(window: TimeWindow, taus: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    begun: npt.NDArray[np.int64] = (taus - window.start_us) // window.slide_us * window.slide_us
    return begun + (window.start_us + window.size_us)


__all__ = [
    "MOST_FILES",
    "GroupedQuery",
    "Over",
    "Sessions",
    "Windows",
    "close_windows",
    "over_at",
    "resting_groups",
    "with_fewer_files",
]
