"""Note when results are delivered, and which file of the streams completed them; the same for every Spark program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.systems.task import Delivery, Task, UnableError
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import JoinQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_POLL_S = 0.05


class Deliveries:
    """What was delivered of one query: a batch that is done twice counts once, with its later time."""

    def __init__(self, query: JoinQuery, task: Task) -> None:
        self.times, self._slice_us = newest_outputs(query, task), task.slice_us
        self._file = f"CAST(({newest_sql(query, task)} - {FIRST_US}) DIV {task.slice_us} AS INT) AS file"
        self._batches: dict[int, tuple[Delivery, ...]] = {}

    def add(self, results: DataFrame, batch: int) -> None:
        """Count the results of a batch by file; for ``foreachBatch`` and Plait's ``foreach`` sink. Only the files of
        the results are fetched and counted here: a shuffle would add to the latency it measures.
        """
        self._count(results.selectExpr(self._file).toArrow().column("file"), batch)

    def add_table(self, results: pa.Table, batch: int) -> None:
        """Count the results of a batch that come as Arrow; for Plait's ``foreach_arrow`` sink."""
        times = [results.column(name).cast(pa.timestamp("us", "UTC")).cast(pa.int64()) for name in self.times]
        since = pc.subtract(pc.max_element_wise(*times), FIRST_US)
        self._count(pc.divide(since, self._slice_us), batch)

    def _count(self, files: pa.ChunkedArray, batch: int) -> None:
        now_us = time.time_ns() // 1000
        self._batches[batch] = tuple(
            Delivery(delivered_us=now_us, file=counted["values"], rows=counted["counts"])
            for counted in files.value_counts().to_pylist()
        )

    def total(self) -> tuple[Delivery, ...]:
        """Return all deliveries so far."""
        return tuple(delivery for batch in sorted(self._batches) for delivery in self._batches[batch])


def newest_sql(query: JoinQuery, task: Task) -> str:
    """Return the time of a result's newest member, in microseconds, in Spark SQL. Raises UnableError."""
    return f"greatest({', '.join(f'unix_micros({name})' for name in newest_outputs(query, task))})"


def newest_outputs(query: JoinQuery, task: Task) -> tuple[str, ...]:
    """Return the outputs that are event times, one a relation. Raises UnableError if one is missing."""
    times = task.questions.times()
    named = {(output.relation, output.column): output.name for output in query.outputs}
    missing = [each for each in query.relations if (each, times[query.stream_of(each)]) not in named]
    if missing:
        raise UnableError(
            f"query '{query.name}' does not output the event time of '{missing[0]}', so no latency is known"
        )
    return tuple(named[each, times[query.stream_of(each)]] for each in query.relations)


def wait_for_the_end(task: Task, found: list[Deliveries]) -> None:
    """Say that the system is ready; return when it is told to stop, or everything is delivered."""
    task.ready.touch()
    while not task.stop.exists():
        delivered = sum(delivery.rows for each in found for delivery in each.total())
        if task.expected and delivered >= task.expected:
            return
        time.sleep(_POLL_S)
