"""The streams as Pathway's tables, which one connector reads so that all of them advance together.

A message holds a batch: of each stream the rows of its next file, or on live streams of all files that have arrived
since the last message, which the engine takes apart. So no commit, whoever makes it, comes between rows of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmarks.systems.pathway_rows import Read, tuples
from benchmarks.systems.pathway_types import typed
from benchmarks.systems.task import Task
from benchmarks.workloads.data import file_name

BACKLOG = 2
"""Batches that are read and not yet joined: one is read while another is joined."""

AUTOCOMMIT_MS = 20
_POLL_S = 0.01


def tables(task: Task, reads: Sequence[Read], batches: Iterable[range]) -> dict[str, Any]:
    """Return the streams by name. `batches`: the files of each batch. Columns are called ``stream_column``: a column of
    Pathway's must not be called ``id``.
    """
    import pathway as pw

    root = task.arriving if task.live else task.data_path

    class Batches(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            for files in batches:
                self.next(**{read.stream.name: tuples(root / read.stream.name, read, files) for read in reads})
                self.commit()

    schema = pw.schema_from_types(**{read.stream.name: _rows_type(read) for read in reads})
    messages = pw.io.python.read(
        Batches(), schema=schema, name="batches", autocommit_duration_ms=AUTOCOMMIT_MS, max_backlog_size=BACKLOG
    )
    found = {}
    for read in reads:
        rows = messages.select(row=messages[read.stream.name]).flatten(pw.this.row)
        columns = {f"{read.stream.name}_{column.name}": rows.row[at] for at, column in enumerate(read.columns)}
        found[read.stream.name] = rows.select(**columns)
    return found


def stored(task: Task) -> Iterator[range]:
    """Yield one file of each stream after the other."""
    return (range(file, file + 1) for file in range(task.files))


def arriving(task: Task, is_over: Callable[[], bool]) -> Iterator[range]:
    """Say that files may come; yield those that are new for every stream, until it is over."""
    task.ready.touch()
    taken = 0
    while not is_over():
        there = taken
        while there < task.files and _has_arrived(task, there):
            there += 1
        if there > taken:
            yield range(taken, there)
            taken = there
        else:
            time.sleep(_POLL_S)


def _has_arrived(task: Task, file: int) -> bool:
    return all((task.arriving / stream.name / file_name(file)).exists() for stream in task.questions.streams)


def _rows_type(read: Read) -> Any:
    """Return the type of the rows of a batch, as annotations have it."""
    found = []
    for column in read.columns:
        kind: Any = typed(column.type).python
        found.append(kind | None if column.name in read.nullable else kind)
    return list.__class_getitem__(tuple.__class_getitem__(tuple(found)))
