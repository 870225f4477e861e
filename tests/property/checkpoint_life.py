"""The life of a checkpoint without Spark: runs with changing streams and queries, one after the other.

A run is given as its streams, its queries and the rows that arrive in each of its batches. What the product does
between batches and at the start of a run is the product's own code; DuckDB evaluates expressions in Spark's place, and
offsets are no question because each batch names its rows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets, resting_buckets
from plait.operators.close.lacking import Lacking, lacking_after
from plait.operators.close.next_manifest import next_manifest
from plait.operators.close.restoring import Rewriting, rewritings, with_left_out
from plait.operators.close.watermark import late_before
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.messages import Message
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Spread, probe_in_phases, with_intermediates
from plait.operators.traversal.traverse import Traversal
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan as make_plan
from plait.plan.model import Plan
from plait.query.model import Column, Operand, Query, Source, Stream
from plait.query.types import resolve_types
from plait.query.windows import with_narrow_windows
from plait.sinks import noop
from plait.sinks.delivery import Delivery, Spooled
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.select.binder import bind_query
from plait.state.buckets import open_bucket
from plait.state.manifest import ManifestLog
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage
from plait.stats.model import Statistics
from tests.oracle.compare import table_rows
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb
from tests.property.front_end import expression_type

SECOND_US = 1_000_000
_CLOCK_MS = 1_700_000_000_000
_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}

Rows = Sequence[tuple[Any, ...]]


def stream(name: str, ddl: str, *, window_s: int | None = 30, delay_s: int = 0, **options: Any) -> Stream:
    """Return a stream with columns such as ``ts timestamp, id bigint``; the first is event time, in whole seconds."""
    columns = tuple(Column(name=pair.split()[0], type=pair.split()[1]) for pair in ddl.split(", "))
    return Stream(
        name=name,
        time=columns[0].name,
        schema=columns,
        window_us=None if window_s is None else window_s * SECOND_US,
        delay_us=delay_s * SECOND_US,
        **options,
    )


@dataclass(slots=True, kw_only=True)
class Ran:
    """What one run did: results and counts per query and stream, what queries lacked at its start, and its plan."""

    results: dict[str, Counter[tuple[Any, ...]]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    lacking: tuple[Lacking, ...] = ()
    lacking_at_end: tuple[Lacking, ...] = ()
    plan: Plan | None = None


class Life:
    """A checkpoint in `directory`, run after run."""

    def __init__(self, directory: Path, *, strategy: str = "greedy", shuffled: bool = False) -> None:
        self.storage = Storage.open(str(directory))
        self.log = ManifestLog(self.storage)
        self.strategy, self.shuffled = strategy, shuffled
        self.since: dict[str, dict[str, int]] = {}
        self._names = itertools.count()

    @property
    def manifest(self) -> Manifest | None:
        return self.log.latest()

    def run(
        self, streams: Sequence[Stream], queries: Mapping[str, str], *batches: Mapping[str, Rows], **options: Any
    ) -> Ran:
        """Do one run; each of `batches` gives rows per stream."""
        sources = {each.name: each for each in streams}
        for each in streams:
            self._learn(each)
        load(connection(), {each.name: _table(each, ()) for each in streams})
        bound = tuple(_bound(name, sql, sources) for name, sql in queries.items())
        plan = make_plan(
            bound,
            Statistics(),
            PlanOptions(strategy=self.strategy, sources=tuple(streams), parallelism=2, **options),
        )
        ran = Ran(plan=plan, results={name: Counter() for name in queries})
        before = self._restored(plan, sources)
        ran.lacking = ran.lacking_at_end = lacking_after(bound, plan, before)
        for rows in batches:
            before = self._batch(plan, bound, sources, before, rows, ran)
            ran.lacking_at_end = lacking_after(bound, plan, before)
        return ran

    def _learn(self, each: Stream) -> None:
        batch = -1 if self.manifest is None or each.name not in self.since else self.manifest.batch + 1
        known = self.since.setdefault(each.name, {})
        for column in each.schema or ():
            known.setdefault(column.name, batch)

    def _restored(self, plan: Plan, sources: Mapping[str, Source]) -> Manifest | None:
        before = self.manifest
        if before is None:
            return None
        kept = [bucket for bucket in before.buckets if all(bucket.store != store.id for store in plan.stores)]
        progress = {found.source: found for found in before.sources}
        for store in plan.stores:
            mine = [bucket for bucket in before.buckets if bucket.store == store.id]
            source = store.source
            found = () if source is None else rewritings(store, sources[source], mine, self.since[source].get)
            for each in found:
                reports = [self._rewritten(each, bucket) for bucket in each.buckets]
                mine = [bucket for bucket in mine if bucket not in each.buckets]
                mine += [bucket for report in reports for bucket in report.buckets]
                progress[each.spec.source] = with_left_out(progress[each.spec.source], each, reports)
            kept += mine
        return replace(before, buckets=tuple(kept), sources=tuple(progress.values()))

    def _rewritten(self, rewriting: Rewriting, bucket: Bucket) -> IngestReport:
        held = pa.Table.from_batches([open_bucket(self.storage, bucket).batch.select(list(rewriting.held))])
        load(connection(), {"#stored": held})
        recovered = "".join(f", {to_duckdb(sql)} AS {_quoted(name)}" for name, sql in rewriting.recovered)
        connection().execute(f'CREATE OR REPLACE TABLE "#raw" AS SELECT *{recovered} FROM "#stored"')
        report = self._ingest(rewriting.spec, "#raw", bucket.batch_max, None)
        assert report.bad == 0
        return replace(report, buckets=tuple(replace(found, batch_min=bucket.batch_min) for found in report.buckets))

    def _ingest(self, spec: IngestSpec, table: str, batch: int, bar: int | None) -> IngestReport:
        columns = ", ".join(f"{to_duckdb(sql)} AS {_quoted(name)}" for name, sql in spec.projection)
        rows = connection().sql(f'SELECT {columns} FROM "{table}"').to_arrow_table()
        context = IngestContext(storage=self.storage, batch=batch, late_before_us=bar, attempt=f"a{next(self._names)}")
        return ingest(rows.to_batches(), replace(spec, dead_letter=None), context)

    def _batch(
        self,
        plan: Plan,
        queries: tuple[Query, ...],
        sources: Mapping[str, Source],
        before: Manifest | None,
        rows: Mapping[str, Rows],
        ran: Ran,
    ) -> Manifest:
        batch = 0 if before is None else before.batch + 1
        read = [each for each in sources.values() if any(store.source == each.name for store in plan.stores)]
        ingested = []
        for each in read:
            load(connection(), {each.name: _table(each, rows.get(each.name, ()))})
            spec = ingest_spec(each, tuple(store for store in plan.stores if store.source == each.name))
            ingested.append(self._ingest(spec, each.name, batch, late_before(before, each.name)))
            ran.late[each.name] += ingested[-1].late
        wanted = {
            query.name: tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))
            for query in queries
        }
        context = ProbeContext(
            plan=plan, batch=batch, storage=self.storage, buckets={}, wanted=wanted, abreast_steps=24 * (batch % 2)
        )
        deliveries: dict[str, Delivery] = {name: Spooled(query=name, columns=refs) for name, refs in wanted.items()}

        def probe(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
            return self._probe(tasks, context, deliveries)

        spread = Spread(slots=2, rows_per_start=3)
        live = with_intermediates(context, live_buckets(plan, before), probe, spread)
        delta = tuple(bucket for report in ingested for bucket in report.buckets)
        probed = probe_in_phases(context, live, delta, probe, spread)
        resting = resting_buckets(plan, before)
        based_on = None if before is None else replace(before, buckets=(*live, *resting))
        taking_part = tuple(each for each in read if isinstance(each, Stream))
        closed = close(based_on, plan, taking_part, tuple(ingested), probed, _CLOCK_MS + batch)
        following = next_manifest(
            based_on,
            closed,
            plan=plan,
            plan_id="p",
            batch=batch,
            ingested=tuple(ingested),
            probed=probed,
            publications=(),
            undelivered=(),
        )
        self.log.commit(following)
        self._collect(queries, probed, ran)
        return following

    def _probe(
        self, tasks: tuple[ProbeTask, ...], context: ProbeContext, deliveries: Mapping[str, Delivery]
    ) -> tuple[ProbeReport, ...]:
        def traversal() -> Traversal:
            return Traversal(context, deliveries, f"t{next(self._names)}")

        if not self.shuffled:
            return tuple(traversal().run_local(task) for task in tasks)
        reports, messages = [], []
        for task in tasks:
            starting = traversal()
            messages += starting.start_messages(task)
            reports.append(starting.report())
        while messages:
            stage: list[Message] = sorted(messages, key=lambda message: message.partition)
            messages = []
            for message in stage:
                receiving = traversal()
                messages += receiving.receive(message)
                reports.append(receiving.report())
        return tuple(reports)

    def _collect(self, queries: tuple[Query, ...], probed: tuple[ProbeReport, ...], ran: Ran) -> None:
        for query in queries:
            files = (file for report in probed for file in report.results if file.query == query.name)
            for path in (path for file in files for path in file.paths):
                with pa.memory_map(self.storage.name(path)) as mapped:
                    load(connection(), {"#joined": pa.ipc.open_file(mapped).read_all()})
                columns = ", ".join(
                    f"{to_duckdb(column.expression.sql)} AS c{n}" for n, column in enumerate(query.output)
                )
                ran.results[query.name].update(
                    table_rows(connection().sql(f'SELECT {columns} FROM "#joined"').to_arrow_table())
                )


def _bound(name: str, sql: str, sources: Mapping[str, Source]) -> Query:
    query = bind_query(name=name, select=sql, sink=noop().spec, windows={}, sources=dict(sources))

    def type_of(operand: Operand) -> str:
        source = query.relation(operand.relation).source
        types = {column.name: column.type.upper() for column in sources[source].schema or ()}
        return expression_type(operand.expression, source, types)

    resolved = resolve_residuals(resolve_types(query, type_of), type_of)
    return with_narrow_windows(resolved, lambda source: getattr(sources[source], "time", None))


def _table(each: Source, rows: Rows) -> pa.Table:
    columns = each.schema or ()
    arrays = {}
    for place, column in enumerate(columns):
        values = [row[place] for row in rows]
        if column.type == "timestamp":
            values = [None if value is None else round(value * SECOND_US) for value in values]
        arrays[column.name] = pa.array(values, _ARROW[column.type])
    return pa.table(arrays)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
