"""The pieces of the path of a request as functions without Spark, for `benchmarks.components.request_costs`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from benchmarks.workloads.ajoin_queries import STREAMS, WINDOWS_S
from benchmarks.workloads.joins import JoinQuery
from plait.adapt.forecast import forecast
from plait.adapt.within_cycle import WithinCycle
from plait.operators.ingest.derivable import derivation_from_running, reading_of, taking_in
from plait.operators.ingest.projection import IngestSpec, ingest_spec, layout_of
from plait.optimizer.incremental.former import Former
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.codec import PartTexts, encode
from plait.plan.model import Plan
from plait.plan.step_names import named_steps
from plait.plan.strategy_names import StrategyName
from plait.plan.validate import validate_change
from plait.query.model import Query, SinkSpec, Stream
from plait.query.types import resolve_types
from plait.query.windows import with_narrow_windows
from plait.runtime.checkpoint.plan_history import order_texts
from plait.sql.select.binder import bind_query
from plait.state.model import Bucket, Manifest, SourceProgress
from plait.stats.cycles import HISTORY, MOST_SERIES, Cycles, Series
from plait.stats.model import Statistics
from plait.stats.sketch import SKETCH_SIZE

T = TypeVar("T")

_SOURCES: Final = tuple(
    Stream(name=stream.name, time="ts", schema=stream.columns, window_us=max(WINDOWS_S) * 1_000_000, keep="all")
    for stream in STREAMS
)
_BY_NAME: Final = {source.name: source for source in _SOURCES}
_RATE: Final = 200
_US_PER_S: Final = 1_000_000


class Measures(Protocol):
    """Measures pieces of work by name."""

    def of(self, piece: str, work: Callable[[], T]) -> T:
        """Do a piece of work and note what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Queries that run: their plan, how rows are taken in for it, what it was written as; `handed`: what Spark hands
    over of each stream since the start; `known`: what plans are made on.
    """

    former: Former
    options: PlanOptions
    written: PartTexts
    specs: Mapping[str, IngestSpec]
    handed: Mapping[str, IngestSpec]
    known: WithinCycle


def begun(queries: tuple[JoinQuery, ...], strategy: StrategyName) -> Running:
    """Return these queries running, planned at once, their plan written and rows taken in for it."""
    options = PlanOptions(strategy=strategy, sources=_SOURCES, parallelism=2, store_weight=100.0)
    typed = tuple(_typed(_bound(query)) for query in queries)
    made = plan(typed, Statistics(), options)
    written = PartTexts()
    encode(made, written)
    specs = {source.name: _spec(source, made) for source in _SOURCES}
    handed = {name: taking_in(spec, _BY_NAME[name]).handed for name, spec in specs.items()}
    former = Former(plan=made, queries=typed)
    return Running(former=former, options=options, written=written, specs=specs, handed=handed, known=WithinCycle())


def deployed(running: Running, asked: tuple[JoinQuery, ...], meter: Measures, batch: int = 1) -> Running:
    """Return what runs once these queries have been taken up too, in one request after this batch."""
    before = running.former
    bound = meter.of("read", lambda: [_bound(query) for query in asked])
    added = meter.of("types", lambda: [_typed(query) for query in bound])
    queries = (*before.queries, *added)
    manifest = _manifest(before.plan, batch)
    statistics = meter.of("statistics", lambda: forecast(_SOURCES, running.known.of(manifest)))
    made = meter.of("plan", lambda: plan(queries, statistics, running.options, replace(before, changed=0)))
    names = frozenset(query.name for query in added)
    meter.of("verified again", lambda: validate_change(before.plan, made, queries, names))
    meter.of("text", lambda: encode(made, running.written))
    meter.of("orders", lambda: order_texts(made))
    specs = meter.of("take in", lambda: _taken_in(running, made))
    return replace(running, former=Former(plan=made, queries=queries), specs=specs)


def _bound(query: JoinQuery) -> Query:
    return bind_query(
        name=query.name,
        select=query.select_sql(),
        sink=SinkSpec(format="noop"),
        windows=dict.fromkeys(query.relations, (query.window_s or 0) * _US_PER_S),
        sources=_BY_NAME,
        is_function=lambda _: False,
    )


def _typed(query: Query) -> Query:
    return with_narrow_windows(resolve_types(query, lambda _: "bigint"), lambda _: "`ts`")


def _spec(source: Stream, made: Plan) -> IngestSpec:
    return ingest_spec(source, tuple(store for store in made.stores if store.source == source.name))


def _taken_in(running: Running, made: Plan) -> dict[str, IngestSpec]:
    """Work out what tasks are told of the rows of every stream whose store is another, and how stored ones are read."""
    specs = dict(running.specs)
    for source in _SOURCES:
        spec = specs[source.name]
        stores = tuple(store for store in made.stores if store.source == source.name)
        if tuple(store for store, _ in spec.stores) == stores:
            continue
        specs[source.name] = spec = _spec(source, made)
        how = derivation_from_running(spec, running.handed[source.name], source)
        assert how is not None, "what ajoin asks for takes no Spark"
        pickle.dumps(how)
        for store in stores:
            reading_of(store, source)
    return specs


def _manifest(made: Plan, batch: int) -> Manifest:
    """Return what a batch leaves that has shown something of everything in a plan: as much as is ever kept of it."""
    seconds = 60 + batch
    progress = (
        SourceProgress(
            source=store.source or "",
            rows=_RATE * seconds,
            tau_min=0,
            tau_max=seconds * _US_PER_S,
            sketch=tuple((key.name, tuple(range(batch, batch + SKETCH_SIZE))) for key in store.keys),
            kept=tuple((selection.sql, _RATE * seconds // 3) for selection in store.selections),
        )
        for store in made.stores
    )
    buckets = (
        Bucket(
            store=store.id,
            partition=0,
            path=f"{store.id}-{batch}",
            rows=_RATE,
            bytes=_RATE * 64,
            batch_min=batch,
            batch_max=batch,
            tau_min=0,
            tau_max=seconds * _US_PER_S,
            sort_key=(),
            layout=layout_of(store),
            checksum="",
        )
        for store in made.stores
    )
    return Manifest(
        batch=batch,
        watermark_us=0,
        plan="",
        buckets=tuple(buckets),
        sources=tuple(progress),
        cycles=Cycles(
            number=HISTORY,
            batches=(10,) * HISTORY,
            seconds=(10.0,) * HISTORY,
            series=tuple(sorted(_series(made, batch), key=lambda each: (each.kind, each.name))),
        ),
    )


def _series(made: Plan, batch: int) -> Iterator[Series]:
    def series(kind: Any, name: tuple[str, ...], *counts: int) -> Series:
        listed = tuple((count + batch,) * HISTORY for count in counts)
        return Series(kind=kind, name=name, counts=listed, earlier=tuple(0 for _ in counts))

    for source in _SOURCES:
        yield series("source", (source.name,), _RATE * 10, 10 * _US_PER_S)
    names = sorted({tuple(name) for _, name in named_steps(made)})
    yield from (series("step", name, 500, 200, 300) for name in names[:MOST_SERIES])


__all__ = ["Measures", "Running", "begun", "deployed"]
