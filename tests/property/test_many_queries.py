"""Hundreds of small queries over two streams, with selections and join keys of every type: some there from the start,
others asked for and dropped while it runs. Each has the results that DuckDB computes.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.operators.ingest import derivable
from plait.runtime.declarations import QueryHandle
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb
from tests.property.drawn_selections import COLUMNS, drawn_rows, drawn_selection
from tests.property.standin.frames import install
from tests.property.standin.session import Session
from tests.property.standin.types import struct_of

BATCHES, ROWS = 3, 40
SCHEMA = (("ts", "timestamp"), ("nr", "bigint"), ("at", "bigint"), *((each.name, each.type) for each in COLUMNS))
KEYS = ("c_l", "c_s", "c_d", "c_e", "c_n", "c_v", "c_r", "c_b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A query of one stream or a join of both. `since`: the batch with which it begins, `until`: with which it ends."""

    name: str
    select: str
    is_join: bool
    since: int
    until: int

    def expected(self) -> Counter[tuple[Any, ...]]:
        """Return its results: those whose last member came while it was there."""
        last = "greatest(a.`at`, b.`at`)" if self.is_join else "a.`at`"
        tested = f"{last} >= {self.since} AND {last} < {self.until}"
        return Counter(connection().sql(to_duckdb(f"{self.select} AND {tested}")).fetchall())


def drawn_query(rng: random.Random, number: int, since: int) -> Drawn:
    is_join = rng.random() < 0.7
    written = [f"({' AND '.join(f'({each})' for each in drawn_selection(rng))})" for _ in range(1 + is_join)]
    chosen = " AND ".join(each.replace("`c_", f"{alias}.`c_") for alias, each in zip("ab", written, strict=False))
    keys = rng.sample(KEYS, 1 if rng.random() < 0.8 else 2)
    on = " AND ".join(f"a.`{key}` = b.`{key}`" for key in keys)
    of = f"a.nr AS l, b.nr AS r FROM a JOIN b ON {on}" if is_join else "a.nr AS l FROM a"
    return Drawn(
        name=f"q{number}",
        select=f"SELECT {of} WHERE {chosen}",
        is_join=is_join,
        since=since,
        until=since + 1 if rng.random() < 0.1 else BATCHES,
    )


@pytest.fixture
def few_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    monkeypatch.setattr(derivable, "FEWEST_INDEXED", 2)


def arrive(rng: random.Random, folder: Path) -> None:
    """Let the files of both streams arrive, and load what is in them all as tables."""
    for stream in "ab":
        (folder / stream).mkdir()
        parts = []
        for batch in range(BATCHES):
            rows = drawn_rows(rng, ROWS)
            numbers = pa.array(range(batch * ROWS, (batch + 1) * ROWS), pa.int64())
            times = pa.array([datetime.fromtimestamp(1 + batch, UTC)] * ROWS, pa.timestamp("us", "UTC"))
            rows = rows.add_column(0, "at", pa.array([batch] * ROWS, pa.int64()))
            rows = rows.add_column(0, "nr", numbers).add_column(0, "ts", times)
            pq.write_table(rows, folder / stream / f"{batch}.parquet")
            parts.append(rows)
        load(connection(), {stream: pa.concat_tables(parts).drop_columns(["ts"])})


@pytest.mark.parametrize("seed", range(2))
def test_hundreds_of_queries_that_come_and_go_have_the_results_of_the_oracle(
    tmp_path: Path, few_indexed: None, seed: int
) -> None:
    rng = random.Random(seed)
    arrive(rng, tmp_path)
    drawn = [drawn_query(rng, number, 0 if number < 110 else 1 + number % 2) for number in range(150)]
    session = Session()
    engine = plait.Engine(session, checkpoint=str(tmp_path / "checkpoint"))  # type: ignore[arg-type]
    for stream in "ab":
        engine.stream(
            stream,
            format="parquet",
            options={"path": str(tmp_path / stream), "maxFilesPerTrigger": "1"},
            schema=struct_of(SCHEMA),
            time="ts",
            window="100 seconds",
            keep="all",
        )
    found: dict[str, pa.Table] = {}
    asked: dict[str, QueryHandle] = {}

    def change(batch: int) -> None:
        for each in drawn:
            if each.until == batch:
                found[each.name] = engine.results(each.name)
                engine.drop(each.name)
            if each.since == batch:
                asked[each.name] = engine.query(each.name, each.select, sink=plait.sinks.memory())

    done = {0}
    change(0)

    def boundary(batch: int, _: bool) -> None:
        if batch < BATCHES and batch not in done:
            done.add(batch)
            change(batch)
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available()
    assert done == {0, 1, 2}
    results = 0
    for drawn_for in drawn:
        begun = asked[drawn_for.name].active_since  # with that batch or a later one: none waits long for its plan
        each = replace(drawn_for, since=BATCHES if begun is None else begun)
        assert each.since >= drawn_for.since
        table = found[each.name] if each.name in found else engine.results(each.name)
        rows = Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
        assert rows == each.expected(), (each.select, each.since, each.until)
        results += rows.total()
    assert results > 5_000
