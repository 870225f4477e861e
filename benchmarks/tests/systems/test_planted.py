"""Whoever loses a row is caught: every system with real data, in a process of its own, as a benchmark runs it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks.suite.carry_out import carry_out
from benchmarks.suite.plan import Findings, Plan
from benchmarks.systems import duckdb
from benchmarks.systems.known import choose
from benchmarks.systems.launch import NotPreparedError, Run, interpreter, run_fresh
from benchmarks.systems.task import Task
from benchmarks.tests.systems.test_systems import FILES, SLICE_US, STREAMS, query, write
from benchmarks.workloads.case import Case
from benchmarks.workloads.data import file_name
from benchmarks.workloads.joins import QuerySet

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASKED = QuerySet.over(STREAMS, (query("wide", "abc", 15), query("pair", "bc", 15)))
SYSTEMS = ("plait", "plait:ilp", "spark", "spark:rocksdb", "flink", "flink:set", "pathway", "pathway:keeping")


def lacking(whole: Path, target: Path) -> Path:
    """Return a copy of the streams without the first row of b."""
    shutil.copytree(whole, target)
    path = target / "b" / file_name(0)
    rows: pa.Table = pq.read_table(path)
    pq.write_table(rows.slice(1), path)
    return target


def carry(label: str, whole: Path, given: Path) -> Findings:
    """Run a system on the streams below `given`, and compare with DuckDB's results of those below `whole`."""

    def run(task: Task, **options: Any) -> Run:
        data = whole if task.system == "duckdb" else given
        return run_fresh(replace(task, data=str(data)), **options)

    case = Case(name="planted", questions=ASKED, data=whole, files=FILES, span_s=FILES * SLICE_US / 1e6)
    plan = Plan(choices=(choose(label),), repeat=1, check=True, directory=whole.parent, cores=2)
    return carry_out(plan, [case], Console(quiet=True), run)


@pytest.mark.parametrize("label", SYSTEMS)
def test_a_row_that_a_system_never_saw_is_missed(tmp_path: Path, label: str):
    try:
        interpreter(choose(label).system.environment)
    except NotPreparedError as error:
        pytest.skip(str(error))
    whole = tmp_path / "whole"
    write(whole)
    given = lacking(whole, tmp_path / "lacking")
    lost = carry(label, whole, given)
    assert [check.is_equal for check in lost.checks] == [False]
    assert lost.checks[0].wrong, "the query that lacks rows is named"
    assert lost.runs == [], "no time is taken"
    kept = carry(label, whole, whole)
    assert [check.is_equal for check in kept.checks] == [True]
    assert len(kept.runs) == 1


def test_the_row_that_is_planted_takes_part_in_a_result(tmp_path: Path):
    whole = tmp_path / "whole"
    write(whole)
    asked = Task(system="duckdb", questions=ASKED, data=str(whole), files=FILES, scratch=str(tmp_path), check=True)
    without = replace(asked, data=str(lacking(whole, tmp_path / "lacking")))
    assert duckdb.run(asked).answers != duckdb.run(without).answers
