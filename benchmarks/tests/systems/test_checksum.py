"""The checksum of a multiset of rows."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from benchmarks.systems.checksum import Checksum, aggregates, checksum
from benchmarks.systems.duckdb import run
from benchmarks.systems.task import Task
from benchmarks.workloads.data import FIRST_US, STREAMS, Workload, make_file, prepare
from benchmarks.workloads.three_way import THREE_WAY, WINDOW_S

RANDOM = np.random.default_rng(3)
COLUMNS = [RANDOM.integers(0, 2**62, 1000) for _ in range(3)] + [FIRST_US + RANDOM.integers(0, 10**9, 1000)]


def by_loop(rows: list[tuple[int, ...]]) -> Checksum:
    first = second = 0
    for row in rows:
        folded = 0
        for value in row:
            folded = (folded * 1_000_003 + value) % 2_147_483_647
        first += folded
        second += folded * folded % 2_147_483_647
    return Checksum(rows=len(rows), first=first, second=second)


def test_arrays_give_what_a_loop_gives():
    rows = list(zip(*(column.tolist() for column in COLUMNS), strict=True))
    assert checksum(COLUMNS) == by_loop(rows)


def test_duckdb_gives_what_arrays_give():
    rows = pa.table({f"c{number}": column for number, column in enumerate(COLUMNS)})
    database = duckdb.connect()
    database.register("rows", rows)
    sums = database.execute(f"SELECT {', '.join(aggregates(rows.column_names))} FROM rows").fetchone()
    assert Checksum.of_sums(sums) == checksum(COLUMNS)


def test_no_rows_have_an_empty_checksum():
    assert Checksum.of_sums((0, None, None)) == Checksum() == checksum([np.zeros(0, np.int64)])


def test_order_does_not_matter():
    order = RANDOM.permutation(1000)
    assert checksum([column[order] for column in COLUMNS]) == checksum(COLUMNS)


def test_batches_add_up():
    halves = [checksum([column[part] for column in COLUMNS]) for part in (slice(0, 400), slice(400, None))]
    assert sum(halves, Checksum()) == checksum(COLUMNS)


def test_rows_that_exchange_a_value_are_noticed():
    exchanged = COLUMNS[2].copy()
    exchanged[[4, 5]] = exchanged[[5, 4]]
    assert checksum([*COLUMNS[:2], exchanged, COLUMNS[3]]) != checksum(COLUMNS)


@pytest.mark.parametrize("rows", [slice(1, None), [*range(1000), 7]], ids=["one missing", "one twice"])
def test_a_row_too_few_or_too_many_is_noticed(rows: object):
    assert checksum([column[rows] for column in COLUMNS]) != checksum(COLUMNS)


def test_the_question_for_duckdb_is_the_three_way_join(tmp_path: Path):
    workload = Workload(rows=120, files=4, span_s=80)
    data = prepare(workload, tmp_path)
    outcome = run(Task(system="duckdb", questions=THREE_WAY, data=str(data), files=3, scratch="", check=True, cores=1))
    assert outcome.checksum == by_loop(joined(workload, 3))
    assert outcome.rows_in == workload.rows_in(3)


def joined(workload: Workload, files: int) -> list[tuple[int, ...]]:
    """Join by three nested loops."""
    r, s, t = ([row for file in range(files) for row in rows_of(workload, name, file)] for name in STREAMS)
    return [
        (r_ts, rv, s_ts, sa, sb, sv, t_ts, tv)
        for r_ts, ra, rv in r
        for s_ts, sa, sb, sv in s
        if ra == sa
        for t_ts, tb, tv in t
        if sb == tb and max(r_ts, s_ts, t_ts) - min(r_ts, s_ts, t_ts) <= WINDOW_S * 1_000_000
    ]


def rows_of(workload: Workload, stream: str, file: int) -> list[tuple[int, ...]]:
    table = make_file(workload, stream, file)
    columns = [table["ts"].cast(pa.int64()), *(table[name] for name in STREAMS[stream][1:])]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
