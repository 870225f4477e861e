"""Pathway: all queries in one dataflow of chained joins, whose connector sends a batch of every stream at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from plait.bench.systems.duckdb import rows_in
from plait.bench.systems.model import Mode, Setting, System
from plait.bench.systems.pathway_joins import Inputs, join_streams
from plait.bench.systems.pathway_rows import Read, Results, lateness_us, tuples, what_is_read
from plait.bench.systems.pathway_types import typed
from plait.bench.systems.task import Outcome, Task

_OWN = "PATHWAY_"
_THREADS = f"{_OWN}THREADS"
_BEHAVIOR = "behavior of interval_join"
_KEEPING = "keeping"

SYSTEM = System(
    name="pathway",
    summary="Pathway, all queries in one dataflow of chained joins",
    settings=(
        Setting(
            name=_THREADS,
            value="one a core",
            reason="a worker a core, after Pathway's guide to its worker architecture; threads share memory",
        ),
        Setting(
            name=_BEHAVIOR,
            value="common_behavior(cutoff=window)",
            reason="Pathway's best practices for efficient pipelines: without it joins keep every row for ever; no row "
            "comes late, so no result is lost (the cutoff is longer where rows do come late)",
        ),
        Setting(
            name="connector",
            value="ConnectorSubject, one message and commit a batch of all streams",
            reason="Pathway has no connector for plain Parquet, the one for Delta Lake asks for a licence key, and "
            "those for CSV and JSON never end in streaming mode; a list of rows that the engine flattens is read three "
            "times as fast as a message for each row",
        ),
        Setting(
            name="autocommit_duration_ms",
            value="None",
            reason="the connector commits a batch itself; reading runs ahead of the joins, since with a limit "
            "(max_backlog_size) of a few batches Pathway 0.33 was seen to wait for ever",
        ),
        Setting(
            name="monitoring, persistence",
            value="off",
            reason="no dashboard to draw and no state to save; Pathway ships without persistence",
        ),
    ),
    modes=(
        Mode(
            name=_KEEPING,
            summary="the same, with rows that are kept for ever",
            settings=(
                Setting(
                    name=_BEHAVIOR,
                    value="none",
                    reason="as Pathway ships: forgetting costs time, which short runs do not earn back",
                ),
            ),
        ),
    ),
    environment="pathway",
)


def run(task: Task) -> Outcome:
    """Drain the streams through one dataflow."""
    os.environ[_THREADS] = str(task.cores)
    os.environ.update({name: value for name, value in task.options if name.startswith(_OWN)})
    import pathway as pw

    reads = what_is_read(task)
    inputs = Inputs(
        reads={read.stream.name: read for read in reads},
        tables=_tables(task, reads),
        forgets=task.mode != _KEEPING,
        late_us=lateness_us(task) if any(query.window_s is not None for query in task.questions.queries) else 0,
    )
    results = []
    for query in task.questions.queries:
        answers = join_streams(inputs, query)
        if task.check:
            results.append(Results(query=query))
            pw.io.subscribe(answers, on_change=results[-1].change)
        else:
            pw.io.null.write(answers)
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - started
    for each in results:
        each.write(task.results / each.query.name)
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds)


def _tables(task: Task, reads: Sequence[Read]) -> dict[str, Any]:
    """Return all streams as tables, which one connector reads so that they advance together.

    A message holds a batch: of each stream the rows of one file, which the engine takes apart. Columns are called
    ``stream_column``: a column of Pathway's must not be called ``id``.
    """
    import pathway as pw

    class Batches(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            for file in range(task.files):
                self.next(**{read.stream.name: tuples(task, read, file) for read in reads})
                self.commit()

    schema = pw.schema_from_types(**{read.stream.name: _rows_type(read) for read in reads})
    batches = pw.io.python.read(Batches(), schema=schema, autocommit_duration_ms=None)
    found = {}
    for read in reads:
        rows = batches.select(row=batches[read.stream.name]).flatten(pw.this.row)
        columns = {f"{read.stream.name}_{column.name}": rows.row[at] for at, column in enumerate(read.columns)}
        found[read.stream.name] = rows.select(**columns)
    return found


def _rows_type(read: Read) -> Any:
    """Return the type of the rows of a file, as annotations have it."""
    found = []
    for column in read.columns:
        kind: Any = typed(column.type).python
        found.append(kind | None if column.name in read.nullable else kind)
    return list.__class_getitem__(tuple.__class_getitem__(tuple(found)))
