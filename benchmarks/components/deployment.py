"""`python -m benchmarks deployment`: how long a query that is asked for while others run waits for its first batch.

The ten streams of `ajoin` flow at `--rate` rows a second each, `--running` queries are there from the start, and then
`--per-second` more are asked for every second for `--seconds`. With `--replace` as many of those that run are dropped
with every request: scenario SC2 of paper 004, without it SC1. A request waits from the call that asks for it until the
first batch that answers it has been published, which is the paper's deployment latency.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from benchmarks.workloads.ajoin_queries import (
    ATTRIBUTES,
    LARGEST_VALUE,
    SIZES,
    STREAMS,
    WINDOWS_S,
    AjoinWanted,
    draw_queries,
)
from benchmarks.workloads.joins import JoinQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait import Engine
    from plait.runtime.batch.events import BatchEvent

_SETTLING_BATCHES = 6
_LONGEST_S = 600.0


@dataclass(slots=True)
class Course:
    """What was seen. Times are of one clock, in seconds; `answered`: by query, when its first batch was published."""

    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    batches: list[tuple[float, float]] = field(default_factory=list)
    epochs: set[int] = field(default_factory=set)

    def heard(self, event: BatchEvent) -> None:
        """Take note of a batch."""
        now = time.time()
        self.batches.append((now, event.seconds))
        self.epochs.add(event.epoch)
        for name, _ in event.results:
            self.answered.setdefault(name, now)

    def waits(self) -> list[float]:
        """Return how long each request waited, in seconds."""
        return [self.answered[name] - asked for name, asked in self.asked.items() if name in self.answered]

    def batch_s(self, since: float, until: float) -> float:
        """Return the median duration of the batches that ended in a span of time."""
        return median([seconds for ended, seconds in self.batches if since <= ended <= until] or [0.0])


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments."""
    asked = parser("deployment", "What a query waits that is asked for while others run.")
    asked.add_argument("--running", type=positive, default=60, help="queries that run when the first is asked for")
    asked.add_argument("--per-second", type=positive, default=5, help="queries asked for every second")
    asked.add_argument("--seconds", type=positive, default=20, help="how long queries are asked for")
    asked.add_argument("--rate", type=positive, default=200, help="rows a second of each stream")
    asked.add_argument("--relations", type=int, choices=SIZES, help="relations of a query (default: 2 to 5, mixed)")
    asked.add_argument("--no-selections", action="store_true", help="queries without selections")
    asked.add_argument("--replace", action="store_true", help="drop a query for each that is asked for")
    given = asked.parse_args(arguments)
    course, begun, ended = _run(given)
    _show(course, begun, ended)
    if given.json is not None:
        arguments_of = {name: value for name, value in vars(given).items() if name not in ("json", "dir", "conf")}
        write_json(given.json, {**surroundings(), "arguments": arguments_of, "course": _plain(course)})
    return 0


def _run(given: Any) -> tuple[Course, float, float]:
    """Return what was seen, and when the first and the last request were made."""
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    settings = dict(given.conf)
    spark = open_session(f"local[{given.cores}]", {name: each for name, each in settings.items() if "spark." in name})
    course = Course()
    with tempfile.TemporaryDirectory(prefix="plait-deployment-") as place:
        engine = Engine(spark, checkpoint=str(Path(place) / "checkpoint"), listener=course.heard)
        for name in (name for name in settings if name.startswith("plait.")):
            engine.set_option(name, settings[name])
        for number, stream in enumerate(STREAMS):
            frame = _flowing(spark, stream.name, number, given.rate)
            engine.stream(stream.name, frame, time="ts", window=f"{max(WINDOWS_S)} seconds", keep="all")
        drawn = _queries(given)
        for query in islice(drawn, given.running):
            _add(engine, query, sinks.noop())
        handle = engine.start(trigger="0 seconds")
        _wait(lambda: len(course.batches) >= _SETTLING_BATCHES)
        begun = time.time()
        oldest = iter([f"q{number}" for number in range(1, given.running + given.per_second * given.seconds)])
        for second in range(given.seconds):
            for query in islice(drawn, given.per_second):
                course.asked[query.name] = time.time()
                _add(engine, query, sinks.noop())
                if given.replace:
                    engine.drop(next(oldest))
            time.sleep(max(0.0, begun + second + 1 - time.time()))
        ended = time.time()
        _wait(lambda: course.asked.keys() <= course.answered.keys())
        handle.stop()
    spark.stop()
    return course, begun, ended


def _queries(given: Any) -> Iterator[JoinQuery]:
    sizes = SIZES if given.relations is None else (given.relations,)
    wanted = AjoinWanted(sizes=sizes, rows_per_s=given.rate, selections=not given.no_selections)
    return draw_queries(wanted, given.seed)


def _flowing(spark: SparkSession, name: str, number: int, rate: int) -> DataFrame:
    """Return a stream that flows by the clock, its attributes uniform and independent of each other."""
    reader = spark.readStream.name(name).format("rate").option("rowsPerSecond", rate)
    values = LARGEST_VALUE + 1
    attributes = [f"pmod(xxhash64(value, {number}, {each}), {values}) AS a{each}" for each in range(ATTRIBUTES)]
    return reader.load().selectExpr("timestamp AS ts", "value AS nr", *attributes)


def _add(engine: Engine, query: JoinQuery, sink: Any) -> None:
    windows = dict.fromkeys(query.relations, f"{query.window_s} seconds")
    engine.query(query.name, query.select_sql(), sink=sink, windows=windows)


def _wait(until: Callable[[], bool]) -> None:
    started = time.time()
    while not until() and time.time() - started < _LONGEST_S:
        time.sleep(0.05)


def _plain(course: Course) -> dict[str, Any]:
    plain = asdict(course)
    return {**plain, "epochs": len(course.epochs)}


def _show(course: Course, begun: float, ended: float) -> None:
    waits = course.waits()
    table = Table(title=f"{len(course.asked)} queries asked for while others ran")
    table.add_column("what")
    table.add_column("", justify="right")
    table.add_row("answered", f"{len(waits)}")
    if len(waits) > 1:
        table.add_row("waited, median", f"{median(waits):.2f} s")
        table.add_row("waited, 95th percentile", f"{quantiles(waits, n=20)[-1]:.2f} s")
    table.add_row("a batch before", f"{course.batch_s(0, begun):.2f} s")
    table.add_row("a batch meanwhile", f"{course.batch_s(begun, ended):.2f} s")
    table.add_row("epochs", f"{len(course.epochs)}")
    table.add_row("took to ask for all", f"{ended - begun:.1f} s")
    Console().print(table)
