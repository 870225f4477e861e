"""Run a case through the operators without Spark: DuckDB stands in for what Spark evaluates, loops for its tasks.

Everything else is the product's own: planning, ingest, buckets, manifests on disk, probing, spooled results.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from plait.adapt.budget import Budget, stores_to_drop
from plait.adapt.planning import probing_only
from plait.operators.close.certain import certain_rows, span_of
from plait.operators.close.certain_sql import finds_core
from plait.operators.close.closing import Closed, close
from plait.operators.close.found import write_found
from plait.operators.close.keeping import generations_after, live_buckets, windows_of
from plait.operators.close.next_manifest import next_manifest, results_by_query
from plait.operators.close.sides import Stored
from plait.operators.close.watermark import late_before
from plait.operators.column_names import TAU
from plait.operators.ingest.derivable import derivation
from plait.operators.ingest.deriving import Derivation, derived
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import IngestSpec, ingest_spec, tau_sql
from plait.operators.probe.layers import Tables
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.reader import Reader
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.driving import as_one
from plait.operators.traversal.messages import Message
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Spread, probe_in_phases, with_intermediates
from plait.operators.traversal.slicing import Allowance, arranged, take
from plait.operators.traversal.traverse import Traversal
from plait.optimizer.options import PROBE_COSTS, PlanOptions
from plait.optimizer.planner import plan as make_plan
from plait.plan.columns import stored_column
from plait.plan.key_groups import Generation
from plait.plan.model import Plan
from plait.plan.pruning import without_answers
from plait.plan.validate import validate
from plait.query.model import ColumnRef, Query, Source, Stream
from plait.query.types import is_clock
from plait.sinks.delivery import Delivery, Spooled
from plait.state.buckets import rows_of_all
from plait.state.compaction import choose_merges, merge_buckets
from plait.state.compaction import replace as replace_merged
from plait.state.fillings import after_merge, fence
from plait.state.manifest import ManifestLog
from plait.state.model import TABLE_BATCH, Bucket, Manifest, SourceProgress
from plait.state.storage import Storage
from plait.stats.cycles import NOTHING_COUNTED, CycleLength, Cycles
from plait.stats.model import SourceStatistics, Statistics
from tests.oracle.duckdb_oracle import UnsuitableCaseError, load
from tests.oracle.intervals import with_durations
from tests.oracle.translate import connection, to_duckdb
from tests.property.case import Case, RunOptions
from tests.property.governing import Governing, Slices
from tests.property.registered import PREDICATES
from tests.property.sending import random_generation, sent
from tests.property.structured import backquoted
from tests.property.values import SPANS
from tests.unit.optimizer.random_orders import random_plan

FREE_STORES = replace(PROBE_COSTS, keep=0.0, store=0.0)
"""Intermediate stores cost nothing by themselves, so that `dppick` has some although cases are small."""

MOST_MESSAGES = 30_000
"""In Spark they would lie on disk; here they are all in memory, and thousands of them show nothing new."""
_CLOCK_MS = 1_700_000_000_000


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run produced. `tables` per query by position of its output, `batches` those in which they came; `late` and
    `bad` rows per stream.

    `progress`: all that was counted, by stream; `stored`: rows put into buckets, by stream and store; `cycles`: what
    plans depend on, one cycle a batch.
    """

    tables: dict[str, list[pa.Table]] = field(default_factory=dict)
    batches: dict[str, list[int]] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    watermarks: list[int | None] = field(default_factory=list)
    probe_tuples: dict[str, int] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    progress: dict[str, SourceProgress] = field(default_factory=dict)
    stored: dict[str, Counter[str]] = field(default_factory=dict)
    cycles: Cycles = NOTHING_COUNTED

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the query's rows."""
        from tests.oracle.compare import table_rows

        return [row for table in self.tables.get(query, []) for row in table_rows(table)]


class DirectRun:
    """One run of a case in a checkpoint directory."""

    def __init__(self, case: Case, sources: tuple[Source, ...], queries: tuple[Query, ...], directory: str) -> None:
        strategies = set(case.options.strategies)
        if "independent" in strategies and len(strategies) > 1:  # the product refuses that too
            raise ValueError("strategy 'independent' has a store for each query; no other can follow it on its state")
        self.case, self.sources, self.queries = case, sources, queries
        self.options: RunOptions = case.options
        self.storage = Storage.open(directory)
        self.log = ManifestLog(self.storage)
        self.outcome = Outcome()
        self.wanted = {query.name: _wanted(query) for query in queries}
        self.found_late = frozenset(query.name for query in queries if query.joins and not finds_core(query))
        self._spooled: dict[str, list[tuple[int, pa.Table]]] = {}
        self._inputs: dict[tuple[str, tuple[tuple[str, str], ...]], pa.Table] = {}
        self._attempts = itertools.count()
        self._generation: Generation | None = None

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(source for source in self.sources if isinstance(source, Stream))

    def run(self) -> Outcome:
        """Run all batches."""
        _load_sources(self.case)
        plan = self._plan(0)
        manifest = self._tables(plan)
        self.governing = Governing(plan=plan, queries=self.queries, fill_rows=self.options.fill_rows)
        for batch in range(self.case.batches):
            is_restart = batch in self.options.restarts
            if is_restart:
                manifest = self.log.latest() or manifest
            self._change_plan(manifest, batch, is_restart=is_restart)
            self._draw_tables(batch)
            if batch in self.options.compactions:
                manifest = self._compact(self.governing.plan, manifest)
            if is_restart:
                self._attempt(manifest, batch)
            manifest = self._commit(batch, *self._attempt(manifest, batch))
        self._account(manifest)
        self._evaluate()
        return self.outcome

    def end(self) -> tuple[Manifest, Closed, tuple[ProbeReport, ...]]:
        """End the input after the last batch: return the last manifest, and what has been closed and found by that."""
        manifest = self.log.latest()
        assert manifest is not None
        closed = close(manifest, self.governing.plan, self.streams, (), (), 1, CycleLength(batches=1), is_end=True)
        certain = self._certain(self.case.batches, manifest, (), closed)
        self._collect(self.case.batches, certain)
        self._evaluate()
        return manifest, closed, certain

    def _draw_tables(self, batch: int) -> None:
        """Let other tables send what arrives from a batch on, where rows are shuffled."""
        if self.options.routing != "shuffle" or batch not in self.options.tables:
            return
        plan, hot = self.governing.plan, dict[tuple[str, str], list[int]]()
        for source, spec in self._specs(plan):
            for store in plan.stores if isinstance(source, Stream) else ():
                for key in store.keys if store.source == source.name else ():
                    column = self._projected(spec)[dict(spec.aliases).get(key.name, key.name)]
                    hot[store.id, key.name] = [] if key.by_size else column.drop_null().unique().sort().to_pylist()
        rng = random.Random(f"{self.case.seed} {batch} tables")
        names = [stream.name for stream in self.streams]
        self._generation = random_generation(rng, plan, names, batch, hot) or self._generation

    def _change_plan(self, manifest: Manifest, batch: int, *, is_restart: bool) -> None:
        """Let the batch begin with the next stage, or another plan; a restart remembers nothing of where it was."""
        governing = self.governing
        if not is_restart:
            governing.go_on(manifest)
        goal = self._next_plan(governing.heading, manifest, batch)
        if is_restart:
            governing.start(goal, manifest, self._bare(batch))
        elif goal is not governing.heading:
            governing.lead_to(goal, manifest, self._bare(batch))

    def _bare(self, batch: int) -> Plan | None:
        """Return a plan without intermediate stores, None where none can follow."""
        if self.options.fill_rows is None or "independent" in self.options.strategies:
            return None
        options = PlanOptions(
            strategy="greedy", sources=self.sources, parallelism=self.governing.plan.stores[0].parallelism
        )
        return make_plan(self.queries, _random_statistics(self.case, batch), options)

    def _next_plan(self, running: Plan, manifest: Manifest, batch: int) -> Plan:
        """Return the plan for a batch, on what the last manifest says."""
        return running if self.options.strategies[batch] == running.strategy else self._replan(running, batch)

    def _plan(self, batch: int, parallelism: int | None = None) -> Plan:
        options = PlanOptions(
            strategy=self.options.strategies[batch],
            sources=self.sources,
            parallelism=parallelism or self.options.parallelism_at(batch),
            storage_rows=self.options.storage_rows,
            costs=FREE_STORES,
        )
        statistics = _random_statistics(self.case, batch)
        if options.strategy == "random":
            plan = random_plan(self.queries, statistics, options, random.Random(f"{self.case.seed} {batch} orders"))
            validate(plan, self.queries)
        else:
            plan = make_plan(self.queries, statistics, options)
        self.outcome.plans.append(plan)
        return plan

    def _replan(self, running: Plan, batch: int) -> Plan:
        """Plan anew: before odd batches only what may change while a stream runs, else all, as on a restart."""
        if batch % 2 == 0:
            return self._plan(batch)
        wanted = self._plan(batch, running.stores[0].parallelism)
        return probing_only(running, wanted) or wanted

    def _specs(self, plan: Plan) -> Iterator[tuple[Source, IngestSpec]]:
        for source in self.sources:
            stores = tuple(store for store in plan.stores if store.source == source.name)
            if stores or isinstance(source, Stream):
                yield source, ingest_spec(source, stores)

    def _tables(self, plan: Plan) -> Manifest:
        """Store the tables and commit that as the state before the first batch."""
        buckets: list[Bucket] = []
        for source, spec in self._specs(plan):
            if not isinstance(source, Stream):
                for report in self._ingest(spec, 0, self.case.source(source.name).rows.num_rows, TABLE_BATCH, None):
                    buckets += report.buckets
        manifest = Manifest(batch=TABLE_BATCH, watermark_us=None, plan=plan.strategy, buckets=tuple(buckets))
        self.log.commit(manifest)
        return manifest

    def _ingest(
        self, spec: IngestSpec, first: int, rows: int, batch: int, late_before_us: int | None
    ) -> Iterator[IngestReport]:
        """Take in rows [first, first + rows) of a source in one task or several, each with several record batches."""
        generation = None if batch == TABLE_BATCH or not self._is_sent(spec) else self._generation
        how = self._derivation(spec) if self.options.derives and generation is None else None
        projected = self._projected(spec if how is None else _raw(spec, self._source(spec)))
        tasks = self.options.sliced_ingest
        bounds = [first + rows * task // tasks for task in range(tasks + 1)]
        for task, (low, high) in enumerate(itertools.pairwise(bounds)):
            context = IngestContext(
                storage=self.storage,
                batch=batch,
                late_before_us=late_before_us,
                attempt=f"a{next(self._attempts)}",
                task=task,
                chunk_rows=max(1, min(self.options.block_rows * 4, 2_000_000)),
                generation=generation,
            )
            rows = projected.slice(low, high - low)
            for arrived in [rows] if generation is None or low == high else sent(rows, spec, generation):
                pieces = arrived.to_batches(max_chunksize=max(1, self.options.block_rows))
                context = replace(context, attempt=f"a{next(self._attempts)}")
                yield ingest(pieces if how is None else derived(pieces, how), spec, context)

    def _is_sent(self, spec: IngestSpec) -> bool:
        """Tell whether tables send the rows of a source. One whose queries have a store each is shuffled otherwise."""
        accesses = () if self._generation is None else self._generation.accesses
        stores = [store.id for store, _ in spec.stores]
        return len(stores) == 1 and any(access.store == stores[0] for access in accesses) and self._has_keys(spec)

    def _has_keys(self, spec: IngestSpec) -> bool:
        """Tell whether all keys by which tables send rows are at hand, as they are in what Spark was started for."""
        assert self._generation is not None
        named = {name for name, _ in (*spec.projection, *spec.aliases)}
        return all(access.key in named for access in self._generation.accesses_of(spec.stores[0][0].id))

    def _derivation(self, spec: IngestSpec) -> Derivation | None:
        """Return how a task computes what the spec wants from raw columns, None if that takes Spark, or would give
        other hashes than the weak ones that are asked for.
        """
        source = self._source(spec)
        at_hand = [name for name, _ in _raw(spec, source).projection]
        how = derivation(spec, at_hand, (), source)
        is_weak = how is not None and self.options.weak_hash and any(each.is_hash for each in how.columns)
        return None if is_weak else how

    def _source(self, spec: IngestSpec) -> Source:
        return next(source for source in self.sources if source.name == spec.source)

    def _projected(self, spec: IngestSpec) -> pa.Table:
        """Return the source's rows as Spark would project them, whole; batches are slices of it."""
        key = (spec.source, spec.projection)
        if key not in self._inputs:
            columns = ", ".join(
                f"{to_duckdb(sql, weak_hash=self.options.weak_hash)} AS {_double_quoted(name)}"
                for name, sql in spec.projection
            )
            found = connection().sql(f'SELECT {columns} FROM "{spec.source}"').to_arrow_table()
            self._inputs[key] = with_durations(found, self._spans(spec))
        return self._inputs[key]

    def _spans(self, spec: IngestSpec) -> list[str]:
        """Return the columns that are intervals of fixed length: as they are, and values behind keys and predicates."""
        raw = [column.name for column in self.case.source(spec.source).columns if column.kind.name in SPANS]
        return [name for name, _ in spec.projection if name in raw or is_clock(stored_column(name).stored_type or "")]

    def _attempt(
        self, manifest: Manifest, batch: int
    ) -> tuple[Manifest, tuple[IngestReport, ...], tuple[ProbeReport, ...]]:
        """Do all of a batch but its commit; an attempt that is not committed must leave no trace."""
        plan, ingested = self.governing.plan, list[IngestReport]()
        for source, spec in self._specs(plan):
            if isinstance(source, Stream):
                first, rows = self.case.source(source.name).batch(batch)
                ingested += self._ingest(spec, first, rows, batch, late_before(manifest, source.name))
        delta = tuple(bucket for report in ingested for bucket in report.buckets)
        context = ProbeContext(
            plan=without_answers(plan, self.found_late),
            batch=batch,
            storage=self.storage,
            buckets={},
            wanted=self.wanted,
            capacity=self.options.block_rows,
            attempt=f"a{next(self._attempts)}",
            predicates=PREDICATES,
            abreast_steps=self.options.abreast_steps,
        )
        spread = Spread(slots=3, rows_per_start=max(1, self.options.block_rows))
        before = self._caught_up(manifest, context, spread)
        live = before.buckets
        with_tables = replace(context, tables=self._tables_for(before, (*live, *delta), ingested))
        probed = probe_in_phases(with_tables, live, delta, self._probe, spread)
        taken = take(context, before.fillings, live, self._probe, spread, self._allowance())
        before = replace(before, buckets=live + taken.buckets, fillings=taken.fillings)
        return before, tuple(ingested), probed

    def _tables_for(self, before: Manifest, buckets: tuple[Bucket, ...], ingested: list[IngestReport]) -> Tables | None:
        if self.options.routing != "shuffle":
            return None
        generations = generations_after(before.generations, self._generation, buckets)
        copies = (*before.copies, *(copy for report in ingested for copy in report.copies))
        return Tables.of(generations, buckets, copies) if generations else None

    def _allowance(self) -> Allowance:
        return Slices(most=self.options.fill_rows or 0)

    def _caught_up(self, manifest: Manifest, context: ProbeContext, spread: Spread) -> Manifest:
        """Return what the batch builds on, with the stores of a plan that has just begun."""
        plan, governing = context.plan, self.governing
        if governing.is_caught_up:
            return replace(manifest, buckets=live_buckets(plan, manifest))
        found = arranged(plan, manifest.buckets, manifest.fillings, context.batch, governing.complete)
        manifest = replace(manifest, buckets=found.buckets, fillings=found.fillings)
        live = live_buckets(plan, manifest)
        return replace(manifest, buckets=with_intermediates(context, live, self._probe, spread, found.complete))

    def _probe(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        if self.options.routing == "driver":
            tasks = (as_one(tasks),)
        if self.options.routing != "shuffle":
            return tuple(self._traversal(context).run_local(task) for task in tasks)
        reports: list[ProbeReport] = []
        messages: list[Message] = []
        for task in tasks:
            traversal = self._traversal(context)
            messages += traversal.start_messages(task)
            reports.append(traversal.report())
        while messages:
            if len(messages) > MOST_MESSAGES:
                raise UnsuitableCaseError(f"{len(messages)} messages between two steps")
            stage = sorted(messages, key=lambda message: message.partition)
            messages = []
            for _, group in itertools.groupby(stage, key=lambda message: message.partition):
                traversal = self._traversal(context)
                for message in group:
                    messages += traversal.receive(message)
                reports.append(traversal.report())
        return tuple(reports)

    def _traversal(self, context: ProbeContext) -> Traversal:
        return Traversal(context, self._deliveries(), f"t{next(self._attempts)}")

    def _deliveries(self) -> dict[str, Delivery]:
        """Return what becomes of the results of probing."""
        return {name: Spooled(query=name, columns=columns) for name, columns in self.wanted.items()}

    def _commit(
        self, batch: int, before: Manifest, ingested: tuple[IngestReport, ...], probed: tuple[ProbeReport, ...]
    ) -> Manifest:
        plan = self.governing.plan
        closed = close(before, plan, self.streams, ingested, probed, _CLOCK_MS + batch, CycleLength(batches=1))
        certain = self._certain(batch, before, ingested, closed)
        closed = replace(closed, found=(*closed.found, *certain))
        closed = self._with_final(batch, before, closed, (*probed, *certain))
        following = next_manifest(
            before,
            closed,
            plan=plan,
            plan_id=plan.strategy,
            batch=batch,
            ingested=ingested,
            probed=probed,
            publications=(),
            undelivered=(),
            generation=self._generation,
        )
        following = self._within_budget(following, plan)
        self.log.commit(following)
        self.outcome.watermarks.append(before.watermark_us)
        for report in probed:  # a manifest forgets what edges of other plans have counted
            for edge, count in report.probe_tuples:
                self.outcome.probe_tuples[edge] = self.outcome.probe_tuples.get(edge, 0) + count
        for report in ingested:
            for bucket in report.buckets:
                self.outcome.stored.setdefault(report.source, Counter())[bucket.store] += bucket.rows
        found = (*probed, *certain)
        for name, rows in results_by_query(found).items():
            self.outcome.rows_out[name] = self.outcome.rows_out.get(name, 0) + rows
        self._collect(batch, found)
        return following

    def _with_final(self, batch: int, before: Manifest, closed: Closed, probed: tuple[ProbeReport, ...]) -> Closed:
        """Return what a batch has closed with what that makes final; of inner joins nothing is."""
        return closed

    def _within_budget(self, manifest: Manifest, plan: Plan) -> Manifest:
        """Give up intermediate stores where the budget asks for it, whichever strategy brought them."""
        dropped = frozenset[str]()
        if self.options.storage_rows is not None:
            budget = Budget(limit=self.options.storage_rows, in_bytes=False)
            dropped = stores_to_drop(budget, plan, manifest.buckets)
        self.governing.done(dropped)
        return replace(
            manifest,
            buckets=tuple(kept for kept in manifest.buckets if kept.store not in dropped),
            fillings=tuple(filling for filling in manifest.fillings if filling.store not in dropped),
        )

    def _certain(
        self, batch: int, before: Manifest, ingested: tuple[IngestReport, ...], closed: Closed
    ) -> tuple[ProbeReport, ...]:
        """Write what the batch has made certain of queries with outer joins."""
        fresh = tuple(bucket for report in ingested for bucket in report.buckets)
        stored = Stored(reader=Reader(self.storage), before=before.buckets, fresh=fresh)
        found = {}
        for query in (query for query in self.queries if query.joins):
            types = {ref: self._type(query, ref) for ref in self.wanted[query.name]}
            span = span_of(query, before.sources, closed.sources)
            rows = certain_rows(query, self.governing.plan, stored, span, types)
            found.update({} if rows is None else {query.name: (rows,)})
        return (write_found(found, self._deliveries(), self.storage, batch=batch),) if found else ()

    def _type(self, query: Query, ref: ColumnRef) -> pa.DataType:
        columns = self.case.source(query.relation(ref.relation).source).columns
        return next(column.kind.arrow for column in columns if column.name == ref.column)

    def _collect(self, batch: int, reports: tuple[ProbeReport, ...]) -> None:
        for file in (file for report in reports for file in report.results):
            for path in file.paths:
                with pa.memory_map(self.storage.name(path)) as mapped:
                    piece = pa.ipc.open_file(mapped).read_all()
                self._spooled.setdefault(file.query, []).append((batch, piece))

    def _evaluate(self) -> None:
        """Evaluate the queries' projections over what the tasks have spooled since the last call, as Spark would: for
        all batches at once.
        """
        for query in self.queries:
            found = self._spooled.pop(query.name, [])
            if not found:
                continue
            load(connection(), {"#joined": rows_of_all([piece for _, piece in found])})
            columns = ", ".join(f"{to_duckdb(column.expression.sql)} AS c{n}" for n, column in enumerate(query.output))
            result, first = connection().sql(f'SELECT {columns} FROM "#joined"').to_arrow_table(), 0
            for batch, pieces in itertools.groupby(found, key=lambda each: each[0]):
                count = sum(piece.num_rows for _, piece in pieces)
                self.outcome.tables.setdefault(query.name, []).append(result.slice(first, count))
                self.outcome.batches.setdefault(query.name, []).append(batch)
                first += count

    def _compact(self, plan: Plan, manifest: Manifest) -> Manifest:
        buckets, copies, fillings = manifest.buckets, manifest.copies, manifest.fillings
        indexes = {store.id: store.indexes for store in plan.stores}
        for merge in choose_merges((*buckets, *copies), windows_of(plan), fan_in=2, fence=fence(fillings)):
            name = f"m{next(self._attempts)}"
            merged = merge_buckets(self.storage, merge, indexes[merge.buckets[0].store], name)
            buckets, fillings = replace_merged(buckets, merge, merged), after_merge(fillings, merge, merged)
            copies = replace_merged(copies, merge, merged)
        return replace(manifest, buckets=buckets, copies=copies, fillings=fillings)

    def _account(self, manifest: Manifest) -> None:
        self.outcome.late = {progress.source: progress.late for progress in manifest.sources}
        self.outcome.bad = {progress.source: progress.bad for progress in manifest.sources}
        self.outcome.progress = {progress.source: progress for progress in manifest.sources}
        self.outcome.cycles = manifest.cycles


def _wanted(query: Query) -> tuple[ColumnRef, ...]:
    return tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _load_sources(case: Case) -> None:
    load(connection(), {source.name: source.rows for source in case.sources})


def _random_statistics(case: Case, batch: int) -> Statistics:
    """Return made-up statistics, so that probe orders vary: right or wrong, they must not change any result."""
    rng = random.Random(f"{case.seed} {batch}")
    return Statistics(
        sources=tuple(
            SourceStatistics(
                source=name,
                rate_rows_per_s=rng.choice((None, 1.0, 1000.0)),
                rows=rng.choice((None, 10.0, 100_000.0)),
            )
            for name in sorted(source.name for source in case.sources)
        )
    )


__all__ = ["DirectRun", "Outcome", "backquoted"]


def _raw(spec: IngestSpec, source: Source) -> IngestSpec:
    """Return the spec of a source's own columns and its event time."""
    columns = tuple((column.name, backquoted(column.name)) for column in source.schema or ())
    time = ((TAU, tau_sql(source)),) if isinstance(source, Stream) else ()
    return replace(spec, projection=(*columns, *time), aliases=(), selections=())
