"""`python -m benchmarks live`: small batches of live streams, from the arrival of a file to the commit of its batch.

Files of three streams arrive at a rate, one of each at a time. Three queries take the same files in turn, on one
session: Plait's, Spark handing the rows to Python workers that do nothing (`hand-over`), and Spark with an empty
`foreachBatch` (`empty`), which is the floor of any streaming query over these sources. Medians and 99th percentiles
after a third of the batches; and what the slowest batches lost, part by part.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from benchmarks.arguments import parser, positive
from benchmarks.components.live_tables import show
from benchmarks.components.live_trace import Arrivals, Trace, traces
from benchmarks.components.start import write_streams
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = ("r", "s", "t")
WAYS = ("plait", "hand-over", "empty")
_SELECT = "SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id FROM r, s, t WHERE r.a = s.a AND s.b = t.b"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_GRACE_S = 3.0


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments."""
    asked = parser("live", "Small batches of live streams by the millisecond, and where the slowest lose time.")
    asked.add_argument("--rate", type=positive, default=20_000, help="rows a second, of all streams together")
    asked.add_argument("--every", type=positive, default=500, help="milliseconds from one file of a stream to the next")
    asked.add_argument("--files", type=positive, default=150, help="files of each stream")
    asked.add_argument("--ways", default=",".join(WAYS), help="which queries take the files, in this order")
    given = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="plait-live-") as place:
        directory = Path(place)
        write_streams(directory, max(given.rate * given.every // 3000, 1), given.files, given.seed)
        found = _run(directory, given, given.ways.split(","))
    show(Console(width=None if sys.stdout.isatty() else 150), found)
    if given.json is not None:
        write_json(given.json, {**surroundings(), "ways": {way: asdict(trace) for way, trace in found.items()}})
    return 0


def _run(directory: Path, given: Any, ways: list[str]) -> dict[str, Trace]:
    """Let the files arrive once for each way; return what was seen of it."""
    from plait.runtime.spark.session import JVM, open_session

    chosen = dict(given.conf)
    jvm = chosen.get(_JVM_OPTIONS, JVM[_JVM_OPTIONS])
    log = {"enabled": "true", "dir": directory.as_uri(), "rolling.enabled": "false", "compress": "false"}
    settings = {name: value for name, value in chosen.items() if name.startswith("spark.")}
    settings |= {f"spark.eventLog.{name}": value for name, value in log.items()}
    settings[_JVM_OPTIONS] = f"{jvm} -Xlog:gc:file={directory}/gc.log:uptimemillis,utctime"
    spark = open_session(f"local[{given.cores}]", settings)
    arrivals: dict[str, Arrivals] = {}
    for way in ways:
        folder = directory / way
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True)
        arrivals[way] = Arrivals(every_ms=given.every)
        run = _plait if way == "plait" else _reference
        run(spark, directory, way, arrivals[way], {**chosen, "files": str(given.files)})
    spark.stop()
    events = next(found for found in directory.iterdir() if found.name.startswith(("local-", "app-")))
    pauses = (directory / "gc.log").read_text().splitlines() if (directory / "gc.log").exists() else []
    return traces((json.loads(line) for line in events.open()), pauses, arrivals)


@contextmanager
def _arriving(directory: Path, way: str, arrivals: Arrivals, files: int) -> Iterator[threading.Thread]:
    """Let the files of all streams arrive, one of each at a time, from a thread."""

    def feed() -> None:
        started = time.monotonic()
        for number, name in enumerate(f"{number:05}.parquet" for number in range(files)):
            time.sleep(max(started + number * arrivals.every_ms / 1000 - time.monotonic(), 0.0))
            for stream in STREAMS:
                (directory / way / stream / name).hardlink_to(directory / stream / name)
            arrivals.files_ms.append(time.time() * 1000)

    thread = threading.Thread(target=feed, name="feed", daemon=True)
    thread.start()
    yield thread
    thread.join()
    time.sleep(_GRACE_S)


def _frames(spark: SparkSession, directory: Path, way: str) -> dict[str, DataFrame]:
    schema = {stream: spark.read.parquet(str(directory / stream / "00000.parquet")).schema for stream in STREAMS}
    return {
        stream: spark.readStream.name(stream).schema(schema[stream]).parquet(str(directory / way / stream))
        for stream in STREAMS
    }


def _plait(spark: SparkSession, directory: Path, way: str, arrivals: Arrivals, chosen: dict[str, str]) -> None:
    from plait import Engine, sinks

    engine = Engine(
        spark,
        checkpoint=str(directory / f"{way}.checkpoint"),
        listener=lambda event: arrivals.events.append((time.time() * 1000, event)),
    )
    for name in (name for name in chosen if name.startswith("plait.")):
        engine.set_option(name, chosen[name])
    for stream, frame in _frames(spark, directory, way).items():
        engine.stream(stream, frame, time="ts", window="200 seconds")
    engine.query("q", _SELECT, sink=sinks.memory())
    running = engine.start(trigger="0 seconds")
    with _arriving(directory, way, arrivals, int(chosen["files"])):
        pass
    running.stop()


def _reference(spark: SparkSession, directory: Path, way: str, arrivals: Arrivals, chosen: dict[str, str]) -> None:
    """Run Spark alone over the same sources, with or without a job that hands their rows to Python workers."""
    frames = list(_frames(spark, directory, way).values())
    if way == "hand-over":
        frames = [frame.coalesce(1).mapInArrow(_count, "rows bigint") for frame in frames]
    else:
        frames = [frame.selectExpr("id") for frame in frames]
    writer = reduce(lambda left, right: left.union(right), frames).writeStream.queryName(way)
    writer = writer.option("checkpointLocation", str(directory / f"{way}.checkpoint"))

    def carry_out(frame: DataFrame, _: int) -> None:
        if way == "hand-over":
            frame.collect()

    running = writer.trigger(processingTime="0 seconds").foreachBatch(carry_out).start()
    with _arriving(directory, way, arrivals, int(chosen["files"])):
        pass
    running.stop()


def _count(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})
