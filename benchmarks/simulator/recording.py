"""What every probe order of a query takes, cycle by cycle, counted by the product's own operators without Spark.

One batch is one cycle. Each is stored once and then probed with one plan after the other, until every order of every
starting relation has been taken; plans without intermediate stores leave the same state, whatever they probe.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from plait.adapt.planning import probing_only
from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets
from plait.operators.close.next_manifest import next_manifest
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.scheduling import Spread, probe_in_phases
from plait.operators.traversal.traverse import ProbeTask, Traversal
from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan
from plait.query.masks import Mask, positions
from plait.query.model import Query, Stream
from plait.sinks.delivery import Discarded
from plait.state.model import Bucket, Manifest, SourceProgress
from plait.state.storage import Storage
from plait.stats.cycles import CycleLength
from plait.stats.model import Statistics

_CLOCK_MS = 1_700_000_000_000
MEMORY = Path("/dev/shm")
EVERY_BATCH = CycleLength(batches=1)

Batch = Mapping[str, pa.Table]
"""The rows of every stream that arrive together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCounts:
    """What one step took in one cycle: tuples that probed, how many matched anything, all their matches."""

    probes: int = 0
    matched: int = 0
    matches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle: the buckets there were before it and those that arrived, progress before and after, and the counts of
    every step of every order.
    """

    stored: tuple[Bucket, ...]
    arrived: tuple[Bucket, ...]
    before: Mapping[str, SourceProgress]
    after: Mapping[str, SourceProgress]
    edges: Mapping[str, EdgeCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All cycles of a query over streams. `orders`: every probe order by starting alias; `stores`: a plan's."""

    query: Query
    streams: tuple[Stream, ...]
    orders: Mapping[str, tuple[ProbeOrder, ...]]
    cycles: tuple[Cycle, ...]

    def options(self, strategy: str = "fixed") -> PlanOptions:
        """Return options to plan with, for this data without intermediate stores."""
        return plan_options(self.streams, strategy)


def plan_options(streams: tuple[Stream, ...], strategy: str = "fixed") -> PlanOptions:
    """Return options for one partition a store and no intermediate stores."""
    return PlanOptions(strategy=strategy, sources=streams, parallelism=1, storage_rows=0)  # type: ignore[arg-type]


def every_order(query: Query, options: PlanOptions) -> dict[str, tuple[ProbeOrder, ...]]:
    """Return all probe orders without cross joins, by starting alias."""
    costs = QueryCosts(query, Cardinality(statistics=Statistics()), options)

    def extended(joined: Mask) -> Iterator[tuple[Mask, ...]]:
        if joined == costs.everything:
            yield ()
            return
        for unit in costs.following(joined, costs.everything):
            for rest in extended(joined | unit):
                yield (unit, *rest)

    return {
        costs.aliases[start]: tuple(
            ProbeOrder(query=query.name, units=tuple(map(costs.among, (1 << start, *units))))
            for units in extended(1 << start)
        )
        for start in positions(costs.streams)
    }


def plans_of(query: Query, orders: Mapping[str, Sequence[ProbeOrder]], options: PlanOptions) -> tuple[Plan, ...]:
    """Return plans that together take every order, on the stores of the first."""
    rounds = max(len(found) for found in orders.values())
    made = [
        build((query,), [found[number % len(found)] for found in orders.values()], Statistics(), options)
        for number in range(rounds)
    ]
    fitting = [probing_only(made[0], each) for each in made]
    return tuple(each for each in fitting if each is not None)


def record(query: Query, streams: tuple[Stream, ...], batches: Sequence[Batch]) -> Recording:
    """Run the batches through the operators and count every order's steps."""
    options = plan_options(streams)
    orders = every_order(query, options)
    plans = plans_of(query, orders, options)
    directory = tempfile.mkdtemp(prefix="plait-simulated-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        cycles = tuple(_Recorder(query, streams, plans, Storage.open(directory)).run(batches))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Recording(query=query, streams=streams, orders=orders, cycles=cycles)


class _Recorder:
    def __init__(self, query: Query, streams: tuple[Stream, ...], plans: tuple[Plan, ...], storage: Storage) -> None:
        self._streams, self._plans, self._storage = streams, plans, storage
        self._wanted = {query.name: tuple(ref for column in query.output for ref in column.expression.columns)}
        self._attempts = itertools.count()

    def run(self, batches: Sequence[Batch]) -> Iterator[Cycle]:
        plan, manifest = self._plans[0], Manifest(batch=-1, watermark_us=None, plan="recorded")
        for number, batch in enumerate(batches):
            ingested = tuple(self._ingested(stream, batch[stream.name], number) for stream in self._streams)
            arrived = tuple(bucket for report in ingested for bucket in report.buckets)
            live = live_buckets(plan, manifest)
            edges: dict[str, EdgeCounts] = {}
            for each in self._plans:
                reports = self._probed(each, number, live, arrived)
                edges.update(_counts(reports))
            before = replace(manifest, buckets=live)
            closed = close(before, plan, self._streams, ingested, (), _CLOCK_MS + number, EVERY_BATCH)
            following = next_manifest(
                before,
                closed,
                plan=plan,
                plan_id="recorded",
                batch=number,
                ingested=ingested,
                probed=(),
                publications=(),
                undelivered=(),
            )
            yield Cycle(
                stored=live,
                arrived=arrived,
                before={found.source: found for found in manifest.sources},
                after={found.source: found for found in following.sources},
                edges=edges,
            )
            manifest = following

    def _probed(
        self, plan: Plan, number: int, live: tuple[Bucket, ...], arrived: tuple[Bucket, ...]
    ) -> tuple[ProbeReport, ...]:
        context = ProbeContext(
            plan=plan,
            batch=number,
            storage=self._storage,
            buckets={},
            wanted=self._wanted,
            attempt=f"a{next(self._attempts)}",
        )
        return probe_in_phases(context, live, arrived, self._walked, Spread(slots=1))

    def _walked(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        deliveries = {name: Discarded(query=name, columns=columns) for name, columns in self._wanted.items()}
        return tuple(Traversal(context, deliveries, f"t{next(self._attempts)}").run_local(task) for task in tasks)

    def _ingested(self, stream: Stream, rows: pa.Table, number: int) -> IngestReport:
        spec = ingest_spec(stream, tuple(store for store in self._plans[0].stores if store.source == stream.name))
        context = IngestContext(
            storage=self._storage, batch=number, late_before_us=None, attempt=f"a{next(self._attempts)}"
        )
        return ingest(projected(spec, rows).to_batches(), spec, context)


def projected(spec: IngestSpec, rows: pa.Table) -> pa.Table:
    """Return rows as Spark would project them: columns and casts of them, which Spark and DuckDB write alike."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", rows)
    chosen = ", ".join(f'{sql.replace("`", chr(34))} AS "c{place}"' for place, (_, sql) in enumerate(spec.projection))
    found: pa.Table = connection.sql(f"SELECT {chosen} FROM rows").to_arrow_table()
    return found.rename_columns([name for name, _ in spec.projection])


def _counts(reports: tuple[ProbeReport, ...]) -> dict[str, EdgeCounts]:
    sums: dict[str, list[int]] = {}
    for report in reports:
        for place, counts in enumerate((report.probe_tuples, report.matched, report.matches)):
            for edge, count in counts:
                sums.setdefault(edge, [0, 0, 0])[place] += count
    return {
        edge: EdgeCounts(probes=probes, matched=matched, matches=matches)
        for edge, (probes, matched, matches) in sums.items()
    }


__all__ = [
    "Batch",
    "Cycle",
    "EdgeCounts",
    "Recording",
    "every_order",
    "plan_options",
    "plans_of",
    "projected",
    "record",
]
