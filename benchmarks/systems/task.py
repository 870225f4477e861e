"""What a system is asked to do, and what it says it did. Both cross a process boundary as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.systems.checksum import Checksum
from benchmarks.systems.edges import EdgeTruth
from benchmarks.workloads.joins import QuerySet
from plait.errors import PlaitError

_PLAIT = "plait."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of one system. `files`: how many of each stream's files to read, one a batch.

    `mode`: how the system goes about it, None for its usual way; Plait's are its strategies. `sample`: after how many
    batches Plait is started anew to plan with what it has measured, 0 for never. `check`: add up the results, or
    write them below `results` for somebody else to add up, instead of discarding them; the run is not timed.
    `created_s`: clock when the process was started. `live`: the streams arrive while it runs, below `arriving`; files
    are `slice_us` of event time each, and `expected` results are there to find. `scratch`: a directory for
    checkpoints that is removed afterwards. `broker`: the address of Kafka's, if the streams are topics of it, which
    hold the rows of the files.
    """

    system: str
    questions: QuerySet
    data: str
    files: int
    scratch: str
    mode: str | None = None
    sample: int = 0
    check: bool = False
    cores: int = 2
    options: tuple[tuple[str, str], ...] = ()
    created_s: float = 0.0
    live: bool = False
    slice_us: int = 0
    expected: int = 0
    broker: str | None = None

    @property
    def arriving(self) -> Path:
        """Where streams arrive that are live, a folder each."""
        return Path(self.scratch) / "in"

    @property
    def ready(self) -> Path:
        """The file that a system makes once it waits for live streams."""
        return Path(self.scratch) / "ready"

    @property
    def stop(self) -> Path:
        """The file that appears when a system on live streams is to end."""
        return Path(self.scratch) / "stop"

    @property
    def data_path(self) -> Path:
        """The directory of the data."""
        return Path(self.data)

    @property
    def checkpoint(self) -> str:
        """Where the system may keep its state."""
        return str(Path(self.scratch) / "checkpoint")

    @property
    def results(self) -> Path:
        """Where a system that cannot add up its results writes them, a folder a query: as Parquet files, or as CSV
        without header, the columns in the order of its outputs, times as microseconds since 1970.
        """
        return Path(self.scratch) / "results"

    def startup_seconds(self) -> float:
        """Return how long ago the process was started."""
        return time.time() - self.created_s

    def as_json(self) -> str:
        """Return the task as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Return the task that `as_json` wrote."""
        value: dict[str, Any] = json.loads(text)
        value["questions"] = QuerySet.from_plain(value["questions"])
        value["options"] = tuple((name, setting) for name, setting in value["options"])
        return cls(**value)


class UnableError(PlaitError):
    """A system cannot answer the questions it was asked. The message is the system's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The results of one query: how many, and their checksum if somebody added them up."""

    query: str
    rows: int
    checksum: Checksum | None = None

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> Answer:
        """Return the answer that ``dataclasses.asdict`` made plain."""
        checksum = None if value["checksum"] is None else Checksum(**value["checksum"])
        return cls(query=value["query"], rows=value["rows"], checksum=checksum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """So many results delivered at a time (microseconds since 1970), whose newest member came with file `file`."""

    delivered_us: int
    file: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to. `startup_seconds`: from the start of the process until the query could start.

    `rows_in` counts each row of a stream once, however many queries read it. `seconds`: from when the query could
    start to the last result. `batch_seconds`: of each batch, from the end of the one before it. `stored_*`: kept at
    the end; `peak_stored_*`: after the batch that kept most. `ingest_seconds`: until rows were decoded and stored, of
    all batches together. `edges`: what Plait sent where, in runs that check.
    `deliveries`: of runs on live streams. `unable`: why the system cannot answer these questions at all, in its own
    words; then nothing else counts. None: the system does not count that.
    """

    rows_in: int
    startup_seconds: float
    seconds: float
    batch_seconds: tuple[float, ...] = ()
    answers: tuple[Answer, ...] = ()
    late_rows: int | None = None
    probe_tuples: int | None = None
    stored_tuples: int | None = None
    stored_bytes: int | None = None
    peak_stored_tuples: int | None = None
    peak_stored_bytes: int | None = None
    shuffled_bytes: int | None = None
    ingest_seconds: float | None = None
    unable: str | None = None
    deliveries: tuple[Delivery, ...] = ()
    edges: tuple[EdgeTruth, ...] = ()

    @property
    def results(self) -> int | None:
        """The results of all queries; None if they were not counted."""
        return sum(answer.rows for answer in self.answers) if self.answers else None

    @property
    def checksum(self) -> Checksum | None:
        """The checksum of the results of all queries; None if they were not added up."""
        found = [answer.checksum for answer in self.answers if answer.checksum is not None]
        return sum(found, Checksum()) if found and len(found) == len(self.answers) else None

    def as_json(self) -> str:
        """Return the outcome as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """Return the outcome that `as_json` wrote."""
        return cls.from_plain(json.loads(text))

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> Outcome:
        """Return the outcome that ``dataclasses.asdict`` made plain, even after JSON made lists of its tuples."""
        lists = {
            "batch_seconds": tuple(value["batch_seconds"]),
            "answers": tuple(Answer.from_plain(answer) for answer in value["answers"]),
            "deliveries": tuple(Delivery(**delivery) for delivery in value["deliveries"]),
            "edges": tuple(EdgeTruth(**edge) for edge in value["edges"]),
        }
        return cls(**{**value, **lists})


def spark_settings(task: Task, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return Spark settings for a run: those given, and the user's."""
    return {**(settings or {}), **{name: value for name, value in task.options if not name.startswith(_PLAIT)}}


def plait_settings(task: Task) -> dict[str, str]:
    """Return the user's settings that are Plait's and not Spark's."""
    return {name: value for name, value in task.options if name.startswith(_PLAIT)}
