"""`python -m benchmarks theta`: what a theta join costs, in the operators alone, against obvious ways to compute it.

One thread, no Spark. A batch of probes meets a store that is already there; what is timed is the walk of the probe tree
with its matches gathered. Compared are, on the same data in the same run:

- a band join by sorted index with a blocked nested loop over the same rows, and small batches against a large store;
- an equality with a range on top with the equality alone;
- any other predicate with DuckDB joining the same two blocks at once.

Every answer is compared with DuckDB's before its time counts.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

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
from plait.operators.traversal.scheduling import Spread, by_store, probe_tasks
from plait.operators.traversal.traverse import Traversal
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.query.model import Column, Operand, Query, SinkSpec, Stream
from plait.query.types import resolve_types
from plait.sinks.delivery import Discarded
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.select.binder import bind_query
from plait.state.model import Bucket
from plait.state.storage import Storage
from plait.stats.model import Statistics

_WIDTH = 110
_COLUMNS = {"ts": "timestamp", "k": "bigint", "x": "bigint", "f": "double", "name": "string"}
_STREAMS = {
    name: Stream(name=name, time="ts", schema=tuple(Column(name=each, type=kind) for each, kind in _COLUMNS.items()))
    for name in ("probe", "stored")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`condition` between ``p`` (probes) and ``s`` (stored), over so many rows of each, against `reference`.

    `reference` is another condition run the same way, or ``duckdb`` or ``nested loop``. `limit`: the time may be this
    many times that of the reference at most.
    """

    name: str
    condition: str
    probes: int
    stored: int
    reference: str
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Medians in seconds, and the results both found."""

    case: Case
    seconds: float
    reference_seconds: float | None
    results: int

    @property
    def ratio(self) -> float | None:
        """The time against that of the reference."""
        return None if self.reference_seconds is None else self.seconds / self.reference_seconds

    @property
    def is_within_limit(self) -> bool:
        """Whether it is as fast as it has to be; without a reference the limit is in seconds."""
        return (self.seconds if self.ratio is None else self.ratio) <= self.case.limit


def cases(scale: float) -> tuple[Case, ...]:
    """Return the cases, their row counts multiplied by `scale`."""

    def rows(number: int) -> int:
        return max(int(number * scale), 1)

    band, equal = "abs(p.x - s.x) < 500", "p.k = s.k"
    return (
        Case(
            name="band", condition=band, probes=rows(10_000), stored=rows(100_000), reference="nested loop", limit=0.05
        ),
        Case(
            name="band, double",
            condition="abs(p.f - s.f) < 500.0",
            probes=rows(10_000),
            stored=rows(100_000),
            reference="nested loop",
            limit=0.05,
        ),
        Case(
            name="large store",
            condition="s.x BETWEEN p.x - 1 AND p.x + 1",
            probes=rows(10_000),
            stored=rows(5_000_000),
            reference="",
            limit=1.0,
        ),
        Case(
            name="equal, range",
            condition=f"{equal} AND s.x > p.x - 250000 AND s.x < p.x + 250000",
            probes=rows(200_000),
            stored=rows(2_000_000),
            reference=equal,
            limit=1.5,
        ),
        Case(
            name="distance",
            condition="sqrt((p.f - s.f) * (p.f - s.f) + (p.x - s.x) * (p.x - s.x)) < 2000.0",
            probes=rows(2_000),
            stored=rows(50_000),
            reference="duckdb",
            limit=3.0,
        ),
        Case(
            name="text",
            condition="p.name LIKE concat('%', s.name)",
            probes=rows(2_000),
            stored=rows(50_000),
            reference="duckdb",
            limit=3.0,
        ),
        Case(
            name="either key",
            condition="p.k = s.k OR p.x = s.x",
            probes=rows(2_000),
            stored=rows(50_000),
            reference="duckdb",
            limit=3.0,
        ),
    )


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if every case is within its limit, else 1."""
    options = _arguments(arguments)
    console = Console()
    where = surroundings()
    outcomes = []
    options.dir.mkdir(parents=True, exist_ok=True)
    for case in cases(options.scale):
        with tempfile.TemporaryDirectory(dir=options.dir) as directory:
            outcomes.append(_run(case, Path(directory), options.repeat, options.seed))
        console.print(f"  {case.name}: {outcomes[-1].seconds:.3f} s", highlight=False)
    if options.json is not None:
        write_json(options.json, _document(options, where, outcomes))
    Console(width=max(console.width, _WIDTH)).print(_table(outcomes))
    return 0 if all(outcome.is_within_limit for outcome in outcomes) else 1


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("theta", "What theta joins cost in the operators, against the obvious ways to compute them.")
    made.add_argument("--scale", type=float, default=1.0, help="multiplies the row counts of all cases")
    made.add_argument("--repeat", type=positive, default=5, help="timed runs of each side, in alternation")
    return made.parse_args(arguments)


def _run(case: Case, directory: Path, repeat: int, seed: int) -> Outcome:
    random = np.random.default_rng(seed)
    data = {"probe": _rows(case.probes, random, 10), "stored": _rows(case.stored, random, 0)}
    ours = _Walk(case.condition, data, directory / "ours")
    results = ours.walk()
    expected = _by_duckdb(case.condition, data)
    if results != expected:
        raise AssertionError(f"case '{case.name}' found {results:,} results, DuckDB {expected:,}")
    reference = _reference(case, data, directory)
    seconds: list[float] = []
    reference_seconds: list[float] = []
    for _ in range(repeat):
        seconds.append(_timed(ours.walk))
        if reference is not None:
            reference_seconds.append(_timed(reference))
    return Outcome(
        case=case,
        seconds=median(seconds),
        reference_seconds=median(reference_seconds) if reference_seconds else None,
        results=results,
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _rows(number: int, random: np.random.Generator, offset_s: int) -> pa.Table:
    """Return rows over ten seconds: keys with ten rows each, x and f uniform over a domain of a million."""
    ts = np.sort(random.integers(0, 10_000_000, number)) + offset_s * 1_000_000
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "k": random.integers(0, max(number // 10, 1), number),
            "x": random.integers(0, 1_000_000, number),
            "f": random.uniform(0, 1_000_000, number),
            "name": pa.array(np.char.mod("%05d", random.integers(0, 100_000, number))),
        }
    )


class _Walk:
    """A store of one side, and a batch of the other that walks its probe tree."""

    def __init__(self, condition: str, data: dict[str, pa.Table], directory: Path) -> None:
        self._plan, query = _planned(condition)
        self._storage = Storage.open(str(directory))
        wanted = {"q": tuple(ref for column in query.output for ref in column.expression.columns)}
        stored = self._ingested("stored", data["stored"], 0)
        self._delta = self._ingested("probe", data["probe"], 1)
        self._context = ProbeContext(
            plan=self._plan,
            batch=1,
            storage=self._storage,
            buckets=by_store((*stored, *self._delta)),
            wanted=wanted,
        )
        self._delivery = {"q": Discarded(query="q", columns=wanted["q"])}
        shutil.rmtree(directory / "results", ignore_errors=True)

    def _ingested(self, name: str, rows: pa.Table, batch: int) -> tuple[Bucket, ...]:
        spec = ingest_spec(_STREAMS[name], tuple(store for store in self._plan.stores if store.source == name))
        con = duckdb.connect()
        con.register("rows", rows)
        # Only columns and casts of them are asked for here, and these Spark and DuckDB write alike.
        chosen = ", ".join(
            f'{sql.replace("`", chr(34))} AS "c{place}"' for place, (_, sql) in enumerate(spec.projection)
        )
        table = con.sql(f"SELECT {chosen} FROM rows").to_arrow_table().rename_columns([at for at, _ in spec.projection])
        context = IngestContext(storage=self._storage, batch=batch, late_before_us=None, attempt="0")
        return ingest(table.to_batches(), spec, context).buckets

    def walk(self) -> int:
        """Let the batch probe; return the number of results."""
        trees = range(len(self._plan.trees))
        traversal = Traversal(self._context, self._delivery, "0")
        found = 0
        for task in probe_tasks(self._plan, trees, self._delta, Spread(slots=1)):
            found += sum(file.rows for file in traversal.run_local(task).results)
        return found


def _planned(condition: str) -> tuple[Plan, Query]:
    def type_of(operand: Operand) -> str:
        names = operand.expression.columns
        return "string" if "concat" in operand.expression.sql else _COLUMNS[names[0]]

    query = bind_query(
        name="q",
        select=f"SELECT p.ts AS pts, p.k AS pk, s.ts AS sts, s.k AS sk FROM probe p JOIN stored s ON {condition}",
        sink=SinkSpec(format="noop"),
        sources=_STREAMS,
    )
    query = resolve_residuals(resolve_types(query, type_of), type_of)
    options = PlanOptions(strategy="greedy", parallelism=1, sources=tuple(_STREAMS.values()))
    return plan((query,), Statistics(), options), query


def _reference(case: Case, data: dict[str, pa.Table], directory: Path) -> Callable[[], object] | None:
    match case.reference:
        case "":
            return None
        case "duckdb" | "nested loop":
            return _DuckDB(case.condition, data, blocked=case.reference == "nested loop").run
        case condition:
            return _Walk(condition, data, directory / "reference").walk


class _DuckDB:
    """The same join in one thread of DuckDB, results gathered. `blocked`: without anything to sort or hash by."""

    def __init__(self, condition: str, data: dict[str, pa.Table], *, blocked: bool) -> None:
        self._connection = _loaded(data)
        hidden = f"(({condition}) OR p.ts IS NULL)" if blocked else condition
        self._query = f"SELECT p.ts, p.k, s.ts AS sts, s.k AS sk FROM probe p JOIN stored s ON {hidden}"

    def run(self) -> pa.Table:
        return self._connection.sql(self._query).to_arrow_table()


def _loaded(data: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in data.items():
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    return connection


def _by_duckdb(condition: str, data: dict[str, pa.Table]) -> int:
    query = f"SELECT count(*) FROM probe p JOIN stored s ON {condition}"
    return int(_loaded(data).execute(query).fetchall()[0][0])


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(title="Theta joins")
    for name in ("case", "rows", "results", "time", "against", "its time", "ratio", "limit"):
        table.add_column(name, justify="left" if name in ("case", "against") else "right", no_wrap=True)
    for outcome in outcomes:
        case, ratio = outcome.case, outcome.ratio
        table.add_row(
            case.name,
            f"{count(case.probes)} × {count(case.stored)}",
            count(outcome.results),
            f"{outcome.seconds * 1000:,.0f} ms",
            case.reference or "-",
            "-" if outcome.reference_seconds is None else f"{outcome.reference_seconds * 1000:,.0f} ms",
            "-" if ratio is None else f"{ratio:.3f}",
            (f"{case.limit:g} s" if ratio is None else f"{case.limit:g}") + ("" if outcome.is_within_limit else " !"),
        )
    return table


def _document(options: argparse.Namespace, where: Any, outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "benchmark": "theta",
        **where,
        "settings": {"scale": options.scale, "repeat": options.repeat, "seed": options.seed},
        "outcomes": [{**asdict(outcome), "ratio": outcome.ratio} for outcome in outcomes],
    }
