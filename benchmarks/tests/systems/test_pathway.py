"""Pathway answers the same questions as DuckDB, in the environment that ``make peers`` prepares."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks.suite.carry_out import carry_out
from benchmarks.suite.pacing import run_paced
from benchmarks.suite.plan import Plan
from benchmarks.systems import duckdb
from benchmarks.systems.known import choose
from benchmarks.systems.launch import NotPreparedError, interpreter, run_fresh
from benchmarks.systems.pathway import SYSTEM
from benchmarks.systems.summing import added_up
from benchmarks.systems.task import Answer, Task
from benchmarks.workloads.case import Case
from benchmarks.workloads.data import FIRST_US, write_files
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from plait.query.model import Column


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


@pytest.mark.parametrize(("window_s", "mode"), [(None, None), (15, None), (15, "keeping"), (15, "persisting")])
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


@pytest.mark.parametrize("mode", [None, "keeping"])
def test_members_a_window_apart_match_and_those_a_microsecond_further_do_not(tmp_path: Path, mode: str | None):
    """Also where the later member comes files later and time has come within a microsecond of dropping the other,
    and where no two neighbours in the chain are far apart.
    """
    window_us, late = 15_000_000, 1
    offsets_us = {
        "a": ((1_000_000,), (15_999_998,), (15_999_999,), (19_999_999, 31_000_000), (46_000_000,)),
        "b": (
            (1_000_000,),
            (15_900_000,),
            (15_999_999,),
            (16_000_000, 16_000_000 + late, 34_999_999, 35_000_000),
            (46_000_001,),
        ),
        "c": ((9_000_000,), (15_500_000,), (15_999_999,), (16_000_001, 31_000_000, 31_000_001), (46_000_000,)),
    }
    for name, files in offsets_us.items():
        tables = (
            rows(np.random.default_rng(4), 0, 0, nulls=False)
            .slice(0, len(taus))
            .set_column(0, "ts", pa.array([FIRST_US + tau for tau in taus], pa.timestamp("us", "UTC")))
            .set_column(1, "k", pa.array([1] * len(taus), pa.int64()))
            .set_column(2, "l", pa.array([1] * len(taus), pa.int32()))
            for taus in files
        )
        write_files(tmp_path / name, tables)
    asked = replace(task(tmp_path, query("trio", "abc", 15), query("pair", "ab", 15)), files=5)
    taus = {name: [tau for file in files for tau in file] for name, files in offsets_us.items()}
    spans = {each: [max(found) - min(found) for found in product(*map(taus.get, each))] for each in ("abc", "ab")}
    assert all(window_us in found and window_us + late in found for found in spans.values())
    answers = run_fresh(replace(asked, mode=mode)).outcome.answers
    assert [answer.rows for answer in answers] == [
        sum(span <= window_us for span in spans[each]) for each in ("abc", "ab")
    ]
    assert answers == duckdb.run(asked).answers


@pytest.mark.parametrize("mode", [None, "keeping"])
def test_pathway_follows_live_streams_until_every_result_is_delivered(tmp_path: Path, mode: str | None):
    write(tmp_path)
    asked = task(tmp_path, query("wide", "abc", 15), query("pair", "bc", 15, selections=(("b", "b.k % 2 = 0"),)))
    expected = sum(answer.rows for answer in duckdb.run(asked).answers)
    live = replace(asked, mode=mode, check=False, slice_us=SLICE_US)
    rate = 2 * FILES * ROWS
    feed, outcome = run_paced(live, rows=FILES * ROWS, rows_per_s=rate, expected=expected, timeout_s=100)
    assert sum(delivery.rows for delivery in outcome.deliveries) == expected > 20
    assert {delivery.file for delivery in outcome.deliveries} == set(range(FILES))
    assert min(found.delivered_us - feed.arrived_us[found.file] for found in outcome.deliveries) > 0


def test_a_live_result_belongs_to_the_file_of_its_newest_member(tmp_path: Path):
    write(tmp_path)
    asked = replace(task(tmp_path, query("pair", "bc", 15)), check=False, slice_us=SLICE_US)
    read = {name: pq.read_table(tmp_path / name).select(["ts", "k"]) for name in "bc"}
    columns = [(table["ts"].cast(pa.int64()).to_pylist(), table["k"].to_pylist()) for table in read.values()]
    sides = [list(zip(*pair, strict=True)) for pair in columns]
    expected: Counter[int] = Counter(
        (max(tau, other) - FIRST_US) // SLICE_US
        for (tau, key), (other, same) in product(*sides)
        if key == same and abs(tau - other) <= 15_000_000
    )
    _, outcome = run_paced(asked, rows=60, rows_per_s=60, expected=expected.total(), timeout_s=100)
    found: Counter[int] = Counter()
    for delivery in outcome.deliveries:
        found[delivery.file] += delivery.rows
    assert found == expected


def test_pathway_says_that_no_latency_is_known_without_event_times(tmp_path: Path):
    write(tmp_path)
    pair = query("pair", "bc", 15)
    asked = task(tmp_path, replace(pair, outputs=tuple(output for output in pair.outputs if output.name != "c_ts")))
    _, outcome = run_paced(replace(asked, slice_us=SLICE_US), rows=60, rows_per_s=60, expected=1, timeout_s=100)
    assert outcome.unable == "query 'pair' does not output the event time of 'c', so no latency is known"


def test_the_suite_calls_a_result_of_pathways_that_lacks_a_row_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "data")
    asked = task(tmp_path / "data", query("pair", "bc", 15), query("wide", "abc", 15))

    def without_a_row(done: Task) -> tuple[Answer, ...]:
        results = done.results / "pair" / "results.csv"
        results.write_text("".join(results.read_text().splitlines(keepends=True)[:-1]))
        return added_up(done)

    monkeypatch.setattr("benchmarks.systems.launch.added_up", without_a_row)
    plan = Plan(choices=(choose("pathway"),), repeat=1, check=True, directory=tmp_path / "plan", cores=2)
    case = Case(name="tiny", questions=asked.questions, data=tmp_path / "data", files=FILES, size=1)
    found = carry_out(plan, [case], Console(quiet=True))
    (check,) = found.checks
    assert not check.is_equal
    (wrong,) = check.wrong
    assert wrong.expected.query == "pair"
    assert wrong.found is not None
    assert wrong.found.rows == wrong.expected.rows - 1
    assert found.runs == []


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
