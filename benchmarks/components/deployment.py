"""`python -m benchmarks deployment`: how long a query that is asked for while others run waits for its first batch.

The ten streams of `ajoin` flow at `--rate` rows a second each, and `--running` queries are there from the start. Then
others come as in the scenarios of paper 004 (`benchmarks.workloads.ajoin_schedule`): in SC1 `--batch` more are asked
for every `--every` seconds, in SC2 as many, and those of the time before are dropped. A request waits from the call
that asks for it until the first batch that answers it has been published, which is the paper's deployment latency.

Limits: no request is lost, half of them wait for at most a batch and half a second, 95 of 100 for at most two batches
and a second, and a batch takes at most a quarter longer while queries are asked for.
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
from benchmarks.workloads.ajoin_schedule import Sc1, Sc2, Schedule, schedule
from benchmarks.workloads.joins import JoinQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait import Engine
    from plait.runtime.batch.events import BatchEvent

_SETTLING_BATCHES = 6
_LONGEST_S = 600.0


@dataclass(slots=True)
class Course:
    """What was seen. Times are of one clock, in seconds; `begun` and `ended`: when the first and the last request were
    made; `asked`, `answered`: by query, when it was asked for and when its first batch was published; `withdrawn`: what
    was dropped before that.
    """

    begun: float = 0.0
    ended: float = 0.0
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    batches: list[tuple[float, float]] = field(default_factory=list)
    epochs: set[int] = field(default_factory=set)

    def heard(self, event: BatchEvent) -> None:
        """Take note of a batch."""
        now = time.time()
        self.batches.append((now, event.seconds))
        self.epochs.add(event.epoch)
        for name, _ in event.results:
            self.answered.setdefault(name, now)

    def withdraw(self, name: str) -> None:
        """Take note that a query is dropped."""
        if name not in self.answered:
            self.withdrawn.add(name)

    @property
    def lost(self) -> frozenset[str]:
        """The queries that were asked for, not dropped, and never answered."""
        return frozenset(self.asked.keys() - self.answered.keys() - self.withdrawn)

    def waits(self) -> list[float]:
        """Return how long each request waited, in seconds."""
        return [self.answered[name] - asked for name, asked in self.asked.items() if name in self.answered]

    def batch_s(self, since: float, until: float) -> float:
        """Return the median duration of the batches that ended in a span of time."""
        return median([seconds for ended, seconds in self.batches if since <= ended <= until] or [0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the course comes to, in seconds: how long requests waited in the median and at the 95th percentile, and the
    median batch before the first request and while queries were asked for. None: nothing to tell it from.
    """

    lost: int
    median: float | None
    late: float | None
    before: float
    meanwhile: float

    @classmethod
    def of(cls, course: Course) -> Figures:
        """Return the figures of a course."""
        waits = course.waits()
        return cls(
            lost=len(course.lost),
            median=median(waits) if waits else None,
            late=quantiles(waits, n=20, method="inclusive")[-1] if len(waits) > 1 else None,
            before=course.batch_s(0, course.begun),
            meanwhile=course.batch_s(course.begun, course.ended),
        )

    def missed(self) -> tuple[str, ...]:
        """Return the limits that were not kept."""
        limits = (
            ("requests lost", float(self.lost), 0.0),
            ("waited, median", self.median, self.before + 0.5),
            ("waited, 95th percentile", self.late, 2 * self.before + 1),
            ("a batch meanwhile", self.meanwhile, 1.25 * self.before),
        )
        return tuple(
            f"{name}: {found:.2f}, at most {most:.2f}"
            for name, found, most in limits
            if found is not None and found > most
        )


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments; 1 if a limit was not kept."""
    asked = parser("deployment", "What a query waits that is asked for while others run.")
    asked.add_argument("--running", type=positive, default=60, help="queries that run when the first is asked for")
    asked.add_argument("--scenario", choices=("sc1", "sc2"), default="sc1", help="queries come; or come and go")
    asked.add_argument("--batch", type=positive, default=5, help="queries asked for at a time")
    asked.add_argument("--every", type=positive, default=1, help="seconds between these times")
    asked.add_argument("--seconds", type=positive, default=20, help="how long queries are asked for")
    asked.add_argument("--rate", type=positive, default=200, help="rows a second of each stream")
    asked.add_argument("--relations", type=int, choices=SIZES, help="relations of a query (default: 2 to 5, mixed)")
    asked.add_argument("--no-selections", action="store_true", help="queries without selections")
    given = asked.parse_args(arguments)
    drawn = _queries(given)
    running = tuple(islice(drawn, given.running))
    course = _run(given, running, _scheduled(given, drawn))
    figures = Figures.of(course)
    missed = figures.missed()
    _show(course, figures, missed)
    if given.json is not None:
        arguments_of = {name: value for name, value in vars(given).items() if name not in ("json", "dir", "conf")}
        write_json(given.json, {**surroundings(), "arguments": arguments_of, "course": _plain(course)})
    return 1 if missed else 0


def _scheduled(given: Any, drawn: Iterator[JoinQuery]) -> Schedule:
    """Return which queries are asked for and dropped when."""
    if given.scenario == "sc2":
        return schedule(Sc2(batch=given.batch, every_s=given.every, seconds=given.seconds), drawn)
    times = -(-given.seconds // given.every)
    return schedule(Sc1(per_second=given.batch, parallel=given.batch * times, every_s=given.every), drawn)


def _run(given: Any, running: tuple[JoinQuery, ...], changes: Schedule) -> Course:
    """Let the queries run, and others come and go."""
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
        for query in running:
            _add(engine, query, sinks.noop())
        handle = engine.start(trigger="0 seconds")
        _wait(lambda: len(course.batches) >= _SETTLING_BATCHES)
        course.begun = time.time()
        for change in changes.changes:
            time.sleep(max(0.0, course.begun + change.second - time.time()))
            for query in change.create:
                course.asked[query.name] = time.time()
                _add(engine, query, sinks.noop())
            for name in change.delete:
                course.withdraw(name)
                engine.drop(name)
        course.ended = time.time()
        _wait(lambda: not course.lost)
        handle.stop()
    spark.stop()
    return course


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
    return {**asdict(course), "withdrawn": sorted(course.withdrawn), "epochs": len(course.epochs)}


def _show(course: Course, figures: Figures, missed: tuple[str, ...]) -> None:
    console = Console()
    table = Table(title=f"{len(course.asked)} queries asked for while others ran")
    table.add_column("what")
    table.add_column("", justify="right")
    table.add_row("answered", f"{len(course.answered.keys() & course.asked.keys())}")
    table.add_row("dropped before that", f"{len(course.withdrawn)}")
    table.add_row("waited, median", _seconds(figures.median))
    table.add_row("waited, 95th percentile", _seconds(figures.late))
    table.add_row("a batch before", _seconds(figures.before))
    table.add_row("a batch meanwhile", _seconds(figures.meanwhile))
    table.add_row("epochs", f"{len(course.epochs)}")
    table.add_row("took to ask for all", _seconds(course.ended - course.begun))
    console.print(table)
    for each in missed:
        console.print(f"limit not kept: {each}", highlight=False)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"
