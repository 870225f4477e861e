"""Follow live streams through Flink: a second sink of each query notes when and by which file a result was completed.

Both sinks take the results of one join, all columns of which are still made: a query whose result is not needed would
not be the same query. The notes are lines of CSV, counted while the jobs run and added up when they have ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.systems.flink_cluster import Cluster
from benchmarks.systems.task import Delivery, Task
from benchmarks.workloads.data import file_name

_POLL_S = 0.05
_QUIET_S = 0.5
_FLUSH_S = 10.0
_BLOCK_BYTES = 1 << 20


def notes(task: Task, number: int) -> Path:
    """Return the folder that the deliveries of a query are noted in."""
    return Path(task.scratch) / "delivered" / str(number)


def follow(cluster: Cluster, jobs: list[str], task: Task) -> None:
    """Say that the system is ready, and end the jobs when told to stop or when everything is delivered.

    Raises PlaitError if a job fails.
    """
    cluster.wait_until_running(jobs)
    task.ready.touch()
    counted = _Counted(task)
    while not task.stop.exists() and not (task.expected and counted.rows() >= task.expected):
        for job in jobs:
            cluster.state(job)
        if _have_arrived(task) and counted.are_quiet():
            # Flink's files have a buffer of some kilobytes, which a checkpoint empties: else the last rows of the run
            # would only be seen after the next one.
            cluster.take_checkpoints(jobs, _FLUSH_S)
        time.sleep(_POLL_S)
    cluster.take_checkpoints(jobs, _FLUSH_S)
    cluster.cancel(jobs)


def _have_arrived(task: Task) -> bool:
    return all((task.arriving / stream.name / file_name(task.files - 1)).exists() for stream in task.questions.streams)


class _Counted:
    """Counts the lines of files that grow, reading only what is new."""

    def __init__(self, task: Task) -> None:
        self._task = task
        # By inode, because a file is given another name when it is complete.
        self._read: dict[int, int] = {}
        self._rows = 0
        self._grown_s = time.monotonic()

    def are_quiet(self) -> bool:
        """Tell, once a while, that nothing was added for some time."""
        if time.monotonic() - self._grown_s < _QUIET_S:
            return False
        self._grown_s = time.monotonic()
        return True

    def rows(self) -> int:
        """Return the lines so far."""
        before = self._rows
        for path in _files(self._task):
            with path.open("rb") as file:
                found = path.stat().st_ino
                file.seek(self._read.get(found, 0))
                while block := file.read(_BLOCK_BYTES):
                    self._rows += block.count(b"\n")
                self._read[found] = file.tell()
        if self._rows > before:
            self._grown_s = time.monotonic()
        return self._rows


def _files(task: Task) -> Iterator[Path]:
    for number in range(len(task.questions.queries)):
        # Names begin with a dot until the files are complete.
        yield from sorted(notes(task, number).glob("*part-*"))


def deliveries(task: Task) -> tuple[Delivery, ...]:
    """Return what was noted, the results of a file and a millisecond as one."""
    import pyarrow as pa
    import pyarrow.csv

    names = ["file", "at"]
    types: dict[str, Any] = {"file": pa.int32(), "at": pa.timestamp("ms", "UTC")}
    tables = [
        pyarrow.csv.read_csv(
            pa.BufferReader(lines),
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types),
        )
        for path in _files(task)
        if (lines := _complete_lines(path))
    ]
    if not tables:
        return ()
    counted = pa.concat_tables(tables).group_by(names).aggregate([([], "count_all")]).sort_by("at")
    ats = counted["at"].cast(pa.int64()).to_pylist()
    found = zip(ats, counted["file"].to_pylist(), counted["count_all"].to_pylist(), strict=True)
    # What was still delivered while the jobs were being ended comes too late.
    end_ms = task.stop.stat().st_mtime * 1000 if task.stop.exists() else math.inf
    return tuple(Delivery(delivered_us=at * 1000, file=file, rows=rows) for at, file, rows in found if at <= end_ms)


def _complete_lines(path: Path) -> bytes:
    """Return the lines of a file, which a job that was ended may have left with half a line."""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1]
