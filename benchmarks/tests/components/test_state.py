"""The state benchmark."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.commands import BENCHES
from benchmarks.components.state import _table, main, verdict
from benchmarks.components.state_run import StateOutcome, StateTask
from benchmarks.components.stored_data import stored_workloads
from benchmarks.measure import ProcessUse, Use
from plait.errors import OptionError


def held(private_bytes: int) -> Use:
    worker = ProcessUse(pid=2, kind="worker", resident_bytes=9, private_bytes=private_bytes, anonymous_bytes=5)
    return Use(resident_bytes=9, processes=(worker,))


SMALL = StateOutcome(
    stored_tuples=100,
    stored_bytes=1000,
    load_seconds=1.0,
    results=50,
    batch_seconds=(1.0, 2.0, 9.0),
    inside_seconds=(0.5, 0.5, 4.0),
    load_use=held(100),
    probe_use=held(50),
)
LARGE = replace(SMALL, batch_seconds=(4.0, 5.0, 5.0), inside_seconds=(2.0, 3.0, 3.0), load_use=held(900_000_000))


def test_medians_are_compared_and_the_largest_worker_counts():
    found = verdict(SMALL, LARGE, 50)
    assert (found.batch_ratio, found.inside_ratio) == (2.5, 6.0)
    assert found.worker_private_bytes == 900_000_000
    assert found.is_within_limits


@pytest.mark.parametrize(
    "larger",
    [
        replace(LARGE, batch_seconds=(6.1, 6.1, 6.1)),
        replace(LARGE, probe_use=held(1_000_000_001)),
        replace(LARGE, results=49),
    ],
    ids=["too slow", "too large", "too few results"],
)
def test_each_limit_counts(larger: StateOutcome):
    assert not verdict(SMALL, larger, 50).is_within_limits


def test_memory_nobody_can_see_is_unknown():
    blind = replace(SMALL, load_use=None, probe_use=None)
    assert verdict(blind, blind, 50).worker_private_bytes is None


def test_the_table_compares_the_stores():
    text = io.StringIO()
    Console(file=text, width=80).print(_table([SMALL, replace(LARGE, stored_tuples=5000, probe_use=None)]))
    lines = [
        [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")] for line in text.getvalue().split("\n")
    ]
    shown = {cells[0]: cells[1:] for cells in lines if len(cells) == 3}
    assert shown["stored rows"] == ["100", "5,000"]
    assert shown["batch, median"] == ["2.000 s", "5.000 s"]
    assert shown["private, while storing"] == ["100 B", "858.3 MB"]
    assert shown["anonymous, while probing"] == ["5 B", "-"]


def test_tasks_and_outcomes_survive_the_way_to_another_process():
    (workload,) = stored_workloads((100,), file_rows=10, seed=1)
    task = StateTask(
        data="d", smallest=workload, batch_rows=1, batches=2, seed=3, cores=1, scratch="s", conf=(("a", "b"),)
    )
    assert StateTask.from_json(task.as_json()) == task
    for outcome in (LARGE, replace(LARGE, load_use=None)):
        assert StateOutcome.from_json(outcome.as_json()) == outcome


def test_the_smaller_store_must_be_smaller():
    with pytest.raises(OptionError, match="must not be more"):
        main(["--rows", "10", "--against", "20"])


@pytest.mark.spark
def test_small_batches_find_their_rows_in_both_stores(tmp_path: Path):
    target = tmp_path / "report.json"
    arguments = ["--rows", "20000", "--against", "2000", "--load-rows", "10000", "--batch-rows", "100"]
    BENCHES["state"]([*arguments, "--batches", "2", "--dir", str(tmp_path), "--json", str(target)])
    found = json.loads(target.read_text())
    assert found["verdict"]["complete"] is True
    assert [run["results"] for run in found["runs"]] == [300, 300]
    assert [run["stored_tuples"] for run in found["runs"]] == [2300, 20300]
    assert [len(run["batch_seconds"]) for run in found["runs"]] == [2, 2]
