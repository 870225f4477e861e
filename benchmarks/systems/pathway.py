"""Pathway: all queries in one dataflow of chained joins, whose connector sends a batch of every stream at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.systems.duckdb import rows_in
from benchmarks.systems.pathway_batches import AUTOCOMMIT_MS, BACKLOG, arriving, stored, tables
from benchmarks.systems.pathway_joins import Inputs, join_streams
from benchmarks.systems.pathway_live import Counts, count
from benchmarks.systems.pathway_rows import Results, lateness_us, what_is_read
from benchmarks.systems.system import Mode, Setting, System
from benchmarks.systems.task import Outcome, Task
from benchmarks.workloads.joins import JoinQuery

_OWN = "PATHWAY_"
_THREADS = f"{_OWN}THREADS"
_BEHAVIOR = "behavior of interval_join"
_KEEPING = "keeping"
_PERSISTING = "persisting"
_PERSISTENCE = "persistence"

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
            "comes late, so no result is lost (the cutoff is longer where rows do come late). Forgetting takes a row's "
            "results back inside the engine, so joins work twice; Table.forget on each stream did not cost less",
        ),
        Setting(
            name="connector",
            value="ConnectorSubject, one message and commit a batch of all streams",
            reason="Pathway has no connector for plain Parquet, the one for Delta Lake asks for a licence key, and "
            "those for CSV and JSON never end in streaming mode; a list of rows that the engine flattens is read three "
            "times as fast as a message for each row",
        ),
        Setting(
            name="max_backlog_size",
            value=str(BACKLOG),
            reason="messages, so batches, that are read and not yet joined; without it Pathway reads everything ahead, "
            "and its memory would count rows that nothing has asked for yet",
        ),
        Setting(
            name="autocommit_duration_ms",
            value=str(AUTOCOMMIT_MS),
            reason="the connector commits each batch itself, but Pathway 0.33 sometimes waits for ever where the "
            "backlog is limited and nothing else commits; a message holds a batch, so no commit comes between",
        ),
        Setting(
            name="monitoring_level",
            value="NONE",
            reason="no dashboard to draw",
        ),
        Setting(
            name=_PERSISTENCE,
            value="none",
            reason="as Pathway ships; Plait and Spark write checkpoints in the same run, so this favours Pathway. "
            "Saving the state of joins (OPERATOR_PERSISTING) asks for a licence key",
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
        Mode(
            name=_PERSISTING,
            summary="the same, writing down what it reads",
            settings=(
                Setting(
                    name=_PERSISTENCE,
                    value="PersistenceMode.PERSISTING on the local disk, snapshot_interval_ms=0",
                    reason="the only one without a licence key: rows that were read are kept on disk for ever, and "
                    "after a failure all of them are joined again",
                ),
            ),
        ),
    ),
    environment="pathway",
    package="pathway",
    is_live=True,
)


def run(task: Task) -> Outcome:
    """Drain the streams through one dataflow, or follow them as they arrive."""
    os.environ[_THREADS] = str(task.cores)
    os.environ.update({name: value for name, value in task.options if name.startswith(_OWN)})
    return _follow(task) if task.live else _drain(task)


def _drain(task: Task) -> Outcome:
    import pathway as pw

    results = []
    for query, answers in _ask(task, stored(task)):
        if task.check:
            results.append(Results(query=query))
            pw.io.subscribe(answers, on_change=results[-1].change)
        else:
            pw.io.null.write(answers)
    startup_seconds, seconds = _run_dataflow(task)
    for each in results:
        each.write(task.results / each.query.name)
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds)


def _follow(task: Task) -> Outcome:
    found: list[Counts] = []

    def is_over() -> bool:
        delivered = sum(each.total for each in found)
        return task.stop.exists() or (task.expected > 0 and delivered >= task.expected)

    found += [count(answers, query, task) for query, answers in _ask(task, arriving(task, is_over))]
    startup_seconds, seconds = _run_dataflow(task)
    deliveries = tuple(delivery for each in found for delivery in each.deliveries)
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds, deliveries=deliveries)


def _ask(task: Task, batches: Iterable[range]) -> Iterator[tuple[JoinQuery, Any]]:
    """Yield each query and its results as a table."""
    reads = what_is_read(task)
    inputs = Inputs(
        reads={read.stream.name: read for read in reads},
        tables=tables(task, reads, batches),
        forgets=task.mode != _KEEPING,
        late_us=lateness_us(task) if any(query.window_s is not None for query in task.questions.queries) else 0,
    )
    for query in task.questions.queries:
        yield query, join_streams(inputs, query)


def _run_dataflow(task: Task) -> tuple[float, float]:
    """Run what was asked; return the seconds until it could start and those it took."""
    import pathway as pw

    backend = pw.persistence.Backend.filesystem(task.checkpoint)
    persistence = pw.persistence.Config(backend) if task.mode == _PERSISTING else None
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=persistence)
    return startup_seconds, time.perf_counter() - started
