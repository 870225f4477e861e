"""Rows come into Pathway as the values they have, and results come out of it as the suite reads them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.systems.pathway_rows import Results, lateness_us, tuples, what_is_read
from benchmarks.systems.summing import added_up
from benchmarks.systems.task import Task
from benchmarks.workloads.data import FIRST_US, write_files
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from plait.query.model import Column

TYPES = {"ts": "timestamp", "k": "int", "d": "decimal(12,2)", "day": "date", "s": "string", "other": "bigint"}
STREAMS = tuple(
    JoinStream(name=name, time="ts", columns=tuple(Column(name=column, type=kind) for column, kind in TYPES.items()))
    for name in "ab"
)
QUERY = JoinQuery(
    name="pair",
    relations=("a", "e"),
    joins=(Join(left="a", right="e", columns=(("k", "k"),)),),
    outputs=tuple(OutputOf(relation="a", column=column, type=TYPES[column]) for column in ("ts", "d", "day", "s")),
    selections=(("e", "e.other > 3"),),
    aliases=(("e", "b"),),
    window_s=5,
)


def task(directory: Path, query: JoinQuery = QUERY, files: int = 2) -> Task:
    questions = QuerySet.over(STREAMS, (query,))
    return Task(system="pathway", questions=questions, data=str(directory), files=files, scratch=str(directory))


def rows(*taus_s: float, k: int | None = 1) -> pa.Table:
    count = len(taus_s)
    taus = [FIRST_US + int(tau * 1_000_000) for tau in taus_s]
    return pa.table(
        {
            "ts": pa.array(taus, pa.timestamp("us", "UTC")),
            "k": pa.array([k] * count, pa.int32()),
            "d": pa.array([Decimal("-1.05")] * count, pa.decimal128(12, 2)),
            "day": [date(1970, 1, 3)] * count,
            "s": ["é,"] * count,
            "other": [7] * count,
        }
    )


def test_only_columns_that_a_query_needs_are_read_and_a_null_anywhere_is_known(tmp_path: Path):
    write_files(tmp_path / "a", iter([rows(1), rows(2)]))
    write_files(tmp_path / "b", iter([rows(1), rows(2, k=None)]))
    a, b = what_is_read(task(tmp_path))
    assert [column.name for column in a.columns] == ["ts", "k", "d", "day", "s"]
    assert [column.name for column in b.columns] == ["ts", "k", "other"]
    assert (a.nullable, b.nullable) == (frozenset(), frozenset({"k"}))


def test_rows_are_tuples_of_integers_and_text(tmp_path: Path):
    write_files(tmp_path / "a", iter([rows(1), rows(2, 3, k=None)]))
    write_files(tmp_path / "b", iter([rows(1), rows(2)]))
    asked = task(tmp_path)
    a, _ = what_is_read(asked)
    assert tuples(tmp_path / "a", a, range(1)) == ((FIRST_US + 1_000_000, 1, -105, 2, "é,"),)
    assert [row[1] for row in tuples(tmp_path / "a", a, range(1, 2))] == [None, None]


@pytest.mark.parametrize(
    ("a", "b", "late_us"),
    [
        ((rows(1, 9), rows(10, 19)), (rows(0, 9), rows(11, 12)), 0),
        ((rows(1, 9), rows(10, 19)), (rows(0, 1), rows(6, 12)), 3_000_001),
        ((rows(1, 9), rows(9)), (rows(0), rows(12)), 1),
        ((rows(30), rows()), (rows(), rows(12)), 18_000_001),
        ((rows(), rows(1)), (rows(), rows(12)), 0),
    ],
    ids=["in order", "one stream trails", "two batches meet", "files without rows", "none before"],
)
def test_lateness_is_how_far_a_row_lies_below_earlier_batches(
    tmp_path: Path, a: tuple[pa.Table, ...], b: tuple[pa.Table, ...], late_us: int
):
    write_files(tmp_path / "a", iter(a))
    write_files(tmp_path / "b", iter(b))
    assert lateness_us(task(tmp_path)) == late_us


def test_results_that_pathway_takes_back_do_not_count(tmp_path: Path):
    results, ts = Results(query=QUERY), FIRST_US
    kept = {"a_ts": ts, "a_d": -105, "a_day": 2, "a_s": 'é,"'}
    empty = {"a_ts": ts, "a_d": 5, "a_day": 0, "a_s": ""}
    for row, is_addition in ((kept, True), (empty, True), (kept, True), (kept, False), (empty, True)):
        results.change(None, row, 0, is_addition)
    results.write(task(tmp_path).results / "pair")
    lines = (task(tmp_path).results / "pair" / "results.csv").read_text().splitlines()
    assert lines == [f'{ts},-1.05,1970-01-03,"é,"""', f'{ts},0.05,1970-01-01,""', f'{ts},0.05,1970-01-01,""']


def test_the_suite_adds_up_text_that_is_empty(tmp_path: Path):
    results = Results(query=QUERY)
    results.change(None, {"a_ts": 5, "a_d": 1, "a_day": 1, "a_s": ""}, 0, True)
    results.write(task(tmp_path).results / "pair")
    (answer,) = added_up(task(tmp_path))
    assert answer.checksum is not None
    assert answer.checksum.first > 0
