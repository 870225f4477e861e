"""Pathway answers the same questions as DuckDB, in the environment that ``make peers`` prepares."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.bench.data import FIRST_US, write_files
from plait.bench.systems import duckdb
from plait.bench.systems.launch import NotPreparedError, interpreter, run_fresh
from plait.bench.systems.pathway import SYSTEM
from plait.bench.systems.task import Task
from plait.query.model import Column
from plait.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet


def is_prepared() -> bool:
    try:
        interpreter(SYSTEM.environment)
    except NotPreparedError:
        return False
    return True


pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_prepared(), reason="run `make peers` for Pathway")]

FILES, ROWS, SLICE_US = 3, 80, 20_000_000
TYPES = {"ts": "timestamp", "k": "bigint", "l": "int", "id": "string", "d": "decimal(12,2)", "day": "date"}
STREAMS = tuple(
    JoinStream(name=name, time="ts", columns=tuple(Column(name=column, type=kind) for column, kind in TYPES.items()))
    for name in "abcd"
)


def query(
    name: str,
    relations: str,
    window_s: int | None,
    *,
    selections: tuple[tuple[str, str], ...] = (),
    conditions: tuple[str, ...] = (),
    aliases: tuple[tuple[str, str], ...] = (),
) -> JoinQuery:
    """Join the relations in a chain, on k and on l by turns."""
    return JoinQuery(
        name=name,
        relations=tuple(relations),
        joins=tuple(
            Join(left=right, right=left, columns=((column, column),))
            for left, right, column in zip(relations, relations[1:], "klk", strict=False)
        ),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=kind)
            for relation in relations
            for column, kind in TYPES.items()
        ),
        selections=selections,
        conditions=conditions,
        aliases=aliases,
        window_s=window_s,
    )


def rows(random: np.random.Generator, file: int, late_us: int, nulls: bool) -> pa.Table:
    taus = FIRST_US - late_us + random.integers(file * SLICE_US, (file + 1) * SLICE_US, ROWS)
    keys = pa.array(random.integers(0, 40, ROWS), mask=random.random(ROWS) < 0.1 if nulls else None)
    return pa.table(
        {
            "ts": pa.array(taus, pa.timestamp("us", "UTC")),
            "k": keys,
            "l": pa.array(random.integers(0, 40, ROWS), pa.int32()),
            "id": ['",' * int(length) for length in random.integers(0, 4, ROWS)],
            "d": pa.array(
                [Decimal(int(cents)) / 100 for cents in random.integers(-90_000, 90_000, ROWS)], pa.decimal128(12, 2)
            ),
            "day": [date(2024, 1, 1) + timedelta(days=int(days)) for days in random.integers(0, 30, ROWS)],
        }
    )


def write(directory: Path, *, late: str = "", nulls: str = "") -> None:
    """Write the streams; those of `late` trail by 30 seconds, those of `nulls` have keys that are NULL."""
    random = np.random.default_rng(4)
    for stream in STREAMS:
        late_us = 30_000_000 if stream.name in late else 0
        tables = (rows(random, file, late_us, stream.name in nulls) for file in range(FILES))
        write_files(directory / stream.name, tables)


def task(directory: Path, *asked: JoinQuery) -> Task:
    return Task(
        system="pathway",
        questions=QuerySet.over(STREAMS, asked),
        data=str(directory),
        files=FILES,
        scratch=str(directory / "scratch"),
        check=True,
    )


@pytest.mark.parametrize(("window_s", "mode"), [(None, None), (15, None), (15, "keeping")])
def test_pathway_finds_what_duckdb_finds(tmp_path: Path, window_s: int | None, mode: str | None):
    write(tmp_path, nulls="bd")
    asked = task(
        tmp_path,
        query("wide", "abcd", window_s, selections=(("b", "b.k % 2 = 0"),)),
        query("trio", "bcd", window_s, conditions=("b.ts <= d.ts + INTERVAL 5 SECONDS", "c.d * 2 < d.d + 500.5")),
        query("pair", "bc", window_s, selections=(("c", "c.day BETWEEN DATE '2024-01-05' AND DATE '2024-01-20'"),)),
        query("self", "ae", window_s, conditions=("a.ts < e.ts",), aliases=(("e", "a"),)),
    )
    expected = duckdb.run(asked)
    assert min(answer.rows for answer in expected.answers) > 20
    outcome = run_fresh(replace(asked, mode=mode)).outcome
    assert outcome.unable is None
    assert outcome.answers == expected.answers
    assert outcome.rows_in == expected.rows_in == 4 * FILES * ROWS
    assert outcome.seconds > 0
    assert outcome.startup_seconds > 0


def test_pathway_keeps_rows_as_long_as_a_stream_that_trails_needs_them(tmp_path: Path):
    write(tmp_path, late="bd")
    asked = task(tmp_path, query("wide", "abcd", 15), query("pair", "bc", 15))
    expected = duckdb.run(asked).answers
    assert min(answer.rows for answer in expected) > 20
    assert run_fresh(asked).outcome.answers == expected


def test_pathway_compares_floating_point_and_booleans(tmp_path: Path):
    columns = (
        Column(name="ts", type="timestamp"),
        Column(name="x", type="double"),
        Column(name="ok", type="boolean"),
        Column(name="n", type="int"),
    )
    streams = tuple(JoinStream(name=name, time="ts", columns=columns) for name in "ab")
    table = pa.table(
        {
            "ts": pa.array([FIRST_US + second * 1_000_000 for second in range(40)], pa.timestamp("us", "UTC")),
            "x": [second % 7 / 2 for second in range(40)],
            "ok": [second % 3 == 0 for second in range(40)],
            "n": pa.array(range(40), pa.int32()),
        }
    )
    for stream in streams:
        write_files(tmp_path / stream.name, iter([table]))
    asked = JoinQuery(
        name="pair",
        relations=("a", "b"),
        joins=(Join(left="a", right="b", columns=(("ok", "ok"), ("ts", "ts"))),),
        outputs=tuple(OutputOf(relation=relation, column="n", type="int") for relation in "ab"),
        selections=(("a", "NOT a.ok OR a.x > 1"),),
        conditions=("a.x * 2 < b.n",),
        window_s=0,
    )
    questions = QuerySet(streams=streams, queries=(asked,))
    same_time = replace(task(tmp_path), questions=questions, files=1)
    expected = duckdb.run(same_time).answers
    assert expected[0].rows > 20
    assert run_fresh(same_time).outcome.answers == expected


def test_pathway_discards_results_in_a_run_that_is_timed(tmp_path: Path):
    write(tmp_path)
    asked = replace(task(tmp_path, query("pair", "bc", 15)), check=False)
    outcome = run_fresh(asked).outcome
    assert outcome.rows_in == 2 * FILES * ROWS
    assert outcome.answers == ()


def test_pathway_says_what_it_cannot_be_asked(tmp_path: Path):
    write(tmp_path)
    asked = task(tmp_path, query("pair", "bc", 15, conditions=("sqrt(b.k) < c.k",)))
    assert "'sqrt' in the condition 'sqrt(b.k) < c.k' is not translated" in str(run_fresh(asked).outcome.unable)
