"""Rows on their way into Pathway and out of it: Parquet files as tuples, results as lines of CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.systems.pathway_types import Typed, typed
from benchmarks.systems.task import Task
from benchmarks.workloads.data import file_name
from benchmarks.workloads.joins import JoinQuery, JoinStream, qualified
from plait.query.model import Column

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What is read of a stream: the columns that a query mentions. `nullable`: those of them with a NULL somewhere."""

    stream: JoinStream
    columns: tuple[Column, ...]
    nullable: frozenset[str] = frozenset()


def what_is_read(task: Task) -> tuple[Read, ...]:
    """Return what the queries need of each stream; where there is a NULL, after the footers of the files."""
    times = task.questions.times()
    mentioned: dict[str, set[str]] = {name: set() for name in times}
    for query in task.questions.queries:
        for relation, column in mentions(query, times):
            mentioned[query.stream_of(relation)].add(column)
    found = []
    for stream in task.questions.streams:
        columns = tuple(column for column in stream.columns if column.name in mentioned[stream.name])
        nullable = frozenset(column.name for column in columns) & _with_nulls(task, stream)
        found.append(Read(stream=stream, columns=columns, nullable=nullable))
    return tuple(found)


def mentions(query: JoinQuery, times: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield each relation and column that a query needs; some more than once. `times`: event-time column by stream."""
    yield from ((output.relation, output.column) for output in query.outputs)
    yield from compared(query, times)


def compared(query: JoinQuery, times: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield each relation and column that a query compares with something; some more than once."""
    if query.window_s is not None:
        yield from ((relation, times[query.stream_of(relation)]) for relation in query.relations)
    for join in query.joins:
        yield from ((join.left, left) for left, _ in join.columns)
        yield from ((join.right, right) for _, right in join.columns)
    for condition in (*(condition for _, condition in query.selections), *query.conditions):
        yield from qualified(condition)


def _with_nulls(task: Task, stream: JoinStream) -> frozenset[str]:
    return frozenset(
        group.column(column).path_in_schema
        for footer in _footers(task, stream)
        for group in map(footer.row_group, range(footer.num_row_groups))
        for column in range(group.num_columns)
        if _may_hold_nulls(group.column(column).statistics)
    )


def _may_hold_nulls(statistics: Any) -> bool:
    return statistics is None or not statistics.has_null_count or statistics.null_count > 0


def _footers(task: Task, stream: JoinStream) -> list[Any]:
    import pyarrow.parquet as pq

    return [pq.read_metadata(task.data_path / stream.name / file_name(file)) for file in range(task.files)]


def lateness_us(task: Task) -> int:
    """Return by how much a row's event time may lie below the newest of the batches before, of whatever stream.

    From the files themselves, since the time to keep rows for has to allow for it; 0 if every batch is newer.
    """
    spans = [_spans(task, stream) for stream in task.questions.streams]
    newest, late = None, 0
    for batch in zip(*spans, strict=True):
        known = [span for span in batch if span is not None]
        if newest is not None and known:
            late = max(late, newest - min(first for first, _ in known) + 1)
        newest = max([last for _, last in known] + ([] if newest is None else [newest]), default=None)
    return late


def _spans(task: Task, stream: JoinStream) -> list[tuple[int, int] | None]:
    """Return the first and the last event time of each file in microseconds, None for a file without rows."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: list[tuple[int, int] | None] = []
    for file in range(task.files):
        path = task.data_path / stream.name / file_name(file)
        times = _as_integers(pq.read_table(path, columns=[stream.time]).column(0), Typed(kind="time"))
        span = pc.min_max(times).as_py()
        found.append(None if span["min"] is None else (span["min"], span["max"]))
    return found


def tuples(folder: Path, read: Read, files: range) -> tuple[tuple[Any, ...], ...]:
    """Return the rows of these files of a stream, each a tuple of what Pathway is to hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [column.name for column in read.columns]
    table = pa.concat_tables([pq.read_table(folder / file_name(file), columns=names) for file in files])
    return tuple(zip(*(_values(table[column.name], column) for column in read.columns), strict=True))


def _values(column: pa.ChunkedArray, description: Column) -> list[Any]:
    kind = typed(description.type)
    if kind.kind in ("number", "time", "date"):
        column = _as_integers(column, kind)
        if column.null_count == 0:
            # Numbers become Python's in a third of the time that Arrow takes.
            return list(column.to_numpy().tolist())
    return list(column.to_pylist())


def _as_integers(column: pa.ChunkedArray, kind: Typed) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind.kind == "time":
        column = column.cast(pa.timestamp("us", column.type.tz))
    if kind.kind == "date":
        column = column.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_decimal(column.type):
        column = pc.multiply(column, pa.scalar(10**kind.scale).cast(pa.decimal128(19, 0)))
    return column.cast(pa.int64())


@dataclass(slots=True, kw_only=True)
class Results:
    """The results of a query as they change: what Pathway takes back counts no longer."""

    query: JoinQuery
    _lines: Counter[str] = field(default_factory=Counter, init=False)

    def change(self, key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """Take a change; for ``pw.io.subscribe``."""
        line = ",".join(_cell(row[output.name], output.type) for output in self.query.outputs)
        self._lines[line] += 1 if is_addition else -1

    def write(self, folder: Path) -> None:
        """Write what holds in the end."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "results.csv").open("w", encoding="utf-8") as target:
            for line, times in self._lines.items():
                target.writelines([line + "\n"] * times)


def _cell(value: Any, type_: str) -> str:
    """Return a value as a cell of CSV; NULL is an empty one."""
    if value is None:
        return ""
    kind = typed(type_)
    if kind.kind == "text":
        return '"' + str(value).replace('"', '""') + '"'
    if kind.kind == "date":
        return (_EPOCH + timedelta(days=value)).isoformat()
    if kind.kind == "boolean":
        return str(value).lower()
    return _with_point(value, kind.scale) if kind.scale else str(value)


def _with_point(digits: int, scale: int) -> str:
    """Return a decimal from its digits.

    >>> _with_point(-5, 2)
    '-0.05'
    """
    whole, fraction = divmod(abs(digits), 10**scale)
    return f"{'-' if digits < 0 else ''}{whole}.{fraction:0{scale}d}"
