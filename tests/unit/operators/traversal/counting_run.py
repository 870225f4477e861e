"""Joins of three streams whose results are grouped, batch by batch, without Spark: for tests of what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.driving import as_one
from plait.operators.traversal.partial_aggregates import fold_again
from plait.operators.traversal.scheduling import Spread, by_store, probe_tasks
from plait.operators.traversal.traverse import Traversal
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.query.model import Column, ColumnRef, Operand, Query, SinkSpec, Stream, with_countable
from plait.query.types import resolve_types
from plait.sinks.delivery import Gathering
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.select.binder import bind_query
from plait.sql.select.folding import folding_of
from plait.sql.select.why_pairs import countable
from plait.state.gathered import folder_of, read_gathered
from plait.state.model import Bucket
from plait.state.storage import Storage
from plait.stats.model import Statistics
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb

TYPES = {
    "ts": "timestamp",
    "k": "bigint",
    "c": "string",
    "x": "int",
    "f": "double",
    "d": "decimal(9,2)",
    "b": "boolean",
}
ARROW = {
    "ts": pa.timestamp("us", "UTC"),
    "k": pa.int64(),
    "c": pa.string(),
    "x": pa.int32(),
    "f": pa.float64(),
    "d": pa.decimal128(9, 2),
    "b": pa.bool_(),
}
SECOND = 1_000_000
Row = tuple[Any, ...]


def sources(within_s: int) -> dict[str, Stream]:
    """Return streams r, s and t, which join within so many seconds."""
    columns = tuple(Column(name=name, type=type_) for name, type_ in TYPES.items())
    return {name: Stream(name=name, time="ts", schema=columns, window_us=within_s * SECOND) for name in "rst"}


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows (seconds, then a value for each other column of `TYPES`) as a stream sends them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(ARROW)
    first = pa.array([at * SECOND for at in columns[0]], pa.int64()).cast(ARROW["ts"])
    others = [pa.array(values, type_) for values, type_ in zip(columns[1:], list(ARROW.values())[1:], strict=True)]
    return pa.table([first, *others], names=list(ARROW))


@dataclass(slots=True)
class CountingRun:
    """Queries by name over streams that join within so many seconds. Without `counts` pairs are made of all matches;
    with a `weak_hash` hashes of texts collide. `reports`: of each batch.
    """

    directory: Path
    selects: Mapping[str, str]
    within_s: int
    counts: bool = True
    parallelism: int = 1
    weak_hash: bool = False
    reports: list[ProbeReport] = field(default_factory=list)
    buckets: list[Bucket] = field(default_factory=list)
    queries: tuple[Query, ...] = ()
    deliveries: dict[str, Gathering] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queries = tuple(self._bound(name, select) for name, select in self.selects.items())

    def _bound(self, name: str, select: str) -> Query:
        def type_of(operand: Operand) -> str:
            return TYPES[operand.expression.columns[0]]

        given = sources(self.within_s)
        query = bind_query(name=name, select=select, sink=SinkSpec(format="noop"), sources=given)
        query = resolve_residuals(resolve_types(query, type_of), type_of)
        columns = tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))
        types = {ref: TYPES[ref.column] for ref in columns}
        assert query.aggregation is not None
        folding = folding_of(query.aggregation, types)
        fold = None if folding is None else folding.fold
        window = query.aggregation.window
        time = ColumnRef(relation=window.relation, column=window.column)
        self.deliveries[name] = Gathering(query=name, columns=columns, time=time, folder=folder_of(name), fold=fold)
        return with_countable(query, countable(query, fold, types)) if self.counts else query

    @property
    def plan(self) -> Plan:
        """The plan of all queries."""
        given = tuple(sources(self.within_s).values())
        options = PlanOptions(strategy="greedy", parallelism=self.parallelism, sources=given)
        return plan(self.queries, Statistics(), options)

    def batch(self, **rows: Sequence[Row]) -> ProbeReport:
        """Let rows arrive, by stream."""
        plan, number, storage = self.plan, len(self.reports), Storage.open(str(self.directory))
        delta = [bucket for name, each in rows.items() for bucket in self._ingested(plan, name, table_of(each), number)]
        self.buckets += delta
        context = ProbeContext(
            plan=plan,
            batch=number,
            storage=storage,
            buckets=by_store(tuple(self.buckets)),
            wanted={name: delivery.columns for name, delivery in self.deliveries.items()},
        )
        task = as_one(tuple(probe_tasks(plan, range(len(plan.trees)), tuple(delta), Spread(slots=1))))
        self.reports.append(Traversal(context, self.deliveries, f"{number}").run_local(task))
        return self.reports[-1]

    def _ingested(self, plan: Plan, name: str, rows: pa.Table, batch: int) -> tuple[Bucket, ...]:
        spec = ingest_spec(sources(self.within_s)[name], tuple(each for each in plan.stores if each.source == name))
        load(connection(), {name: rows})
        texts = (to_duckdb(sql, weak_hash=self.weak_hash) for _, sql in spec.projection)
        chosen = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
        table = connection().sql(f'SELECT {chosen} FROM "{name}"').to_arrow_table()
        table = table.rename_columns([at for at, _ in spec.projection])
        storage = Storage.open(str(self.directory))
        return ingest(
            table.to_batches(), spec, IngestContext(storage=storage, batch=batch, late_before_us=None, attempt="0")
        ).buckets

    def matches(self) -> int:
        """Return how many matches all steps have found."""
        return sum(count for report in self.reports for _, count in report.matches)

    def groups(self, query: str) -> set[Row]:
        """Return all partial aggregates of a query, put together: event time in seconds first."""
        how, time = self.deliveries[query].fold, self.deliveries[query].time.name
        assert how is not None
        results = (each for report in self.reports for each in report.results if each.query == query)
        files = [file for each in results for file in each.gathered]
        parts = list(read_gathered(Storage.open(str(self.directory)), files))
        if not parts:
            return set()
        rows = fold_again(pa.concat_batches(parts), how, time)
        seconds = (rows.column(time).cast(pa.int64()).to_numpy() // SECOND).tolist()
        others = [rows.column(name).to_pylist() for name in rows.schema.names if name != time]
        return set(zip(seconds, *others, strict=True))


__all__ = ["SECOND", "TYPES", "CountingRun", "Row", "sources", "table_of"]
