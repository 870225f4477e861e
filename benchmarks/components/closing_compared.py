"""`python -m benchmarks closing`: rows without a partner, and groups of windows, against Spark's own of both.

Two streams in order of time, a file of each a batch. Asked are a left, a full and a semi join within a window, and a
count and sum by key and window. Each system runs in a process of its own, by turns; Plait's results to the end of the
input are compared with DuckDB's first, and Spark's have to be among them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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

WINDOW_S = 20
BATCH_S = 10
GROUP_S = 5
SYSTEMS = ("plait", "spark")
_NEAR = f"r.ts BETWEEN l.ts - INTERVAL {WINDOW_S} SECONDS AND l.ts + INTERVAL {WINDOW_S} SECONDS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: in Plait's words, and in DuckDB's and Spark's, with the window written out."""

    name: str
    plait: str
    plain: str
    least_ratio: float = 8.0


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
    """Seconds from when the query could start to its last result."""

    system: str
    question: str
    seconds: float
    rows_in: int


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments. The exit status is 1 if a target is missed."""
    asked = parser("closing", "Outer and semi joins and windows of time, against Spark's own.")
    asked.add_argument("--rows", type=positive, default=75_000, help="rows of each stream in a batch")
    asked.add_argument("--batches", type=positive, default=12, help="batches")
    asked.add_argument("--repeat", type=positive, default=1, help="timed runs of each")
    asked.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="only these")
    asked.add_argument("--child", help=argparse.SUPPRESS)
    given = asked.parse_args(arguments)
    if given.child is not None:
        print(json.dumps(_answer(**json.loads(given.child))))
        return 0
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="plait-closing-") as place:
        directory = Path(place)
        write_streams(directory, given.rows, given.batches, given.seed)
        for name in given.questions:
            _check(directory, name, given.cores)
            for number in range(given.repeat):
                for system in SYSTEMS:
                    scratch = directory / f"{name}-{system}-{number}"
                    seconds = _run(directory, scratch, system, name, given.cores)["seconds"]
                    rows = given.rows * given.batches * (1 if name == "groups" else 2)
                    runs.append(Run(system=system, question=name, seconds=seconds, rows_in=rows))
    if given.json is not None:
        write_json(given.json, {**surroundings(), "runs": list(map(asdict, runs))})
    return _show(runs)


def write_streams(directory: Path, rows: int, batches: int, seed: int) -> None:
    """Write streams l and r: half of the keys of a batch are in both, a key comes once in each stream or never."""
    random = np.random.default_rng(seed)
    for stream in "lr":
        (directory / stream).mkdir()
        for batch in range(batches):
            keys = random.permutation(2 * rows)[:rows] + batch * 2 * rows
            times = (batch * BATCH_S * 1_000_000 + np.arange(rows) * (BATCH_S * 1_000_000 / rows)).astype(np.int64)
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


def _answer(
    data: str, scratch: str, system: str, question: str, cores: int, results: str | None
) -> Mapping[str, float]:
    ask = _ask_plait if system == "plait" else _ask_spark
    return {"seconds": ask(Path(data), Path(scratch), QUESTIONS[question], cores, results)}


def _ask_plait(data: Path, scratch: Path, question: Question, cores: int, results: str | None) -> float:
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{cores}]")
    engine = Engine(spark, checkpoint=str(scratch / "checkpoint"))
    for stream in "lr" if question.plain else "l":
        options = {"path": str(data / stream), "maxFilesPerTrigger": "1"}
        engine.stream(stream, format="parquet", options=options, time="ts", window=f"{WINDOW_S} seconds")
    engine.query("q", question.plait, sink=sinks.noop() if results is None else sinks.parquet(results))
    began = time.perf_counter()
    engine.run_available(close=results is not None)
    seconds = time.perf_counter() - began
    spark.stop()
    return seconds


def _ask_spark(data: Path, scratch: Path, question: Question, cores: int, results: str | None) -> float:
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
    frame = _in_spark(spark, data, question)
    writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(scratch / "checkpoint"))
    began = time.perf_counter()
    running = writer.format("noop").start() if results is None else writer.format("parquet").start(results)
    running.awaitTermination()
    seconds = time.perf_counter() - began
    spark.stop()
    return seconds


def _in_spark(spark: SparkSession, data: Path, question: Question) -> DataFrame:
    for stream in "lr":
        schema = spark.read.parquet(str(data / stream)).schema
        read = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(data / stream))
        read.withWatermark("ts", "0 seconds").createOrReplaceTempView(stream)
    return spark.sql(question.plain or question.plait)


def _check(data: Path, name: str, cores: int) -> None:
    """Compare both systems' results with DuckDB's, Plait's to the end of the input."""
    found = {}
    for system in SYSTEMS:
        scratch = data / f"{name}-{system}-check"
        results = scratch / "results"
        _run(data, scratch, system, name, cores, results=results)
        found[system] = f"read_parquet('{results}/**/*.parquet')"
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in "lr":
        database.execute(f"CREATE VIEW {stream} AS FROM read_parquet('{data}/{stream}/*.parquet')")
    wanted = QUESTIONS[name].plain.replace("LEFT SEMI", "SEMI") or _GROUPS_IN_DUCKDB
    columns = ", ".join(column[0] for column in database.execute(f"DESCRIBE {wanted}").fetchall())
    missing, extra, beyond = (
        _rows(database, f"(SELECT {columns} FROM {left}) EXCEPT ALL (SELECT {columns} FROM {right})")
        for left, right in (
            (f"({wanted})", found["plait"]),
            (found["plait"], f"({wanted})"),
            (found["spark"], f"({wanted})"),
        )
    )
    if missing or extra or beyond:
        raise RuntimeError(f"{name}: Plait lacks {missing} rows and has {extra} others, Spark has {beyond} others")
    print(f"{name}: results right, {count(_rows(database, wanted))} rows")


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> int:
    found = database.execute(f"SELECT count(*) FROM ({query})").fetchone()
    return int(found[0]) if found else 0


def _show(runs: list[Run]) -> int:
    table = Table(title="Input rows a second, medians")
    for column in ("question", *SYSTEMS, "times", "at least"):
        table.add_column(column, justify="left" if column == "question" else "right")
    is_missed = False
    for name in dict.fromkeys(run.question for run in runs):
        rates = {
            system: median(run.rows_in / run.seconds for run in runs if (run.question, run.system) == (name, system))
            for system in SYSTEMS
        }
        times, least = rates["plait"] / rates["spark"], QUESTIONS[name].least_ratio
        is_missed |= times < least
        table.add_row(name, *(count(round(rate)) for rate in rates.values()), f"{times:.1f}", f"{least:.0f}")
    Console().print(table)
    return int(is_missed)
