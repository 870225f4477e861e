"""Which file of live streams has decided results of `benchmarks.workloads.closing_questions`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.systems.task import Delivery, Task
from benchmarks.workloads.closing_questions import SECOND_US, Decided, Int64s, Times


def times_of(task: Task) -> Times:
    """Return the times of a task's question and streams."""
    window_s = task.questions.queries[0].window_s
    assert window_s is not None, "every question has a window"
    return Times(file_us=task.slice_us, window_us=window_s * SECOND_US)


def decided_of(task: Task) -> Decided:
    """Return when the results of a task's question are decided."""
    return Decided.read(task.data_path, task.questions.queries[0].name, times_of(task))


def counted(delivered_us: int, files: Int64s) -> tuple[Delivery, ...]:
    """Return results that were delivered at one time, by the file that decided each."""
    found, rows = np.unique(files, return_counts=True)
    return tuple(
        Delivery(delivered_us=delivered_us, file=int(file), rows=int(number))
        for file, number in zip(found, rows, strict=True)
    )


def by_file(noted: Sequence[Delivery], task: Task) -> tuple[Delivery, ...]:
    """Return deliveries by file, of which each says what was noted of its results."""
    if not noted:
        return ()
    at = np.array([each.delivered_us for each in noted])
    files = np.repeat(decided_of(task).file_of(np.array([each.file for each in noted])), [each.rows for each in noted])
    times = np.repeat(at, [each.rows for each in noted])
    return tuple(each for time in np.unique(times).tolist() for each in counted(time, files[times == time]))


__all__ = ["by_file", "counted", "decided_of", "times_of"]
