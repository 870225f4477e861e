"""`python -m benchmarks closing`: rows without a partner, and groups of windows, against Spark's own and Flink's.

Two streams in order of time, a file of each a batch, or for groups one stream with as many rows. Asked are a left, a
full and a semi join within a window, and a count and sum by key and window. Each system runs in a process of its own,
by turns; Plait's results to the end of the input are compared with DuckDB's first, Flink's too, and Spark's have to be
among them. The hand-over reads the same columns and only hands them to Python: what no engine that works there can
beat.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import count, write_json
from benchmarks.surroundings import surroundings
from benchmarks.systems.launch import launched
from benchmarks.systems.task import Task
from benchmarks.workloads.closing_questions import (
    GROUPS,
    NAMES,
    SECOND_US,
    Times,
    columns_of,
    outputs_of,
    question_set,
    select,
    select_in_duckdb,
    streams_of,
    write_streams,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.runtime.batch.events import BatchEvent

WINDOW_S, BATCH_S, GROUP_S = 20, 10, 5
SYSTEMS = ("plait", "spark", "flink", "handover")
_WITHOUT_RESULTS = "handover"
_ENDS_UNDECIDED = "spark"
"""What the end of the input does not decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds from when the query could start to its last result; the median milliseconds of a batch once the first
    third is over, None of what has no batches; and of each of Plait's phases.
    """

    system: str
    question: str
    seconds: float
    rows_in: int
    batch_ms: float | None
    phases_ms: Mapping[str, float]


def least_ratio(rows: int) -> float:
    """Return how many times as fast as Spark Plait has to be in batches of so many rows.

    >>> least_ratio(150_000), least_ratio(1_500_000)
    (8.0, 20.0)
    """
    return 8.0 if rows < 1_000_000 else 20.0


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments. The exit status is 1 if a target is missed."""
    asked = parser("closing", "Outer and semi joins and windows of time, against Spark's own.")
    asked.add_argument("--rows", type=positive, default=150_000, help="rows of a batch, of all its streams together")
    asked.add_argument("--batches", type=positive, default=24, help="batches")
    asked.add_argument("--repeat", type=positive, default=1, help="timed runs of each")
    asked.add_argument("--questions", nargs="+", choices=NAMES, default=list(NAMES), help="only these")
    asked.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="only these")
    asked.add_argument("--phases", action="store_true", help="what the phases of Plait's batches take as well")
    asked.add_argument("--child", help=argparse.SUPPRESS)
    given = asked.parse_args(arguments)
    if given.child is not None:
        print(json.dumps(_answer(**json.loads(given.child))))
        return 0
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="plait-closing-") as place:
        directory = Path(place)
        for name in given.questions:
            runs += _runs(directory, name, given)
    if given.json is not None:
        write_json(given.json, {**surroundings(), "runs": list(map(asdict, runs))})
    if given.phases:
        _show_phases(runs)
    return _show(runs, given.rows)


def times_of(question: str) -> Times:
    """Return how much event time a batch has, and windows have."""
    return Times(file_us=BATCH_S * SECOND_US, window_us=(GROUP_S if question == GROUPS else WINDOW_S) * SECOND_US)


def _runs(directory: Path, question: str, given: argparse.Namespace) -> Iterator[Run]:
    streams = streams_of(question)
    data, rows = directory / streams, given.rows // len(streams)
    if not data.exists():
        write_streams(data, rows, given.batches, times_of(question), seed=given.seed, streams=streams)
    _check(data, question, given, [system for system in given.systems if system != _WITHOUT_RESULTS])
    for number in range(given.repeat):
        for system in given.systems:
            found = _run(data, directory / f"{question}-{system}-{number}", system, question, given)
            yield Run(system=system, question=question, rows_in=rows * given.batches * len(streams), **found)


def _run(
    data: Path, scratch: Path, system: str, question: str, given: argparse.Namespace, *, results: Path | None = None
) -> dict[str, Any]:
    scratch.mkdir(parents=True)
    if system == "flink":
        return _run_flink(data, scratch, question, given, is_checked=results is not None)
    task = {"data": str(data), "scratch": str(scratch), "system": system, "question": question, "cores": given.cores}
    task["results"] = None if results is None else str(results)
    command = [sys.executable, "-m", "benchmarks", "closing", "--child", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{system} could not answer '{question}': {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _run_flink(
    data: Path, scratch: Path, question: str, given: argparse.Namespace, *, is_checked: bool
) -> dict[str, Any]:
    task = Task(
        system="closing_flink",
        questions=question_set(question, times_of(question)),
        data=str(data),
        files=given.batches,
        scratch=str(scratch),
        check=is_checked,
        cores=given.cores,
        created_s=time.time(),
        slice_us=BATCH_S * SECOND_US,
    )
    outcome = launched(task, environment="flink")
    if outcome.unable is not None:
        raise RuntimeError(f"flink could not answer '{question}': {outcome.unable}")
    return {"seconds": outcome.seconds, "batch_ms": None, "phases_ms": {}}


def _answer(data: str, scratch: str, system: str, question: str, cores: int, results: str | None) -> Mapping[str, Any]:
    return {"plait": _ask_plait, "spark": _ask_spark, "handover": _hand_over}[system](
        Path(data), Path(scratch), question, cores, results
    )


def _ask_plait(data: Path, scratch: Path, question: str, cores: int, results: str | None) -> Mapping[str, Any]:
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{cores}]")
    events: list[tuple[float, Mapping[str, float]]] = []

    def note(event: BatchEvent) -> None:
        events.append((time.perf_counter(), dict(event.phases)))

    engine = Engine(spark, checkpoint=str(scratch / "checkpoint"), listener=note)
    for stream in streams_of(question):
        options = {"path": str(data / stream), "maxFilesPerTrigger": "1"}
        engine.stream(stream, format="parquet", options=options, time="ts", window=f"{WINDOW_S} seconds")
    text = select(question, times_of(question), windowed=False)
    engine.query("q", text, sink=sinks.noop() if results is None else sinks.parquet(results))
    began = time.perf_counter()
    engine.run_available(close=results is not None)
    seconds = time.perf_counter() - began
    spark.stop()
    steady = events[len(events) // 3 :]
    return {
        "seconds": seconds,
        "batch_ms": median(1000 * (after[0] - before[0]) for before, after in pairwise(steady)),
        "phases_ms": {name: median(1000 * phases[name] for _, phases in steady) for name in steady[0][1]},
    }


def _ask_spark(data: Path, scratch: Path, question: str, cores: int, results: str | None) -> Mapping[str, Any]:
    from pyspark.sql import SparkSession

    from plait.runtime.spark.session import JVM, LOCAL_DISKS

    settings = {
        "spark.master": f"local[{cores}]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "8g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        **JVM,
        **LOCAL_DISKS,
    }
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    found = _drain(_in_spark(spark, data, question), scratch, results)
    spark.stop()
    return found


def _hand_over(data: Path, scratch: Path, question: str, cores: int, results: str | None) -> Mapping[str, Any]:
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{cores}]")
    frames = [
        _read(spark, data / stream, is_named=True)
        .select(*columns_of(question))
        .coalesce(cores)
        .mapInArrow(_drop, "rows bigint")
        for stream in streams_of(question)
    ]
    found = _drain(reduce(lambda left, right: left.union(right), frames), scratch, results)
    spark.stop()
    return found


def _drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})


def _drain(frame: DataFrame, scratch: Path, results: str | None) -> Mapping[str, Any]:
    writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(scratch / "checkpoint"))
    began = time.perf_counter()
    running = writer.format("noop").start() if results is None else writer.format("parquet").start(results)
    running.awaitTermination()
    seconds = time.perf_counter() - began
    batches = [progress["durationMs"]["triggerExecution"] for progress in running.recentProgress]
    return {"seconds": seconds, "batch_ms": median(batches[len(batches) // 3 :]), "phases_ms": {}}


def _read(spark: SparkSession, stream: Path, *, is_named: bool = False) -> DataFrame:
    schema = spark.read.parquet(str(stream)).schema
    reader = spark.readStream.name(stream.name) if is_named else spark.readStream
    return reader.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(stream))


def _in_spark(spark: SparkSession, data: Path, question: str) -> DataFrame:
    for stream in streams_of(question):
        _read(spark, data / stream).withWatermark("ts", "0 seconds").createOrReplaceTempView(stream)
    return spark.sql(select(question, times_of(question), windowed=True))


def _check(data: Path, question: str, given: argparse.Namespace, systems: Sequence[str]) -> None:
    """Compare the systems' results with DuckDB's, to the end of the input."""
    found = {}
    for system in systems:
        scratch = data.parent / f"{question}-{system}-check"
        results = scratch / "results"
        _run(data, scratch, system, question, given, results=results)
        found[system] = (
            f"read_parquet('{results}/**/*part-*')" if system == "flink" else f"read_parquet('{results}/**/*.parquet')"
        )
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in streams_of(question):
        database.execute(f"CREATE VIEW {stream} AS FROM read_parquet('{data}/{stream}/*.parquet')")
    wanted = select_in_duckdb(question, times_of(question))
    columns = ", ".join(outputs_of(question))

    def lacking(one: str, other: str) -> int:
        return _rows(database, f"(SELECT {columns} FROM {one}) EXCEPT ALL (SELECT {columns} FROM {other})")

    beyond = {system: lacking(found[system], f"({wanted})") for system in systems}
    missing = {system: lacking(f"({wanted})", found[system]) for system in systems if system != _ENDS_UNDECIDED}
    if any(missing.values()) or any(beyond.values()):
        raise RuntimeError(f"{question}: rows that systems lack: {missing}; others than there should be: {beyond}")
    print(f"{question}: results right, {count(_rows(database, wanted))} rows")


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> int:
    found = database.execute(f"SELECT count(*) FROM ({query})").fetchone()
    return int(found[0]) if found else 0


def _show_phases(runs: Sequence[Run]) -> None:
    table = Table(title="Milliseconds of a batch of Plait's, medians")
    mine = [run for run in runs if run.system == "plait"]
    for column in ("question", *(mine[0].phases_ms if mine else ()), "all"):
        table.add_column(column, justify="left" if column == "question" else "right")
    for run in mine:
        table.add_row(run.question, *(f"{ms:.0f}" for ms in run.phases_ms.values()), f"{run.batch_ms:.0f}")
    Console().print(table)


def _show(runs: Sequence[Run], rows: int) -> int:
    """Show the rates, of systems that were asked, and the milliseconds of a batch. Spark has to be left behind by far,
    Flink at all.
    """
    least = least_ratio(rows)
    table = Table(title=f"Input rows a second, and milliseconds of a batch of {count(rows)} rows, medians")
    heads = [head for system in SYSTEMS for head in (system, *(["ms"] if system != "flink" else []))]
    for column in ("question", *heads, "times Spark's", "at least", "times Flink's"):
        table.add_column(column, justify="left" if column == "question" else "right")
    is_missed = False
    for name in dict.fromkeys(run.question for run in runs):
        cells, rates = list[str](), {}
        for system in SYSTEMS:
            own = [run for run in runs if (run.question, run.system) == (name, system)]
            if own:
                rates[system] = median(run.rows_in / run.seconds for run in own)
            cells.append(count(round(rates[system])) if own else "")
            took = [run.batch_ms for run in own if run.batch_ms is not None]
            cells += [f"{median(took):.0f}" if took else ""] if system != "flink" else []
        times = {other: rates["plait"] / rates[other] for other in ("spark", "flink") if {"plait", other} <= set(rates)}
        is_missed |= times.get("spark", least) < least or times.get("flink", 1.0) < 1.0
        shown = {other: f"{times[other]:.1f}" if other in times else "" for other in ("spark", "flink")}
        table.add_row(name, *cells, shown["spark"], f"{least:.0f}", shown["flink"])
    Console().print(table)
    return int(is_missed)
