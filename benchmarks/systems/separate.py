"""Plait without sharing anything: an engine for each query, with streams and checkpoint of its own, one after the
other, as somebody runs them who starts a program for each question.

One after the other, each has the whole machine and the next finds code that is compiled; side by side they would
take at least as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.systems.duckdb import rows_in
from benchmarks.systems.task import Outcome, Task, spark_settings
from benchmarks.workloads.joins import QuerySet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drain_one_by_one(task: Task, drain: Callable[[SparkSession, Task], Outcome]) -> Outcome:
    """Drain the streams through one engine after the other, each as `drain` does it."""
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{task.cores}]", spark_settings(task))
    outcomes = [drain(spark, replace(alone, mode=None)) for alone in one_by_one(task)]
    spark.stop()
    return add_up(task, outcomes)


def one_by_one(task: Task) -> tuple[Task, ...]:
    """Return a task for each query, with the streams it reads and a directory of its own."""
    return tuple(
        replace(
            task,
            questions=QuerySet.over(task.questions.streams, (query,)),
            scratch=str(Path(task.scratch) / query.name),
        )
        for query in task.questions.queries
    )


def add_up(task: Task, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcomes as one: all that was done and kept, while each row that came in counts once.

    An edge of one engine may be called as another's is, so each is named with its query.
    """
    batches = zip_longest(*(outcome.batch_seconds for outcome in outcomes), fillvalue=0.0)
    return Outcome(
        rows_in=rows_in(task),
        startup_seconds=outcomes[0].startup_seconds,
        seconds=sum(outcome.seconds for outcome in outcomes),
        batch_seconds=tuple(sum(seconds) for seconds in batches),
        answers=tuple(answer for outcome in outcomes for answer in outcome.answers),
        late_rows=_sum(outcome.late_rows for outcome in outcomes),
        probe_tuples=_sum(outcome.probe_tuples for outcome in outcomes),
        stored_tuples=_sum(outcome.stored_tuples for outcome in outcomes),
        stored_bytes=_sum(outcome.stored_bytes for outcome in outcomes),
        peak_stored_tuples=_sum(outcome.peak_stored_tuples for outcome in outcomes),
        peak_stored_bytes=_sum(outcome.peak_stored_bytes for outcome in outcomes),
        edges=tuple(
            replace(edge, edge=f"{query.name}: {edge.edge}")
            for query, outcome in zip(task.questions.queries, outcomes, strict=True)
            for edge in outcome.edges
        ),
    )


def _sum(values: Iterable[int | None]) -> int:
    return sum(value or 0 for value in values)
