"""What is read of live batches out of Spark's log, the JVM's and Plait's events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.components.live_tables import lost
from benchmarks.components.live_trace import Arrivals, LiveBatch, traces

START_MS = 1_700_000_000_000


@dataclass
class Counts:
    source: str
    rows: int


@dataclass
class Event:
    batch: int
    seconds: float
    phases: tuple[tuple[str, float], ...]
    published_ms: int
    sources: tuple[Counts, ...]


def _progress(batch: int, begin_ms: int, **parts: int) -> dict[str, Any]:
    stamp = f"2023-11-14T22:13:{20 + begin_ms // 1000:02}.{begin_ms % 1000:03}Z"
    progress = {"id": "i", "name": "plait", "batchId": batch, "timestamp": stamp, "durationMs": parts, "sources": []}
    return {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent", "progress": progress}


def _job(number: int, batch: int | None, begin_ms: int, tasks: list[tuple[int, int]], end_ms: int) -> list[Any]:
    properties = {} if batch is None else {"streaming.sql.batchId": str(batch), "sql.streaming.queryId": "i"}
    start = {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": START_MS + begin_ms}
    ends = [
        {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": number,
            "Task Info": {"Launch Time": START_MS + launch, "Finish Time": START_MS + finish},
        }
        for launch, finish in tasks
    ]
    end = {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": START_MS + end_ms}
    return [{**start, "Properties": properties, "Stage Infos": [{"Stage ID": number}]}, *ends, end]


def _heard(batch: int, at_ms: int, rows: dict[str, int]) -> tuple[float, Event]:
    phases = (("ingest", 0.08), ("probe", 0.01), ("tidy", 0.005))
    sources = tuple(Counts(name, count) for name, count in rows.items())
    return START_MS + at_ms, Event(batch, 0.1, phases, START_MS + at_ms - 5, sources)


@pytest.fixture
def batch() -> LiveBatch:
    """A batch of 200 ms from 0 on: Plait is called at 60 and done at 160, its job runs from 70 to 130."""
    log = [
        *_job(0, 0, 70, [(75, 100), (75, 110), (100, 125)], 130),
        *_job(1, None, 190, [(190, 240)], 250),
        _progress(0, 0, latestOffset=20, walCommit=5, getBatch=10, queryPlanning=5, addBatch=125, triggerExecution=200),
    ]
    arrivals = Arrivals(every_ms=500, files_ms=[START_MS - 10.0], events=[_heard(0, 160, {"r": 4, "s": 4})])
    pauses = ["[2023-11-14T22:13:20.100+0000][9ms] GC(0) Pause Young (Allocation Failure) 5M->1M(9M) 3.250ms"]
    found = traces(log, pauses, {"plait": arrivals})["plait"]
    assert (found.latency_ms, found.split) == ([165.0], 0)
    return found.batches[0]


def test_the_parts_of_a_batch_add_up_to_all_of_it(batch: LiveBatch) -> None:
    assert sum(batch.parts_ms.values()) == pytest.approx(200)
    assert batch.parts_ms["before Plait"] == pytest.approx(25)
    assert batch.parts_ms["ingest: before the job"] == pytest.approx(10)
    assert batch.parts_ms["ingest: until a task"] == pytest.approx(5)
    assert batch.parts_ms["ingest: tasks"] == pytest.approx(50)
    assert batch.parts_ms["ingest: after the tasks"] == pytest.approx(15)
    assert batch.parts_ms["after the phases"] == pytest.approx(5)
    assert batch.tasks_ms == [25, 35, 25]


def test_a_batch_knows_of_pauses_and_of_jobs_beside_it(batch: LiveBatch) -> None:
    assert (batch.pause_ms, batch.beside_ms) == (3.25, 10)


def test_a_file_is_done_with_the_last_of_its_streams() -> None:
    log = [_progress(number, 200 * number, addBatch=100, triggerExecution=190) for number in range(2)]
    events = [_heard(0, 160, {"r": 4, "s": 0}), _heard(1, 360, {"r": 4, "s": 8})]
    arrivals = Arrivals(every_ms=100, files_ms=[START_MS - 10.0, START_MS + 90.0], events=events)
    found = traces(log, [], {"plait": arrivals})["plait"]
    assert (found.latency_ms, found.split) == ([365.0, 265.0], 1)
    assert [each.files for each in found.batches] == [{"r": 1, "s": 0}, {"r": 1, "s": 2}]


def test_what_the_slowest_lost_is_told_against_the_median() -> None:
    batches = [
        LiveBatch(number, 0.0, 200.0 if number else 500.0, parts_ms={"probe": 10.0 if number else 90.0})
        for number in range(20)
    ]
    assert lost(batches, "probe") == 80
