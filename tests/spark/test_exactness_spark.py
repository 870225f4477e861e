"""Random cases through the engine and real Spark: files in, results out, equal to what DuckDB computes.

Every stream has one file a batch, possibly empty, so batches are those of the case. What only Spark can get wrong is
here: hashes of keys, casts to common types, selections, projections, the shuffle, recovery from Spark's own checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import plait
from plait.optimizer.strategies import STRATEGIES
from plait.runtime.batch import prober
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.throttle import Throttle
from plait.sql import load_script
from tests.oracle.compare import difference, multiset, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected, late_masks
from tests.property import found
from tests.property.case import Case, CaseSource, describe, is_text_before, script
from tests.property.cases import random_case
from tests.property.registered import PREDICATES
from tests.property.values import CALENDAR, KINDS

NAMES = sorted(STRATEGIES)
pytestmark = pytest.mark.spark

CASES = int(os.environ.get("PLAIT_SPARK_CASES", "24"))
PER_TEST = 3
MOST_BATCHES = 4
FIRST_SEED = 900_000
_ENDLESS_US = 10**17


def suitable_cases(first: int, *, thetas: bool = False) -> Iterator[tuple[Case, dict[str, pa.Table]]]:
    """Yield short cases that have output, without the streams that no query reads: the engine skips these."""
    seed = first
    while True:
        seed += 1
        case = random_case(seed, late=seed % 5 == 0, thetas=thetas)
        read = {name for query in case.queries for _, name in query.relations}
        case = replace(case, sources=tuple(source for source in case.sources if source.name in read))
        try:
            wanted = expected(case)
        except UnsuitableCaseError:
            continue
        if case.batches <= MOST_BATCHES and sum(table.num_rows for table in wanted.values()) > 10:
            yield case, wanted


@pytest.mark.parametrize("group", range(-(-CASES // PER_TEST)))
def test_the_engine_outputs_what_duckdb_computes(group: int, spark: SparkSession, tmp_path: Path) -> None:
    cases = suitable_cases(FIRST_SEED + 1000 * group)
    for number in range(PER_TEST):
        case, wanted = next(cases)
        strategy, is_made = NAMES[(group + number) % len(NAMES)], number % 2 == 1
        outcome = _Run(spark, case, tmp_path / str(number), strategy=strategy, is_made=is_made)
        outcome.run()
        for query in case.queries:
            problem = difference(outcome.rows[query.name], table_rows(wanted[query.name]))
            assert problem is None, f"{query.name}: {problem}\n{describe(case)}"
        assert outcome.late == sum(sum(mask) for mask in late_masks(case).values()), describe(case)


@pytest.mark.parametrize("group", range(max(CASES // 12, 1)))
def test_the_engine_outputs_what_duckdb_computes_on_other_predicates_than_equalities(
    group: int, spark: SparkSession, tmp_path: Path
) -> None:
    cases = suitable_cases(FIRST_SEED + 1000 * group, thetas=True)
    for number in range(PER_TEST):
        case, wanted = next(cases)
        outcome = _Run(spark, case, tmp_path / str(number), strategy=NAMES[(group + number) % len(NAMES)])
        outcome.run()
        for query in case.queries:
            problem = difference(outcome.rows[query.name], table_rows(wanted[query.name]))
            assert problem is None, f"{query.name}: {problem}\n{describe(case)}"


@pytest.mark.parametrize("seed", [904_000, 905_000])
def test_nothing_tells_whether_the_driver_or_tasks_have_probed(
    seed: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, _ = next(suitable_cases(seed))
    case = case.with_options(routing="local", restarts=frozenset())
    found = []
    # How much a batch takes to fill intermediate stores is a matter of time, which here and there differs.
    monkeypatch.setattr(Throttle, "rows", lambda _: 1 << 30)
    for is_here in (True, False):
        monkeypatch.setattr(prober, "is_quicker_here", lambda *_, is_here=is_here: is_here)
        outcome = _Run(spark, case, tmp_path / str(is_here), strategy="ilp")
        outcome.run()
        counts = [(each.probe_tuples, each.results, each.sources, each.flows) for each in outcome.heard]
        found.append((counts, {name: multiset(rows) for name, rows in outcome.rows.items()}))
    assert found[0] == found[1], describe(case)


class _Run:
    """One case in a directory, over one or two runs of the engine on the same checkpoint. `is_made`: what is read is
    not what queries see, AS SELECT makes it of that.
    """

    def __init__(
        self, spark: SparkSession, case: Case, directory: Path, strategy: str, *, is_made: bool = False
    ) -> None:
        self.spark, self.case, self.directory, self.strategy = spark, case, directory, strategy
        self._is_made = is_made
        self.rows: dict[str, list[tuple[Any, ...]]] = {query.name: [] for query in case.queries}
        self.late = 0
        self.heard: list[BatchEvent] = []

    def run(self) -> None:
        """Run all queries to the end, with one restart if the case has any."""
        names = tuple(self.rows)
        self.grow(names, names, min(self.case.options.restarts, default=self.case.batches))

    def grow(self, first: tuple[str, ...], second: tuple[str, ...], cut: int) -> None:
        """Run some queries on the batches before `cut`, then others on the rest."""
        self._write_tables()
        self._write_batches(0, cut)
        self._run_engine(first)
        if cut < self.case.batches:
            self._write_batches(cut, self.case.batches)
            self._run_engine(second)

    def _write_tables(self) -> None:
        for source in self.case.sources:
            folder = self.directory / source.name
            folder.mkdir(parents=True)
            if source.is_table:
                self._write(source, source.rows, folder / "all.parquet")

    def _write_batches(self, first: int, last: int) -> None:
        for source in self.case.sources:
            for batch in range(first, last) if not source.is_table else ():
                start, rows = source.batch(batch)
                path = self.directory / source.name / f"{batch:03d}.parquet"
                self._write(source, source.rows.slice(start, rows), path)
                os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))  # Spark takes the oldest file first

    def _write(self, source: CaseSource, rows: pa.Table, path: Path) -> None:
        table = _with_zone(rows)
        pq.write_table(_delivered(source, table) if self._is_made else table, path)

    def _run_engine(self, names: tuple[str, ...]) -> None:
        options = self.case.options
        engine = plait.Engine(
            self.spark,
            checkpoint=str(self.directory / "checkpoint"),
            strategy=self.strategy,
            parallelism=options.parallelism,
            routing=options.routing,
            listener=self.heard.append,
        )
        engine.set_option("plait.capacity", str(max(options.block_rows, 16)))
        live = replace(self.case, queries=tuple(query for query in self.case.queries if query.name in names))
        text = script(live, sink="memory", stream_options="maxFilesPerTrigger '1'", is_made=self._is_made)
        for name, function in PREDICATES.items():
            engine.predicate(name, function)
        engine.load(load_script(text, file="case.sql", base=str(self.directory), predicates=PREDICATES))
        summary = engine.run_available()
        self.late += summary.late
        for name in names:
            self.rows[name] += table_rows(engine.results(name))


def _delivered(source: CaseSource, rows: pa.Table) -> pa.Table:
    """Return what is read where these rows are to be made of it, and half of them again, to be dropped."""
    columns = {}
    for number, column in enumerate(source.columns):
        values = rows.column(column.name)
        columns[f"in{number}"] = values.cast(pa.string()) if is_text_before(column) else values
    table = pa.table(columns)
    again = table.slice(0, table.num_rows // 2)
    marked = (
        (part, pa.array([is_dropped] * part.num_rows, pa.bool_()))
        for part, is_dropped in ((table, False), (again, True))
    )
    return pa.concat_tables([part.append_column("dropped", mark) for part, mark in marked])


def _with_zone(table: pa.Table) -> pa.Table:
    """Return the table with its times as instants, which Spark reads as TIMESTAMP, not TIMESTAMP_NTZ."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            instants = table.column(number).cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(number, field.name, instants)
    return table


@pytest.mark.parametrize("seed", [901_000, 902_000, 903_000])
def test_a_query_added_on_a_restart_sees_all_that_is_kept_and_a_dropped_one_ends(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    case, first, second, cut = _growing_case(seed)
    outcome = _Run(spark, case, tmp_path, strategy="greedy")
    outcome.grow(first, second, cut)
    before = expected(_until(case, cut))
    for name, table in expected(case).items():
        wanted = multiset(table_rows(table))
        earlier = multiset(table_rows(before[name]))
        wanted = earlier if name not in second else wanted if name in first else wanted - earlier
        problem = difference(outcome.rows[name], wanted.elements())
        assert problem is None, f"{name} (first {first}, second {second}, cut {cut}): {problem}\n{describe(case)}"


def _growing_case(seed: int) -> tuple[Case, tuple[str, ...], tuple[str, ...], int]:
    """Return a case that keeps everything, the queries of a first and a second run, and the second run's first batch.

    Nothing is late however few streams are read, because no delay ends.
    """
    for case, wanted in suitable_cases(seed):
        names = [query.name for query in case.queries]
        sources = tuple(source if source.is_table else _endless(source) for source in case.sources)
        if case.batches > 1 and len(names) > 2 and wanted[names[1]].num_rows > 10:
            return replace(case, sources=sources), (names[0], *names[2:]), tuple(names[:2]), case.batches - 1
    raise AssertionError("no such case")


def _endless(stream: CaseSource) -> CaseSource:
    return replace(stream, window_us=None, keep_all=True, delay_us=_ENDLESS_US)


def _until(case: Case, batch: int) -> Case:
    """Return the case with the batches before `batch` only."""
    sources = []
    for source in case.sources:
        rows = sum(1 for arrived in source.batch_of if arrived < batch)
        cut = replace(source, rows=source.rows.slice(0, rows), batch_of=source.batch_of[:rows])
        sources.append(source if source.is_table else cut)
    return replace(case, sources=tuple(sources), batches=batch)


KEY_PAIRS = (
    *("f = f", "r = r", "f = r", "f = l", "r = l", "d = f", "e = f"),
    *("d = d", "e = e", "d = e", "l = d", "l = e", "i = d", "x = e", "x = f"),
    *("i = l", "t = l", "x = x", "x = i", "s = s", "v = v", "b = b", "a = a", "m = m", "a = m"),
    *("age = age", "months = months", "age = months", "span = span", "hours = span"),
)


def test_keys_of_every_type_meet_as_they_do_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    """Signed zeros, NaN, extremes, wide integers rounded to doubles, empty strings: each value of each type once."""
    columns = ", ".join(f"{kind.name} {kind.spark}" for kind in KINDS)
    rows = [(number // 12, number, *(kind.value(number) for kind in KINDS)) for number in range(24)]
    rows.append((2, 24, *(None for _ in KINDS)))
    left, right = found.stream("l", columns, *rows), found.stream("r", columns, *rows[::-1])
    pairs = [pair.split(" = ") for pair in KEY_PAIRS]
    queries = []
    for a, b in pairs:
        keys = "" if {a, b} & CALENDAR else f"l.{a} AS x, r.{b} AS y, "
        select = f"SELECT {keys}l.i AS n, r.i AS m FROM l JOIN r ON l.{a} = r.{b}"
        queries.append(found.query(select, ("l", "l"), ("r", "r")))
    queries.append(
        found.query("SELECT l.i, r.i FROM l, r WHERE l.f = r.f AND l.s = r.s AND l.e = r.e", ("l", "l"), ("r", "r"))
    )
    tried = found.case((left, right), *queries, parallelism=2)
    outcome = _Run(spark, tried, tmp_path, strategy="greedy")
    outcome.run()
    for asked, (name, table) in zip(queries, expected(tried).items(), strict=True):
        problem = difference(outcome.rows[name], table_rows(table))
        assert problem is None, f"{asked.sql}: {problem}"
        assert table.num_rows > 0, asked.sql
