"""What Spark's event log, its JVM's log of pauses and Plait's events say of live batches, put together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PARTS = {
    "latestOffset": "Spark: look for new input",
    "walCommit": "Spark: offset log",
    "getBatch": "Spark: relations of the new input",
    "queryPlanning": "Spark: plan the batch",
    "before Plait": "Spark: second plan, call into Python",
    "ingest: before the job": "Plait asks Spark for the reports, until the job",
    "ingest: until a task": "Spark: schedule the first task",
    "ingest: tasks": "tasks: read, hand over, sort, write",
    "ingest: after the tasks": "Spark: results to the driver",
    "probe": "Plait: probe",
    "close": "Plait: close",
    "deliver": "Plait: deliver",
    "commit": "Plait: commit",
    "publish": "Plait: publish",
    "tidy": "Plait: tidy",
    "after the phases": "Plait: event, and back to Spark",
    "commitOffsets": "Spark: commit log",
    "rest": "Spark: the rest, among it telling of progress",
}
"""Parts of a batch in order, with whose they are."""

_PAUSE = re.compile(r"\[(\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4})\].*Pause .* ([\d.]+)ms")


@dataclass(slots=True)
class Arrivals:
    """When the files of each stream arrived, and what a listener heard of Plait's batches: at which time (ms since
    1970), and the event.
    """

    every_ms: int
    files_ms: list[float] = field(default_factory=list)
    events: list[tuple[float, Any]] = field(default_factory=list)


@dataclass(slots=True)
class LiveBatch:
    """One batch. `begin_ms`, `end_ms`: of the trigger, since 1970. `parts_ms`: by `PARTS`. `files`: how many it took of
    each source. `pause_ms`: of the JVM within it, `beside_ms`: for how long another job ran beside it.
    """

    number: int
    begin_ms: float = 0.0
    end_ms: float = 0.0
    parts_ms: dict[str, float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    done_ms: float = 0.0
    pause_ms: float = 0.0
    beside_ms: float = 0.0
    tasks_ms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Trace:
    """All batches of a way, and how long after its arrival each file had been taken of all streams and its batch was
    done (`latency_ms`); in how many files that took more than one batch (`split`).
    """

    batches: list[LiveBatch]
    latency_ms: list[float]
    split: int


@dataclass(slots=True)
class _Job:
    query: str | None
    batch: int
    begin_ms: float
    end_ms: float = 0.0
    launches_ms: list[float] = field(default_factory=list)
    finishes_ms: list[float] = field(default_factory=list)


def traces(log: Iterable[dict[str, Any]], pauses: Iterable[str], arrivals: Mapping[str, Arrivals]) -> dict[str, Trace]:
    """Return what is known of each way. `log`: Spark's events, `pauses`: lines of the JVM's log."""
    jobs, progress = _read(log)
    names = {each["id"]: each["name"] for each in progress}
    stops = [*_pauses(pauses)]
    found = {}
    for way, arrived in arrivals.items():
        own: dict[int, list[_Job]] = defaultdict(list)
        for job in jobs:
            if names.get(job.query or "") == way:
                own[job.batch].append(job)
        begun = {each["batchId"]: each for each in progress if each["name"] == way and _did_something(each)}
        events = {event.batch: (heard_ms, event) for heard_ms, event in arrived.events}
        others = [job for job in jobs if names.get(job.query or "") != way]
        batches = [
            _batch(each, own[number], events.get(number), stops, others) for number, each in sorted(begun.items())
        ]
        latency, split = _latencies(batches, arrived)
        found[way] = Trace(batches=batches, latency_ms=latency, split=split)
    return found


def _did_something(progress: Mapping[str, Any]) -> bool:
    return bool(progress["durationMs"].get("addBatch"))


def _read(log: Iterable[dict[str, Any]]) -> tuple[list[_Job], list[dict[str, Any]]]:
    jobs: dict[int, _Job] = {}
    stages: dict[int, _Job] = {}
    progress = []
    for line in log:
        match line["Event"].rpartition(".")[2]:
            case "SparkListenerJobStart":
                properties = line.get("Properties", {})
                batch = int(properties.get("streaming.sql.batchId", -1))
                job = _Job(properties.get("sql.streaming.queryId"), batch, line["Submission Time"])
                jobs[line["Job ID"]] = job
                stages |= dict.fromkeys((stage["Stage ID"] for stage in line["Stage Infos"]), job)
            case "SparkListenerJobEnd" if line["Job ID"] in jobs:
                jobs[line["Job ID"]].end_ms = line["Completion Time"]
            case "SparkListenerTaskEnd" if line["Stage ID"] in stages:
                stages[line["Stage ID"]].launches_ms.append(line["Task Info"]["Launch Time"])
                stages[line["Stage ID"]].finishes_ms.append(line["Task Info"]["Finish Time"])
            case "StreamingQueryListener$QueryProgressEvent":
                progress.append(line["progress"])
    return list(jobs.values()), progress


def _batch(
    progress: Mapping[str, Any],
    jobs: list[_Job],
    heard: tuple[float, Any] | None,
    pauses: list[tuple[float, float]],
    others: list[_Job],
) -> LiveBatch:
    spent = progress["durationMs"]
    begin = datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000
    end = begin + spent["triggerExecution"]
    batch = LiveBatch(progress["batchId"], begin, end, done_ms=end)
    batch.rows = {source["description"]: source["numInputRows"] for source in progress["sources"]}
    parts = {part: float(spent.get(part, 0)) for part in ("latestOffset", "walCommit", "getBatch", "queryPlanning")}
    parts |= _called(spent["addBatch"], jobs, heard)
    parts["commitOffsets"] = float(spent.get("commitOffsets", 0))
    parts["rest"] = spent["triggerExecution"] - sum(parts.values())
    batch.parts_ms = {part: parts.get(part, 0.0) for part in PARTS}
    if heard is not None:
        batch.done_ms = heard[1].published_ms
        batch.rows = {counts.source: counts.rows for counts in heard[1].sources}
    batch.pause_ms = sum(took for at, took in pauses if begin <= at < end)
    batch.beside_ms = sum(max(min(end, job.end_ms) - max(begin, job.begin_ms), 0.0) for job in others)
    batch.tasks_ms = [
        finish - launch for job in jobs[:1] for launch, finish in zip(job.launches_ms, job.finishes_ms, strict=True)
    ]
    return batch


def _called(add_batch_ms: float, jobs: list[_Job], heard: tuple[float, Any] | None) -> dict[str, float]:
    """Return the parts of carrying a batch out."""
    job = min(jobs, key=lambda job: job.begin_ms, default=None)
    phases = {} if heard is None else {name: 1000 * seconds for name, seconds in heard[1].phases}
    took = add_batch_ms if heard is None else 1000 * heard[1].seconds
    parts = {"before Plait": add_batch_ms if job is None else 0.0}
    if job is not None and job.launches_ms:
        parts["ingest: until a task"] = min(job.launches_ms) - job.begin_ms
        parts["ingest: tasks"] = max(job.finishes_ms) - min(job.launches_ms)
        parts["ingest: after the tasks"] = job.end_ms - max(job.finishes_ms)
        inside = sum(parts.values())
        if heard is None:
            parts["before Plait"] = add_batch_ms - inside
        else:
            begun_ms = heard[0] - took
            parts["ingest: before the job"] = job.begin_ms - begun_ms
            parts["ingest: after the tasks"] += max(
                phases.get("ingest", inside) - inside - (job.begin_ms - begun_ms), 0
            )
            parts["before Plait"] = max(add_batch_ms - took, 0.0)
            parts["after the phases"] = max(took - sum(phases.values()), 0.0)
    return {**parts, **{name: spent for name, spent in phases.items() if name != "ingest"}}


def _pauses(lines: Iterable[str]) -> Iterator[tuple[float, float]]:
    """Yield when the JVM paused to collect garbage, and for how long."""
    for line in lines:
        if found := _PAUSE.search(line):
            yield datetime.fromisoformat(found[1]).timestamp() * 1000, float(found[2])


def _latencies(batches: list[LiveBatch], arrivals: Arrivals) -> tuple[list[float], int]:
    """Return how long each file waited until it was done of all streams, and how many were taken in several batches.

    All files of a source have equally many rows.
    """
    if not batches or not arrivals.files_ms:
        return [], 0
    sources = sorted(batches[0].rows)
    per_file = max(sum(batch.rows.get(source, 0) for batch in batches) for source in sources) / len(arrivals.files_ms)
    done: list[dict[str, LiveBatch]] = [{} for _ in arrivals.files_ms]
    for source in sources:
        taken = 0.0
        for batch in batches:
            until = taken + batch.rows.get(source, 0) / per_file if per_file else taken
            batch.files[source] = round(until) - round(taken)
            for file in range(round(taken), min(round(until), len(done))):
                done[file][source] = batch
            taken = until
    whole = [(file, by) for file, by in enumerate(done) if len(by) == len(sources)]
    latency = [max(batch.done_ms for batch in by.values()) - arrivals.files_ms[file] for file, by in whole]
    return latency, sum(len({batch.number for batch in by.values()}) > 1 for _, by in whole)
