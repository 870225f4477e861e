"""How results get from probe tasks to a sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from plait.query.model import ColumnRef
from plait.sinks.staging import Publication


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A result column that DuckDB computes as Spark would: `sql` over columns ``"n"``, the n-th of the joined ones, for
    each n of `reads`.
    """

    sql: str
    reads: tuple[int, ...]


Made: TypeAlias = tuple[int | Formula, ...]
"""A result column each: the joined column that it is, or how it is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What a query's results are made of. `joined`: the columns of the joined row its SELECT list reads; `made`: how
    each result column comes from them, None if one of them takes Spark; `schema`: of the results, None if the sink did
    not want it. `checkpoint`: the id of the checkpoint they belong to.
    """

    query: str
    checkpoint: str
    joined: tuple[ColumnRef, ...]
    made: Made | None
    schema: pa.Schema | None


class TaskFile(Protocol):
    """A file that one probe task writes, in the sink's staging area."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows: a column for each of the results', in their order."""

    def close(self) -> Publication:
        """Finish the file; return what is to be published on commit."""


class TaskFiles(Protocol):
    """Opens the files of a sink that tasks write themselves. Travels to the tasks, so it holds plain values."""

    def open(self, name: str) -> TaskFile:
        """Open a file; `name` says query, batch and attempt. Raises SinkError or OSError if it cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """Arrow files in the checkpoint, from which the driver feeds the sink (`SinkKind.deliver`)."""

    query: str
    columns: tuple[ColumnRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """Results are made, unless `made` is empty, and counted."""

    query: str
    columns: tuple[ColumnRef, ...]
    made: Made = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """Each task writes a file of the sink. `made`: its columns, from the `columns` of the joined row."""

    query: str
    columns: tuple[ColumnRef, ...]
    made: Made
    files: TaskFiles


LAST = "#last"
"""The partial aggregate of sessions that says when the last row was, in microseconds."""

BEGIN, END = "#begin", "#end"
"""Columns of rows of sessions that are over: when theirs begins and ends, in microseconds."""

Measured: TypeAlias = Literal["rows", "known", "true", "sum", "min", "max"]
"""What is asked of joined rows, or of one of their columns: how many there are, how many are not NULL, or are true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """A column of partial aggregates. `first`: DuckDB's aggregate over columns ``"n"``, the n-th of the joined ones;
    `again`: over the column itself, which makes of several partial aggregates one. It is what is `measured` `of` the
    n-th joined column, None: of the rows, as `type`, None: as the type of that column.
    """

    name: str
    first: str
    again: str
    measured: Measured
    of: int | None
    type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """How joined rows become partial aggregates: one row for each pane and value of the `keys`, which are columns of
    the joined row. A pane is a stretch of event time that lies in a window as a whole or not at all: the first begins
    at `start_us`. In the column of event time stands the beginning of the pane.

    Of sessions a pane is what belongs together already: rows of which each is at most `gap_us` later than the one
    before. It begins with the first of them, and the last partial aggregate, `LAST`, is the event time of the last.
    """

    pane_us: int
    start_us: int
    keys: tuple[str, ...]
    partials: tuple[Partial, ...]
    gap_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finishing:
    """How the groups of windows come from partial aggregates, as Spark would make them. `keys`: the columns that are
    grouped by beside the window; `finals`: DuckDB's aggregates over columns of partial ones. `made`: the results, from
    the beginning and the end of the window, the keys and the finals, in this order; `having`: what must be true of a
    group, over the same columns, None if nothing must.
    """

    keys: tuple[str, ...]
    finals: tuple[str, ...]
    made: Made
    having: Formula | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """Joined rows are kept in the checkpoint, in `folder`, until the windows of event time that they belong to are
    over. `time`: the column that says which these are. `fold`: what is kept of them, None for the rows themselves.
    """

    query: str
    columns: tuple[ColumnRef, ...]
    time: ColumnRef
    folder: str
    fold: Fold | None = None


Delivery: TypeAlias = Spooled | Discarded | Direct | Gathering
