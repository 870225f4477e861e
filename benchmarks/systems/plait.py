"""Plait, with default settings and batches of its own size; results are discarded, or written as Parquet files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.systems import kafka_topics
from benchmarks.systems.deliveries import Deliveries, wait_for_the_end
from benchmarks.systems.edges import EdgeTruth
from benchmarks.systems.separate import drain_one_by_one
from benchmarks.systems.session_settings import OF_PLAIT
from benchmarks.systems.streams import let_arrive, read_options
from benchmarks.systems.summing import added_up
from benchmarks.systems.system import Mode, System
from benchmarks.systems.task import Answer, Outcome, Task, plait_settings, spark_settings
from benchmarks.systems.truth import Glimpse, edge_truths
from benchmarks.workloads.joins import JoinQuery
from plait import sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait.runtime.batch.events import BatchEvent
    from plait.runtime.engine import Engine


SEPARATE = "separate"
SMALL_BATCHES = "small-batches"

SYSTEM = System(
    name="plait",
    summary="Plait, all queries as one plan",
    settings=OF_PLAIT,
    modes=(
        *(
            Mode(name=name, summary=f"Plait, planned by strategy '{name}'")
            for name in ("independent", "greedy", "shared", "ilp", "flat", "left-deep", "chain", "bushy")
        ),
        Mode(name=SMALL_BATCHES, summary="Plait, one file of each stream a batch, as Spark reads them here"),
        Mode(name=SEPARATE, summary="Plait, an engine for each query, one after the other"),
    ),
    is_live=True,
)


def run(task: Task) -> Outcome:
    """Drain the streams through all queries at once, on a session of their own; or through an engine for each."""
    if task.mode == SEPARATE:
        return drain_one_by_one(task, drain_on)
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{task.cores}]", spark_settings(task), formats=kafka_topics.formats_of(task))
    outcome = follow_on(spark, task) if task.live else drain_on(spark, task)
    spark.stop()
    return outcome


def drain_on(spark: SparkSession, task: Task) -> Outcome:
    """Drain the streams through all queries at once, on this session. With a sample, the engine is stopped after it
    and started again, so that it plans the rest with what it has measured; that takes part in the time.
    """
    watch = _Watch(task)
    root = task.arriving if task.sample else task.data_path
    if task.sample:
        let_arrive(task, range(task.sample), root)
    engine = _open_engine(spark, task, listener=watch.heard, root=root)
    for query in task.questions.queries:
        _ask(engine, query, _results(task, query))
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    engine.run_available()
    if task.sample:
        let_arrive(task, range(task.sample, task.files), root)
        engine.run_available()
    seconds = time.perf_counter() - started
    return watch.outcome(startup_seconds, (started, seconds))


def _open_engine(
    spark: SparkSession, task: Task, *, listener: Callable[[BatchEvent], None] | None = None, root: Path | None = None
) -> Engine:
    """Return an engine with the task's options and streams, and no queries yet."""
    from plait.runtime.engine import Engine
    from plait.sql import load_script

    engine = Engine(spark, checkpoint=task.checkpoint, listener=listener)
    is_small = task.mode == SMALL_BATCHES
    if task.mode is not None and not is_small:
        engine.set_option("plait.strategy", task.mode)
    for name, value in plait_settings(task).items():
        engine.set_option(name, value)
    if task.broker is not None:
        engine.load(load_script(kafka_topics.script(task, task.broker)))
        return engine
    for stream in task.questions.streams:
        options = read_options(task, stream.name, root=root, is_small=is_small)
        engine.stream(stream.name, format="parquet", schema=stream.ddl, options=options, time=stream.time)
    return engine


def follow_on(spark: SparkSession, task: Task) -> Outcome:
    """Keep joining what arrives, a batch after the other, until told to stop."""
    found = {query.name: Deliveries(query, task) for query in task.questions.queries}
    engine = _open_engine(spark, task)
    for query in task.questions.queries:
        _ask(engine, query, sinks.foreach_arrow(found[query.name].add_table))
    running = engine.start(trigger="0 seconds")
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    wait_for_the_end(task, list(found.values()))
    seconds = time.perf_counter() - started
    summary = running.stop()
    return Outcome(
        rows_in=summary.rows_in,
        startup_seconds=startup_seconds,
        seconds=seconds,
        late_rows=summary.late,
        deliveries=tuple(delivery for each in found.values() for delivery in each.total()),
    )


def _results(task: Task, query: JoinQuery) -> sinks.Sink:
    return sinks.parquet(str(task.results / query.name)) if task.check else sinks.noop()


def _ask(engine: Engine, query: JoinQuery, sink: sinks.Sink) -> None:
    window = "unbounded" if query.window_s is None else f"{query.window_s} seconds"
    engine.query(query.name, query.select_sql(), sink=sink, windows=dict.fromkeys(query.relations, window))


class _Watch:
    """Listens to the batches. Where results are checked, and so nobody looks at the clock, it also reads manifests."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ends: list[float] = []
        self._events: list[BatchEvent] = []
        self._glimpses: list[Glimpse] = []
        self._plans: dict[str, str] = {}

    def heard(self, event: BatchEvent) -> None:
        """Note the end of a batch and what it left."""
        self._ends.append(time.perf_counter())
        self._events.append(event)
        if self._task.check:
            glimpse = _glimpse(self._task)
            self._glimpses.append(glimpse)
            if glimpse.plan not in self._plans:  # read while it is in force: it is deleted some time after that
                self._plans[glimpse.plan] = _plan_text(self._task, glimpse.plan)

    def outcome(self, startup_seconds: float, timing: tuple[float, float]) -> Outcome:
        """Return what the run came to. `timing`: clock at its start, and its seconds."""
        started, seconds = timing
        return Outcome(
            rows_in=sum(event.rows_in for event in self._events),
            startup_seconds=startup_seconds,
            seconds=seconds,
            batch_seconds=tuple(later - earlier for earlier, later in pairwise((started, *self._ends))),
            answers=added_up(self._task) if self._task.check else self._counted(),
            late_rows=sum(event.late for event in self._events),
            probe_tuples=sum(event.probe_tuples for event in self._events),
            shuffled_bytes=sum(event.shuffled_bytes for event in self._events),
            ingest_seconds=sum(dict(event.phases).get("ingest", 0.0) for event in self._events),
            stored_tuples=self._events[-1].stored_tuples if self._events else 0,
            stored_bytes=self._events[-1].stored_bytes if self._events else 0,
            peak_stored_tuples=max((event.stored_tuples for event in self._events), default=0),
            peak_stored_bytes=max((event.stored_bytes for event in self._events), default=0),
            edges=_edges(self._plans, self._glimpses) if self._glimpses else (),
        )

    def _counted(self) -> tuple[Answer, ...]:
        rows = Counter[str]()
        for event in self._events:
            rows.update(dict(event.results))
        return tuple(Answer(query=query.name, rows=rows[query.name]) for query in self._task.questions.queries)


def _glimpse(task: Task) -> Glimpse:
    """Read the newest manifest."""
    from plait.state.manifest import ManifestLog
    from plait.state.storage import Storage

    manifest = ManifestLog(Storage.open(str(Path(task.checkpoint) / "plait"))).latest()
    if manifest is None:
        raise RuntimeError("a batch has ended, but there is no manifest")
    taus = [source.tau_max for source in manifest.sources if source.tau_max is not None]
    return Glimpse(
        plan=manifest.plan,
        tau_us=max(taus, default=0),
        probe_tuples=manifest.probe_tuples,
        sources=manifest.sources,
        cycles=manifest.cycles,
    )


def _plan_text(task: Task, plan: str) -> str:
    from plait.state.garbage import plan_path

    return (Path(task.checkpoint) / "plait" / plan_path(plan)).read_text()


def _edges(texts: Mapping[str, str], glimpses: list[Glimpse]) -> tuple[EdgeTruth, ...]:
    """Compare what was sent with what the plans estimate, given the statistics of the whole run."""
    from plait.adapt.forecast import NEXT_CYCLE, measured_and_forecast
    from plait.plan.codec import decode

    plans = {name: decode(text) for name, text in texts.items()}
    return edge_truths(plans, measured_and_forecast(glimpses[-1].sources, glimpses[-1].cycles, NEXT_CYCLE), glimpses)
