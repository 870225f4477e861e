"""`python -m benchmarks batch`: one micro-batch by the millisecond, and the jobs, stages and tasks it takes.

Three streams are joined, a file of each a batch. Spark's own times come from its event log, those of Plait's phases
from its events. Medians over the later half of the batches, when code has been loaded and compiled.
The processor time of that half says what changed also while the machine has other things to do.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.components.start import write_streams
from benchmarks.figures import write_json
from benchmarks.measure import cpu_seconds_by_kind
from benchmarks.surroundings import surroundings

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent

SPARK_PARTS = {
    "latestOffset": "look for new input",
    "walCommit": "write the offset log",
    "getBatch": "make relations of the new input",
    "queryPlanning": "plan the batch",
    "addBatch": "carry the batch out",
    "commitOffsets": "write the commit log",
}
"""By Spark's name in a query's progress."""
COUNTS = ("jobs", "stages", "tasks")
_STREAMS = ("r", "s", "t")
_SELECT = "SELECT {columns} FROM r, s, t WHERE r.a = s.a AND s.b = t.b"
_LISTS = {
    "plain": "r.id AS r_id, s.id AS s_id, t.id AS t_id",
    "computed": "r.id + {n} AS r_id, s.id * 2 AS s_id, CAST(t.id AS DOUBLE) / 3 AS share",
    "spark": "r.id AS r_id, date_format(r.ts, 'yyyy-MM') AS month, {n} AS number",
}


@dataclass(slots=True)
class Profile:
    """Milliseconds by part and counts, of one batch."""

    spark_ms: dict[str, float] = field(default_factory=dict)
    phases_ms: dict[str, float] = field(default_factory=dict)
    job_ms: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    trigger_ms: float = 0.0
    took_ms: float = 0.0


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments."""
    asked = parser("batch", "What a micro-batch takes, part by part.")
    asked.add_argument("--rows", type=positive, default=10_000, help="rows of each stream in a batch")
    asked.add_argument("--batches", type=positive, default=40, help="batches")
    asked.add_argument("--queries", type=positive, default=1, help="queries over the same streams")
    asked.add_argument("--select", choices=tuple(_LISTS), default="plain", help="what the queries' SELECT lists hold")
    asked.add_argument("--sink", choices=("parquet", "noop", "memory"), default="parquet", help="where results go")
    given = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="plait-batch-") as place:
        directory = Path(place)
        write_streams(directory, given.rows, given.batches, given.seed)
        settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": directory.as_uri()}
        settings |= {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"}
        events, cpu_ms = _run(directory, given, settings | dict(given.conf))
        log = next(found for found in directory.iterdir() if found.name.startswith(("local-", "app-")))
        found = profiles((json.loads(line) for line in log.open()), events)
    _show(found, cpu_ms)
    if given.json is not None:
        write_json(
            given.json, {**surroundings(), "cpu_ms": cpu_ms, "batches": [asdict(profile) for profile in found.values()]}
        )
    return 0


def _run(directory: Path, given: Any, settings: dict[str, str]) -> tuple[list[BatchEvent], dict[str, float]]:
    """Return the events, and the processor time of a later batch by kind of process."""
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    spark_settings = {name: value for name, value in settings.items() if name.startswith("spark.")}
    spark = open_session(f"local[{given.cores}]", spark_settings)
    events: list[BatchEvent] = []
    half = given.batches // 2
    cpu: list[dict[str, float]] = []

    def heard(event: BatchEvent) -> None:
        events.append(event)
        if event.batch in (half - 1, given.batches - 1):
            cpu.append(cpu_seconds_by_kind(os.getpid()))

    engine = Engine(spark, checkpoint=str(directory / "checkpoint"), listener=heard)
    for name in settings.keys() - spark_settings.keys():
        engine.set_option(name, settings[name])
    for stream in _STREAMS:
        folder = str(directory / stream)
        reader = spark.readStream.name(stream).schema(spark.read.parquet(folder).schema)
        frame = reader.option("maxFilesPerTrigger", 1).parquet(folder)
        engine.stream(stream, frame, time="ts", window="200 seconds")
    for number in range(given.queries):
        makers = {"noop": sinks.noop, "memory": sinks.memory}
        sink = makers[given.sink]() if given.sink in makers else sinks.parquet(str(directory / f"out{number}"))
        engine.query(f"q{number}", _SELECT.format(columns=_LISTS[given.select].format(n=number)), sink=sink)
    engine.run_available()
    spark.stop()
    spent = {kind: 1000 * (cpu[-1][kind] - cpu[0].get(kind, 0.0)) / (given.batches - half) for kind in cpu[-1]}
    return events, spent


def profiles(log: Iterator[dict[str, Any]], events: list[BatchEvent]) -> dict[int, Profile]:
    """Return a profile of each batch, from the lines of Spark's event log and from Plait's events."""
    found: dict[int, Profile] = defaultdict(Profile)
    jobs: dict[int, tuple[int, int]] = {}
    for line in log:
        match line["Event"].rpartition(".")[2]:
            case "SparkListenerJobStart":
                batch = line.get("Properties", {}).get("streaming.sql.batchId")
                if batch is not None:
                    jobs[line["Job ID"]] = (int(batch), line["Submission Time"])
                    counts = found[int(batch)].counts
                    counts["jobs"] += 1
                    counts["stages"] += len(line["Stage Infos"])
                    counts["tasks"] += sum(stage["Number of Tasks"] for stage in line["Stage Infos"])
            case "SparkListenerJobEnd" if line["Job ID"] in jobs:
                batch, begin = jobs[line["Job ID"]]
                found[batch].job_ms.append(line["Completion Time"] - begin)
            case "StreamingQueryListener$QueryProgressEvent":
                progress = line["progress"]
                if progress["durationMs"].get("addBatch"):
                    profile = found[progress["batchId"]]
                    profile.spark_ms = {part: progress["durationMs"].get(part, 0) for part in SPARK_PARTS}
                    profile.trigger_ms = progress["durationMs"]["triggerExecution"]
    for event in events:
        found[event.batch].phases_ms = {name: 1000 * seconds for name, seconds in event.phases}
        found[event.batch].took_ms = 1000 * event.seconds
    return dict(sorted(found.items()))


def _show(found: dict[int, Profile], cpu_ms: dict[str, float]) -> None:
    later = [profile for batch, profile in found.items() if batch >= len(found) // 2 and profile.spark_ms]

    def middle(values: Iterator[float]) -> str:
        return f"{median(list(values) or [0.0]):,.0f}"

    table = Table(title=f"One batch: medians of {len(later)}, milliseconds")
    table.add_column("part")
    table.add_column("ms", justify="right")
    for part, meaning in SPARK_PARTS.items():
        table.add_row(f"Spark: {meaning} ({part})", middle(profile.spark_ms[part] for profile in later))
        if part == "addBatch":
            for phase in later[0].phases_ms:
                table.add_row(f"  Plait: {phase}", middle(profile.phases_ms[phase] for profile in later))
            table.add_row("  around Plait", middle(p.spark_ms["addBatch"] - p.took_ms for p in later))
    table.add_row("the whole batch", middle(profile.trigger_ms for profile in later))
    table.add_section()
    table.add_row("of it, in Spark's jobs", middle(sum(profile.job_ms) for profile in later))
    for count in COUNTS:
        table.add_row(count, middle(profile.counts[count] for profile in later))
    for kind, spent in cpu_ms.items():
        table.add_row(f"processor time, {kind}", f"{spent:,.0f}")
    table.add_row("the first batch, ms", f"{found[min(found)].trigger_ms:,.0f}")
    Console().print(table)
