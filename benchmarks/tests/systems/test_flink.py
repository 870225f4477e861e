"""Flink answers the same questions as DuckDB: one process a run, in the environment that ``make peers`` prepares."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks.suite.carry_out import carry_out
from benchmarks.suite.pacing import run_paced
from benchmarks.suite.plan import Plan
from benchmarks.systems import duckdb, launch
from benchmarks.systems.known import choose
from benchmarks.systems.launch import NotPreparedError, interpreter, run_fresh
from benchmarks.systems.summing import added_up
from benchmarks.systems.task import Answer, Task
from benchmarks.workloads.case import Case
from benchmarks.workloads.data import FIRST_US, Workload, prepare, write_files
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from benchmarks.workloads.three_way import THREE_WAY
from plait.query.model import Column

pytestmark = pytest.mark.slow

FILES, ROWS, SLICE_US, WINDOW_S = 3, 60, 20_000_000, 15
MODES = [None, "set", "multiway"]
TYPES = {
    "ts": "timestamp",
    "k": "bigint",
    "l": "int",
    "price": "decimal(12,2)",
    "day": "date",
    "value": "string",
}
STREAMS = tuple(
    JoinStream(name=name, time="ts", columns=tuple(Column(name=column, type=kind) for column, kind in TYPES.items()))
    for name in "abc"
)


@pytest.fixture(autouse=True)
def _prepared() -> None:
    try:
        interpreter("flink")
    except NotPreparedError as error:
        pytest.skip(str(error))


def query(name: str, relations: str, window_s: int | None = WINDOW_S, **more: object) -> JoinQuery:
    """Join relations, all on k, so that the multi-way operator has a key that all of them share."""
    return JoinQuery(
        name=name,
        relations=tuple(relations),
        joins=tuple(Join(left=right, right=left, columns=(("k", "k"),)) for left, right in pairwise(relations)),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=kind)
            for relation in relations
            for column, kind in TYPES.items()
        ),
        window_s=window_s,
        **more,  # type: ignore[arg-type]
    )


def write(directory: Path) -> None:
    """Write streams in which every second row is an exact window from one of another, or a microsecond off."""
    random = np.random.default_rng(4)
    for place, stream in enumerate(STREAMS):
        write_files(directory / stream.name, (rows(random, place, file) for file in range(FILES)))


def rows(random: np.random.Generator, place: int, file: int) -> pa.Table:
    first = FIRST_US + file * SLICE_US
    taus = first + random.integers(0, SLICE_US, ROWS)
    # Keys 100 and on occur once a stream and file: in a at some time, in b and c at the window's very edge.
    keys = np.concatenate((random.integers(0, 12, ROWS // 2), 100 + np.arange(ROWS // 2) + 1000 * file))
    offsets = np.arange(ROWS // 2) % 3 - 1
    edges = first + 100_999 + 1_001 * np.arange(ROWS // 2) + (WINDOW_S * 1_000_000 + offsets if place else 0)
    taus[ROWS // 2 :] = edges
    order = random.permutation(ROWS)
    cents = random.integers(-1_000, 1_000, ROWS)
    return pa.table(
        {
            "ts": pa.array(taus[order], pa.timestamp("us", "UTC")),
            "k": pa.array([None if key == 3 else int(key) for key in keys[order]], pa.int64()),
            "l": pa.array(random.integers(-5, 40, ROWS), pa.int32()),
            "price": pa.array([Decimal(int(each)).scaleb(-2) for each in cents], pa.decimal128(12, 2)),
            "day": pa.array(random.integers(0, 20_000, ROWS).astype("datetime64[D]")),
            "value": pa.array([(None, "", "x", 'a "b", c')[number] for number in random.integers(0, 4, ROWS)]),
        }
    )


def task(tmp_path: Path, questions: QuerySet, mode: str | None = None) -> Task:
    return Task(
        system="flink",
        mode=mode,
        questions=questions,
        data=str(tmp_path / "data"),
        files=FILES,
        scratch=str(tmp_path),
        check=True,
        slice_us=SLICE_US,
    )


def answers(asked: Task) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
    """Return what Flink and what DuckDB say."""
    done = run_fresh(asked, timeout_s=200).outcome
    assert done.unable is None
    assert done.shuffled_bytes
    return done.answers, duckdb.run(asked).answers


@pytest.mark.parametrize("mode", MODES)
def test_the_three_way_join_is_duckdbs(tmp_path: Path, mode: str | None):
    data = Workload(rows=900, files=FILES)
    asked = replace(task(tmp_path, THREE_WAY, mode), data=str(prepare(data, tmp_path)))
    found, expected = answers(asked)
    assert found == expected
    assert expected[0].rows > 100


@pytest.mark.parametrize("mode", MODES)
def test_edges_nulls_selections_conditions_and_the_full_history_are_duckdbs(tmp_path: Path, mode: str | None):
    write(tmp_path / "data")
    asked = (
        query("all", "abc"),
        query(
            "some",
            "abc",
            selections=(("b", "b.price >= 2.50 OR b.day < DATE '1999-01-01'"), ("c", "c.k % 2 = 0")),
            conditions=("a.l <> b.l", "c.ts >= a.ts"),
        ),
        query("selves", "de", aliases=(("d", "a"), ("e", "a")), conditions=("d.l < e.l",)),
        query("ever", "ab", None, selections=(("a", "a.value = 'x'"),)),
        query("long", "bc", 200 * 86_400),
    )
    found, expected = answers(task(tmp_path, QuerySet.over(STREAMS, asked), mode))
    assert {answer.query: answer for answer in found} == {answer.query: answer for answer in expected}
    assert min(answer.rows for answer in expected) > 10


@pytest.mark.parametrize("mode", MODES)
def test_live_streams_are_followed_until_every_result_is_delivered(tmp_path: Path, mode: str | None):
    write(tmp_path / "data")
    questions = QuerySet.over(STREAMS, (query("all", "abc"), query("pair", "bc", selections=(("b", "b.l > 5"),))))
    asked = task(tmp_path, questions, mode)
    expected = sum(answer.rows for answer in duckdb.run(asked).answers)
    feed, outcome = run_paced(
        replace(asked, check=False),
        rows=len(STREAMS) * FILES * ROWS,
        rows_per_s=200,
        expected=expected,
        timeout_s=200,
    )
    assert sum(delivery.rows for delivery in outcome.deliveries) == expected
    assert {delivery.file for delivery in outcome.deliveries} == set(range(FILES))
    waited = [delivery.delivered_us - feed.arrived_us[delivery.file] for delivery in outcome.deliveries]
    # Flink's clock has milliseconds, and a file is there a moment before that is noted.
    assert min(waited) > -20_000


def test_a_row_that_is_dropped_from_its_results_makes_them_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def without_a_row(asked: Task) -> tuple[Answer, ...]:
        chosen = next(path for path in sorted(asked.results.rglob("part-*")) if pq.read_metadata(path).num_rows)
        pq.write_table(pq.ParquetFile(chosen).read().slice(1), chosen)
        return added_up(asked)

    monkeypatch.setattr(launch, "added_up", without_a_row)
    data = Workload(rows=900, files=FILES)
    case = Case(name="small", questions=THREE_WAY, data=prepare(data, tmp_path), files=FILES, span_s=data.span_s)
    plan = Plan(choices=(choose("flink"),), repeat=1, check=True, directory=tmp_path, cores=2, timeout_s=200)
    found = carry_out(plan, [case], Console(quiet=True))
    (check,) = found.checks
    assert not check.is_equal
    (wrong,) = check.wrong
    assert wrong.found is not None
    assert wrong.found.rows == wrong.expected.rows - 1
    assert found.runs == []
