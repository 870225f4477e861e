"""Note what Pathway delivers on live streams: the engine counts results by file, only its counts become Python's."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from benchmarks.systems.deliveries import newest_outputs
from benchmarks.systems.task import Delivery, Task
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import JoinQuery


@dataclass(slots=True)
class Counts:
    """The results of a query so far. Pathway hands over a count of results by file whenever it changes, the old one to
    take back; what was delivered is the difference.
    """

    total: int = 0
    deliveries: list[Delivery] = field(default_factory=list)
    _changes: Counter[int] = field(default_factory=Counter)

    def change(self, key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """Take a change of a count; for ``pw.io.subscribe``."""
        self._changes[row["file"]] += row["rows"] if is_addition else -row["rows"]

    def end_batch(self, _time: int) -> None:
        """Take it that all changes of a time are known: they are delivered now."""
        now_us = time.time_ns() // 1000
        for file, rows in sorted(self._changes.items()):
            if rows:
                self.deliveries.append(Delivery(delivered_us=now_us, file=file, rows=rows))
        self.total += self._changes.total()
        self._changes.clear()


def count(answers: Any, query: JoinQuery, task: Task) -> Counts:
    """Count the results of a query, a table, by the file that brought their newest member. Raises UnableError."""
    import pathway as pw

    taus = [answers[name] for name in newest_outputs(query, task)]
    newest = reduce(lambda left, right: pw.if_else(left > right, left, right), taus)
    files = answers.select(file=(newest - FIRST_US) // task.slice_us)
    counts = files.groupby(pw.this.file).reduce(pw.this.file, rows=pw.reducers.count())
    found = Counts()
    pw.io.subscribe(counts, on_change=found.change, on_time_end=found.end_batch)
    return found
