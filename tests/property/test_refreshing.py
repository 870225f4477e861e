"""Tables that are read again between batches: every result has the rows that were in force when the newest member of
its streams arrived.

What has to come in a batch is what a batch engine finds more with the streams up to that batch than with those before
it, both with the tables as they were then.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import UnsupportedQueryError
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.refreshing import refreshed
from plait.query.model import Query, Source, Stream
from plait.sql import check_script, load_script
from plait.state.buckets import close_others
from plait.state.model import TABLE_BATCH, Manifest
from plait.state.storage import Storage
from tests.oracle.compare import multiset, normal, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected, load
from tests.oracle.nested_loop import TooManyCombinationsError
from tests.oracle.outer_loop import OuterLoop
from tests.oracle.translate import connection
from tests.property.case import Case, CaseSource, describe
from tests.property.cases import random_case
from tests.property.direct import DirectRun
from tests.property.front_end import from_text
from tests.property.outer_cases import OuterQuery, outer_case
from tests.property.standin import frames
from tests.property.standin.session import Session

CASES = int(os.environ.get("PLAIT_CASES", "800")) // 8
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 25
STRATEGIES = ("ilp", "dppick", "random", "chain", "left-deep", "adhoc", "greedy", "independent")

Found = Counter[tuple[int, str, tuple[Any, ...]]]
"""Results by batch and query."""


@dataclass(frozen=True, kw_only=True)
class Versions:
    """The rows of tables from some batches on."""

    rows: Mapping[str, Mapping[int, pa.Table]]

    def at(self, source: CaseSource, batch: int) -> CaseSource:
        """Return a table as it is in a batch; a stream as it is."""
        known = [number for number in self.rows.get(source.name, {}) if number <= batch]
        return replace(source, rows=self.rows[source.name][max(known)]) if known else source


def drawn(case: Case) -> Versions:
    """Draw other rows for each table now and then: some it has had, some of them more than once."""
    rng, rows = random.Random(f"{case.seed} versions"), dict[str, dict[int, pa.Table]]()
    for table in (source for source in case.sources if source.is_table):
        for batch in (batch for batch in range(case.batches) if rng.random() < 0.6):
            count = table.rows.num_rows
            chosen = [rng.randrange(count) for _ in range(rng.randrange(count + 2))] if count else []
            rows.setdefault(table.name, {})[batch] = table.rows.take(pa.array(chosen, pa.int64()))
    return Versions(rows=rows)


class RefreshingRun(DirectRun):
    """A run in which tables have other rows from some batches on."""

    versions: Versions

    def _attempt(
        self, manifest: Manifest, batch: int
    ) -> tuple[Manifest, tuple[IngestReport, ...], tuple[ProbeReport, ...]]:
        return super()._attempt(self._with_tables(manifest, batch), batch)

    def _with_tables(self, manifest: Manifest, batch: int) -> Manifest:
        for source, spec in self._specs(self.governing.plan):
            known = None if isinstance(source, Stream) else self.versions.rows.get(source.name, {}).get(batch)
            if known is None:
                continue
            load(connection(), {source.name: known})
            self._inputs = {key: rows for key, rows in self._inputs.items() if key[0] != source.name}
            reports = list(self._ingest(spec, 0, known.num_rows, TABLE_BATCH, None))
            buckets = [bucket for report in reports for bucket in report.buckets]
            found = refreshed(self.governing.plan, manifest, [store.id for store, _ in spec.stores], buckets)
            manifest, governing = found.manifest, self.governing
            governing.is_caught_up &= not found.given_up
            governing.complete = {
                name: store for name, store in governing.complete.items() if name not in found.given_up
            }
        return manifest


def run(case: Case, versions: Versions, sources: tuple[Source, ...], queries: tuple[Query, ...]) -> Found:
    """Return what comes of a case."""
    directory = tempfile.mkdtemp(prefix="plait-refreshing-")
    try:
        going = RefreshingRun(case, sources, queries, directory)
        going.versions = versions
        outcome = going.run()
    finally:
        close_others(Storage.open(directory), ())
        shutil.rmtree(directory)
    found = Found()
    for query in case.queries:
        tables = zip(outcome.batches.get(query.name, ()), outcome.tables.get(query.name, ()), strict=True)
        found.update((batch, query.name, normal(row)) for batch, table in tables for row in table_rows(table))
    return found


def wanted(case: Case, versions: Versions) -> Found:
    """Return what has to come of inner joins."""
    found = Found()
    for batch in range(case.batches):
        before, after = (
            {name: multiset(table_rows(table)) for name, table in expected(up_to(case, versions, last, batch)).items()}
            for last in (batch - 1, batch)
        )
        for name, rows in after.items():
            assert not before[name] - rows
            found.update({(batch, name, row): count for row, count in (rows - before[name]).items()})
    return found


def up_to(case: Case, versions: Versions, last: int, batch: int) -> Case:
    """Return the case with the streams up to a last batch, and the tables of a batch."""
    sources = []
    for source in (versions.at(each, batch) for each in case.sources):
        count = sum(1 for each in source.batch_of if each <= last)
        cut = replace(source, rows=source.rows.slice(0, count), batch_of=source.batch_of[:count])
        sources.append(source if source.is_table else cut)
    return replace(case, sources=tuple(sources), batches=last + 1)


def wanted_outer(case: Case, versions: Versions) -> Found:
    """Return what has to come of queries of one stream, whatever their joins."""
    found = Found()
    for batch in range(case.batches):
        then = replace(case, sources=tuple(versions.at(source, batch) for source in case.sources))
        for query in case.queries:
            assert isinstance(query, OuterQuery)
            rows = OuterLoop(then, query, closes=True).rows()
            found.update((batch, query.name, normal(row)) for came, row in rows if came == batch)
    return found


def checked(case: Case, oracle: Callable[[Case, Versions], Found]) -> bool:
    """Tell whether a case has results that depend on when its tables changed; fail if they are wrong."""
    versions = drawn(case)
    sources, queries = from_text(case)
    should = oracle(case, versions)
    if not should or should.total() > 3000 or not versions.rows:
        return False
    found = run(case, versions, sources, queries)
    missing, extra = should - found, found - should
    assert found == should, f"missing {dict(missing)}, too many {dict(extra)}\n{versions}\n{describe(case)}"
    return should != oracle(case, Versions(rows={}))


class Rates:
    """A stream of which each file is a batch, and a table that has other rows before each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for place in ("a", "t"):
            (folder / place).mkdir()

    def arrive(self, batch: int) -> None:
        """Let the rows of a batch arrive."""
        rows = [{"ts": datetime.fromtimestamp(1 + batch, UTC), "k": k, "v": 10 * batch + k} for k in (1, 2)]
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
        pq.write_table(pa.Table.from_pylist(rows, schema), self.folder / "a" / f"{batch}.parquet")

    def change(self, batch: int) -> None:
        """Let the table have the batch for a rate: for key 2 only in even batches; in the third it cannot be read."""
        rates = pa.table({"k": [1, 2][: 2 - batch % 2], "rate": [batch, batch][: 2 - batch % 2]})
        pq.write_table(rates, self.folder / "t" / "rows.parquet")
        if batch == 2:
            (self.folder / "t" / "rows.parquet").write_bytes(b"no table")

    def results(self, refresh: str, checkpoint: str, batches: range) -> list[tuple[int, int]]:
        """Run a query on these batches; return its results, by value and rate."""

        def boundary(batch: int, done: bool) -> None:
            if done and batch in batches:
                self.arrive(batch)
                self.change(batch)

        self.arrive(batches[0])
        self.change(batches[0])
        engine = plait.Engine(Session(boundary), checkpoint=str(self.folder / checkpoint))  # type: ignore[arg-type]
        engine.load(load_script(JOIN_WITH_RATES.format(folder=self.folder, refresh=refresh)))
        engine.run_available()
        return sorted(zip(*engine.results("rated").to_pydict().values(), strict=True))


JOIN_WITH_RATES = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{folder}/a')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
    CREATE TABLE t (k BIGINT, rate BIGINT) USING parquet OPTIONS (path '{folder}/t') {refresh};
    CREATE QUERY rated INTO memory AS SELECT a.v, t.rate FROM a JOIN t ON a.k = t.k;
"""


@pytest.fixture
def rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rates:
    frames.install(monkeypatch.setattr)
    return Rates(tmp_path)


@pytest.mark.parametrize("refresh", ["", "REFRESH INTERVAL 1 HOUR"])
def test_a_table_is_read_once_unless_it_is_time_to_read_it_again(rates: Rates, refresh: str) -> None:
    once = [(10 * batch + k, 0) for batch in range(4) for k in (1, 2)]
    assert rates.results(refresh, "checkpoint", range(4)) == once


def test_an_engine_reads_a_table_again_between_batches(rates: Rates, caplog: pytest.LogCaptureFixture) -> None:
    # In batch 2 the table cannot be read, so it has the rows of batch 1.
    always = [(1, 0), (2, 0), (11, 1), (21, 1), (31, 3)]
    assert rates.results("REFRESH INTERVAL 0 SECONDS", "checkpoint", range(4)) == always
    assert "table 't' keeps the rows it has: it cannot be read again" in caplog.text


def test_a_start_reads_a_table_again(rates: Rates) -> None:
    refresh = "REFRESH INTERVAL 1 HOUR"
    assert rates.results(refresh, "checkpoint", range(1)) == [(1, 0), (2, 0)]
    assert rates.results(refresh, "checkpoint", range(1, 2)) == [(11, 1)]


@pytest.mark.parametrize(
    ("select", "says"),
    [
        ("SELECT a.v, t.rate FROM a LEFT JOIN t ON a.k = t.k", None),
        ("SELECT a.v FROM a LEFT ANTI JOIN t ON a.k = t.k", None),
        ("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k JOIN t ON a.k = t.k", None),
        (
            "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k JOIN t ON a.k = t.k",
            "LEFT JOIN of several streams beside table 't'",
        ),
        (
            "SELECT a.v FROM a LEFT ANTI JOIN b ON a.k = b.k LEFT JOIN t ON a.k = t.k",
            "ANTI JOIN or NOT EXISTS of several",
        ),
    ],
)
def test_what_could_not_be_exact_is_refused_by_name(select: str, says: str | None) -> None:
    stream = "CREATE STREAM {} (ts TIMESTAMP, k BIGINT, v BIGINT) USING mine TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR;"
    table = "CREATE TABLE t (k BIGINT, rate BIGINT) USING mine REFRESH INTERVAL 5 MINUTES;"
    problems = check_script(
        f"{stream.format('a')} {stream.format('b')} {table} CREATE QUERY q INTO memory AS {select};"
    )
    assert [says is not None and says in problem.message for problem in problems] == [True] * (says is not None)


@pytest.mark.parametrize("first", range(9_000_000 + FIRST_SEED, 9_000_000 + FIRST_SEED + CASES, CHUNK))
def test_a_result_has_the_rows_of_tables_when_its_newest_member_arrived(first: int) -> None:
    telling = 0
    for seed in range(first, first + CHUNK):
        case = random_case(seed, late=seed % 10 == 9, rows_scale=0.6)
        strategy = STRATEGIES[seed % len(STRATEGIES)]
        if strategy == "independent" or seed % 3:
            case = case.with_options(strategies=(strategy,) * case.batches)
        try:
            telling += any(source.is_table for source in case.sources) and checked(case, wanted)
        except UnsuitableCaseError:
            continue
    assert telling > 1


@pytest.mark.parametrize("first", range(9_500_000 + FIRST_SEED, 9_500_000 + FIRST_SEED + 4 * CASES, 4 * CHUNK))
def test_a_row_without_a_partner_is_one_of_the_tables_when_it_arrived(first: int) -> None:
    telling = 0
    for seed in range(first, first + 4 * CHUNK):
        case = outer_case(seed, late=seed % 10 == 9)
        tables = {source.name for source in case.sources if source.is_table}
        alone = (sum(source not in tables for _, source in query.relations) == 1 for query in case.queries)
        try:
            telling += bool(tables) and all(alone) and checked(case, wanted_outer)
        except (UnsupportedQueryError, UnsuitableCaseError, TooManyCombinationsError):
            continue
    assert telling
