"""`python -m benchmarks counting`: counts and sums of a join, with pairs and without, and of queries that share panes.

One thread, no Spark, the processor's time of probing alone. Two streams of rows with few keys meet batch by batch; a
query counts and adds up what each key has joined, by windows of time. Told apart are how many partners a row has, which
is the more the fewer keys there are, and how many queries group the same join by other windows. What was kept is put
together and compared with DuckDB's answer before its time counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import count, write_json
from benchmarks.surroundings import surroundings
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.partial_aggregates import fold_again
from plait.operators.traversal.scheduling import Spread, by_store, probe_tasks
from plait.operators.traversal.traverse import Traversal
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.query.model import Column, ColumnRef, Query, SinkSpec, Stream, with_countable
from plait.query.types import resolve_types
from plait.sinks.delivery import Gathering
from plait.sql.select.binder import bind_query
from plait.sql.select.folding import folding_of
from plait.sql.select.why_pairs import countable
from plait.state.gathered import folder_of, read_gathered
from plait.state.model import Bucket
from plait.state.storage import Storage
from plait.stats.model import Statistics

KEYS = (5_000, 500, 50)
"""Few partners, a hundred or so with 200,000 rows, and many."""
SECONDS, WITHIN_S = 1_000, 250
FASTER, APART, SHARED = 10.0, 1.5, 1.5
"""How much faster counting has to be than pairs where a row has a hundred partners; how much dearer it may be where it
has many than where it has few; and how much dearer ten queries may be than one."""
_TYPES = {"ts": "timestamp", "k": "bigint", "x": "bigint"}
_WINDOWS = (
    "'1 minute'",
    "'2 minutes', '1 minute'",
    "'2 minutes', '30 seconds'",
    "'3 minutes', '1 minute'",
    "'5 minutes', '1 minute'",
    "'5 minutes', '30 seconds'",
    "'90 seconds', '30 seconds'",
    "'4 minutes', '2 minutes'",
    "'10 minutes', '5 minutes'",
    "'10 minutes', '1 minute'",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What `queries` queries took, in seconds of the processor, and what they kept. `partners`: that a row finds as it
    arrives, on average; `results`: of the join.
    """

    way: str
    queries: int
    keys: int
    partners: float
    results: int
    seconds: float
    kept_rows: int


def main(arguments: list[str]) -> int:
    """Run the benchmark; the exit status is 1 if a target is missed."""
    made = parser("counting", "Counts and sums of a join, with pairs and without, and of queries that share panes.")
    made.add_argument("--rows", type=positive, default=200_000, help="rows of each stream")
    made.add_argument("--batches", type=positive, default=10, help="batches")
    made.add_argument("--repeat", type=positive, default=3, help="runs of each, of which the median counts")
    options = made.parse_args(arguments)
    console, outcomes = Console(), []
    asked = [(way, 1, keys) for keys in KEYS[:2] for way in ("pairs", "counted")]
    asked += [("counted", 1, KEYS[2]), ("counted", 10, KEYS[1])]
    for way, queries, keys in asked:
        rows = {name: _rows(options.rows, keys, options.seed + place) for place, name in enumerate("rs")}
        outcomes.append(_outcome(rows, way, queries, keys, options.batches, options.repeat))
        console.print(f"  {way}, {queries} with {keys} keys: {outcomes[-1].seconds:.2f} s", highlight=False)
    if options.json is not None:
        write_json(options.json, {"benchmark": "counting", **surroundings(), "outcomes": list(map(asdict, outcomes))})
    return _show(console, outcomes)


def _rows(number: int, keys: int, seed: int) -> pa.Table:
    """Return rows in order of time, over `SECONDS`."""
    random = np.random.default_rng(seed)
    ts = np.sort(random.integers(0, SECONDS * 1_000_000, number))
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "k": random.integers(0, keys, number),
            "x": random.integers(-1_000, 1_000, number),
        }
    )


def _outcome(rows: Mapping[str, pa.Table], way: str, queries: int, keys: int, batches: int, repeat: int) -> Outcome:
    runs = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(prefix="plait-counting-") as directory:
            run = _Run(Path(directory), WITHIN_S * 1_000_000, _WINDOWS[:queries], counts=way == "counted")
            for number in range(batches):
                run.batch({name: _slice(table, number, batches) for name, table in rows.items()})
            run.check(rows)
            runs.append(run)
    return Outcome(
        way=way,
        queries=queries,
        keys=keys,
        partners=runs[0].results / sum(table.num_rows for table in rows.values()),
        results=runs[0].results,
        seconds=median(run.seconds for run in runs),
        kept_rows=runs[0].kept_rows,
    )


def _slice(table: pa.Table, number: int, batches: int) -> pa.Table:
    low, high = (table.num_rows * at // batches for at in (number, number + 1))
    return table.slice(low, high - low)


class _Run:
    """Queries by `windows` over the join of two streams whose rows are at most `within_us` apart."""

    def __init__(self, directory: Path, within_us: int, windows: tuple[str, ...], *, counts: bool) -> None:
        columns = tuple(Column(name=name, type=type_) for name, type_ in _TYPES.items())
        self._streams = {name: Stream(name=name, time="ts", schema=columns, window_us=within_us) for name in "rs"}
        self._storage, self._within_us = Storage.open(str(directory)), within_us
        self._deliveries: dict[str, Gathering] = {}
        queries = tuple(self._bound(f"q{place}", window, counts=counts) for place, window in enumerate(windows))
        self._plan = _planned(queries, self._streams)
        self._buckets: list[Bucket] = []
        self._reports: list[ProbeReport] = []
        self.seconds = 0.0

    def _bound(self, name: str, window: str, *, counts: bool) -> Query:
        select = (
            "SELECT window.start, r.k, count(*) AS n, sum(s.x) AS x FROM r JOIN s ON r.k = s.k "
            f"GROUP BY window(r.ts, {window}), r.k"
        )
        query = bind_query(name=name, select=select, sink=SinkSpec(format="noop"), sources=self._streams)
        query = resolve_types(query, lambda operand: _TYPES[operand.expression.columns[0]])
        joined = tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))
        types = {ref: _TYPES[ref.column] for ref in joined}
        assert query.aggregation is not None
        folding = folding_of(query.aggregation, types)
        assert folding is not None
        time_column = ColumnRef(relation="r", column="ts")
        self._deliveries[name] = Gathering(
            query=name, columns=joined, time=time_column, folder=folder_of(name), fold=folding.fold
        )
        return with_countable(query, countable(query, folding.fold, types)) if counts else query

    def batch(self, rows: Mapping[str, pa.Table]) -> None:
        """Let rows arrive; what probing takes is counted."""
        number = len(self._reports)
        delta = [bucket for name, table in rows.items() for bucket in self._ingested(name, table, number)]
        self._buckets += delta
        context = ProbeContext(
            plan=self._plan,
            batch=number,
            storage=self._storage,
            buckets=by_store(tuple(self._buckets)),
            wanted={name: delivery.columns for name, delivery in self._deliveries.items()},
        )
        trees = range(len(self._plan.trees))
        for task in probe_tasks(self._plan, trees, tuple(delta), Spread(slots=1)):
            traversal = Traversal(context, self._deliveries, f"{number}-{task.number}")
            began = time.thread_time()
            self._reports.append(traversal.run_local(task))
            self.seconds += time.thread_time() - began

    def _ingested(self, name: str, rows: pa.Table, batch: int) -> tuple[Bucket, ...]:
        spec = ingest_spec(self._streams[name], tuple(store for store in self._plan.stores if store.source == name))
        connection = duckdb.connect()
        connection.register("rows", rows)
        # Only columns and event times are asked for here, which Spark and DuckDB write nearly alike.
        texts = (sql.replace("`", '"').replace("unix_micros", "epoch_us") for _, sql in spec.projection)
        chosen = ", ".join(f'{text} AS "c{place}"' for place, text in enumerate(texts))
        table = connection.sql(f"SELECT {chosen} FROM rows").to_arrow_table()
        table = table.rename_columns([at for at, _ in spec.projection])
        context = IngestContext(storage=self._storage, batch=batch, late_before_us=None, attempt="0")
        return ingest(table.to_batches(), spec, context).buckets

    @property
    def results(self) -> int:
        """How many results the join has had."""
        return sum(found for report in self._reports for _, found in report.matches)

    @property
    def kept_rows(self) -> int:
        """How many rows of partial aggregates wait, in files that are each counted once."""
        files = {file.path: file.rows for report in self._reports for each in report.results for file in each.gathered}
        return sum(files.values())

    def check(self, rows: Mapping[str, pa.Table]) -> None:
        """Raise AssertionError unless what was kept comes to what DuckDB has for it, by key."""
        connection = duckdb.connect()
        for name, table in rows.items():
            connection.register(name, table)
        near = f"abs(epoch_us(r.ts) - epoch_us(s.ts)) <= {self._within_us}"
        sql = f"SELECT r.k, count(*), CAST(sum(s.x) AS BIGINT) FROM r JOIN s ON r.k = s.k AND {near} GROUP BY r.k"
        wanted = sorted(connection.sql(sql).fetchall())
        for name, delivery in self._deliveries.items():
            assert delivery.fold is not None
            results = (each for report in self._reports for each in report.results if each.query == name)
            parts = list(read_gathered(self._storage, [file for each in results for file in each.gathered]))
            kept = fold_again(pa.concat_batches(parts), delivery.fold, delivery.time.name)
            connection.register("kept", pa.Table.from_batches([kept]))
            sql = 'SELECT "r.k", CAST(sum("#p0") AS BIGINT), CAST(sum("#p1") AS BIGINT) FROM kept GROUP BY "r.k"'
            if sorted(connection.sql(sql).fetchall()) != wanted:
                raise AssertionError(f"query {name} has kept something else than DuckDB finds")


def _planned(queries: tuple[Query, ...], streams: Mapping[str, Stream]) -> Plan:
    options = PlanOptions(strategy="greedy", parallelism=1, sources=tuple(streams.values()))
    return plan(queries, Statistics(), options)


def _show(console: Console, outcomes: list[Outcome]) -> int:
    table = Table(title="Count and sum by key of a join")
    for name in ("way", "queries", "keys", "partners", "results", "rows kept", "processor"):
        table.add_column(name, justify="left" if name == "way" else "right", no_wrap=True)
    for each in outcomes:
        figures = (each.queries, each.keys, round(each.partners), each.results, each.kept_rows)
        table.add_row(each.way, *map(count, figures), f"{each.seconds:.2f} s")
    console.print(table)
    taken = {(each.way, each.queries, each.keys): each.seconds for each in outcomes}
    few, one, many = (taken["counted", 1, keys] for keys in KEYS)
    faster, apart, ten = taken["pairs", 1, KEYS[1]] / one, many / few, taken["counted", 10, KEYS[1]] / one
    console.print(f"counted {faster:.1f} times as fast as with pairs (at least {FASTER:g})", highlight=False)
    console.print(f"many partners {apart:.2f} times as dear as few (at most {APART:g})", highlight=False)
    console.print(f"ten queries {ten:.2f} times as dear as one (at most {SHARED:g})", highlight=False)
    return 0 if faster >= FASTER and apart <= APART and ten <= SHARED else 1


__all__ = ["main"]
