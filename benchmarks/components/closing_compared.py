"""`python -m benchmarks closing`: rows without a partner, and groups of windows, against Spark's own of both.

Two streams in order of time, a file of each a batch, or for groups one stream with as many rows. Asked are a left, a
full and a semi join within a window, and a count and sum by key and window. Each system runs in a process of its own,
by turns; Plait's results to the end of the input are compared with DuckDB's first, and Spark's have to be among them.
A third, the hand-over, reads the same columns and only hands them to Python: what no engine that works there can beat.
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
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import count, write_json
from benchmarks.surroundings import surroundings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.runtime.batch.events import BatchEvent

WINDOW_S = 20
BATCH_S = 10
GROUP_S = 5
FIRST_S = 86_400
"""Event times begin a day after 1970: Spark takes a row of that year's first moment for a late one."""
SYSTEMS = ("plait", "spark", "handover")
_NEAR = f"r.ts BETWEEN l.ts - INTERVAL {WINDOW_S} SECONDS AND l.ts + INTERVAL {WINDOW_S} SECONDS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: in Plait's words, and in DuckDB's and Spark's, with the window written out."""

    name: str
    plait: str
    plain: str

    @property
    def streams(self) -> str:
        """The streams it reads."""
        return "lr" if self.plain else "l"

    @property
    def columns(self) -> Sequence[str]:
        """What it needs of each stream."""
        return ("id", "k", "ts") if self.plain else ("g", "x", "ts")


def _join(name: str, kind: str, columns: str) -> Question:
    text = f"SELECT {columns} FROM l {kind} JOIN r ON l.k = r.k"
    return Question(name=name, plait=text, plain=f"{text} AND {_NEAR}")


QUESTIONS = {
    question.name: question
    for question in (
        _join("left", "LEFT", "l.id AS l_id, r.id AS r_id"),
        _join("full", "FULL", "l.id AS l_id, r.id AS r_id"),
        _join("semi", "LEFT SEMI", "l.id AS l_id"),
        Question(
            name="groups",
            plait=f"SELECT window.start AS begin, l.g AS g, count(*) AS n, sum(l.x) AS x FROM l "
            f"GROUP BY window(l.ts, '{GROUP_S} seconds'), l.g",
            plain="",
        ),
    )
}
_GROUPS_IN_DUCKDB = (
    f"SELECT time_bucket(INTERVAL {GROUP_S} SECONDS, ts) AS begin, g, count(*) AS n, sum(x) AS x FROM l GROUP BY ALL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds from when the query could start to its last result; the median milliseconds of a batch once the first
    third is over, and of each of Plait's phases.
    """

    system: str
    question: str
    seconds: float
    rows_in: int
    batch_ms: float
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
    asked.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="only these")
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
            runs += _runs(directory, QUESTIONS[name], given)
    if given.json is not None:
        write_json(given.json, {**surroundings(), "runs": list(map(asdict, runs))})
    if given.phases:
        _show_phases(runs)
    return _show(runs, given.rows)


def _runs(directory: Path, question: Question, given: argparse.Namespace) -> Iterator[Run]:
    data, rows = directory / question.streams, given.rows // len(question.streams)
    if not data.exists():
        data.mkdir()
        write_streams(data, rows, given.batches, given.seed, streams=question.streams)
    _check(data, question.name, given.cores, [system for system in given.systems if system != "handover"])
    for number in range(given.repeat):
        for system in given.systems:
            scratch = directory / f"{question.name}-{system}-{number}"
            found = _run(data, scratch, system, question.name, given.cores)
            rows_in = rows * given.batches * len(question.streams)
            yield Run(system=system, question=question.name, rows_in=rows_in, **found)


def write_streams(directory: Path, rows: int, batches: int, seed: int, streams: str = "lr") -> None:
    """Write streams of so many rows a batch: half of the keys of a batch are in both, a key comes once in each stream
    or never.
    """
    random = np.random.default_rng(seed)
    for stream in streams:
        (directory / stream).mkdir()
        for batch in range(batches):
            keys = random.permutation(2 * rows)[:rows] + batch * 2 * rows
            seconds = FIRST_S + batch * BATCH_S + np.arange(rows) * (BATCH_S / rows)
            times = (seconds * 1_000_000).astype(np.int64)
            table = pa.table(
                {
                    "id": np.arange(batch * rows, (batch + 1) * rows),
                    "k": keys,
                    "g": random.integers(0, 1000, rows),
                    "x": random.integers(0, 100, rows),
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                }
            )
            pq.write_table(table, directory / stream / f"{batch:05}.parquet")


def _run(
    data: Path, scratch: Path, system: str, question: str, cores: int, *, results: Path | None = None
) -> dict[str, Any]:
    scratch.mkdir(parents=True)
    task = {"data": str(data), "scratch": str(scratch), "system": system, "question": question, "cores": cores}
    task["results"] = None if results is None else str(results)
    command = [sys.executable, "-m", "benchmarks", "closing", "--child", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{system} could not answer '{question}': {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _answer(data: str, scratch: str, system: str, question: str, cores: int, results: str | None) -> Mapping[str, Any]:
    return {"plait": _ask_plait, "spark": _ask_spark, "handover": _hand_over}[system](
        Path(data), Path(scratch), QUESTIONS[question], cores, results
    )


def _ask_plait(data: Path, scratch: Path, question: Question, cores: int, results: str | None) -> Mapping[str, Any]:
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{cores}]")
    events: list[tuple[float, Mapping[str, float]]] = []

    def note(event: BatchEvent) -> None:
        events.append((time.perf_counter(), dict(event.phases)))

    engine = Engine(spark, checkpoint=str(scratch / "checkpoint"), listener=note)
    for stream in question.streams:
        options = {"path": str(data / stream), "maxFilesPerTrigger": "1"}
        engine.stream(stream, format="parquet", options=options, time="ts", window=f"{WINDOW_S} seconds")
    engine.query("q", question.plait, sink=sinks.noop() if results is None else sinks.parquet(results))
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


def _ask_spark(data: Path, scratch: Path, question: Question, cores: int, results: str | None) -> Mapping[str, Any]:
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


def _hand_over(data: Path, scratch: Path, question: Question, cores: int, results: str | None) -> Mapping[str, Any]:
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{cores}]")
    frames = [
        _read(spark, data / stream, is_named=True)
        .select(*question.columns)
        .coalesce(cores)
        .mapInArrow(_drop, "rows bigint")
        for stream in question.streams
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


def _in_spark(spark: SparkSession, data: Path, question: Question) -> DataFrame:
    for stream in question.streams:
        _read(spark, data / stream).withWatermark("ts", "0 seconds").createOrReplaceTempView(stream)
    return spark.sql(question.plain or question.plait)


def _check(data: Path, name: str, cores: int, systems: Sequence[str]) -> None:
    """Compare the systems' results with DuckDB's, Plait's to the end of the input."""
    found = {}
    for system in systems:
        scratch = data.parent / f"{name}-{system}-check"
        results = scratch / "results"
        _run(data, scratch, system, name, cores, results=results)
        found[system] = f"read_parquet('{results}/**/*.parquet')"
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in QUESTIONS[name].streams:
        database.execute(f"CREATE VIEW {stream} AS FROM read_parquet('{data}/{stream}/*.parquet')")
    wanted = QUESTIONS[name].plain.replace("LEFT SEMI", "SEMI") or _GROUPS_IN_DUCKDB
    columns = ", ".join(column[0] for column in database.execute(f"DESCRIBE {wanted}").fetchall())

    def lacking(one: str, other: str) -> int:
        return _rows(database, f"(SELECT {columns} FROM {one}) EXCEPT ALL (SELECT {columns} FROM {other})")

    beyond = {system: lacking(found[system], f"({wanted})") for system in systems}
    missing = lacking(f"({wanted})", found["plait"]) if "plait" in systems else 0
    if missing or any(beyond.values()):
        raise RuntimeError(f"{name}: Plait lacks {missing} rows; others than there should be: {beyond}")
    print(f"{name}: results right, {count(_rows(database, wanted))} rows")


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
    """Show the rates, of systems that were asked, and the milliseconds of a batch."""
    least = least_ratio(rows)
    table = Table(title=f"Input rows a second, and milliseconds of a batch of {count(rows)} rows, medians")
    for column in ("question", "plait", "ms", "spark", "ms", "hand-over", "ms", "times Spark's", "at least"):
        table.add_column(column, justify="left" if column == "question" else "right")
    is_missed = False
    for name in dict.fromkeys(run.question for run in runs):
        cells, rates = [], {}
        for system in SYSTEMS:
            own = [run for run in runs if (run.question, run.system) == (name, system)]
            if own:
                rates[system] = median(run.rows_in / run.seconds for run in own)
            cells += [count(round(rates[system])), f"{median(run.batch_ms for run in own):.0f}"] if own else ["", ""]
        times = rates["plait"] / rates["spark"] if {"plait", "spark"} <= set(rates) else None
        is_missed |= times is not None and times < least
        table.add_row(name, *cells, "" if times is None else f"{times:.1f}", f"{least:.0f}")
    Console().print(table)
    return int(is_missed)
