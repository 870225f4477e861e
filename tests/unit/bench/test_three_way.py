"""What the three-way benchmark runs, in which order, and what it makes of the outcome."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from plait.bench.checksum import Checksum
from plait.bench.registry import BENCHES
from plait.bench.systems.launch import Run, SystemFailedError
from plait.bench.systems.task import Answer, Outcome, Task
from plait.bench.three_way import Plan, carry_out, main, order

RIGHT = Checksum(rows=5, first=1, second=1)


def plan(directory: Path, **changes: object) -> Plan:
    values: dict[str, object] = {
        "sizes": (200,),
        "systems": ("plait", "spark", "handover", "duckdb"),
        "repeat": 2,
        "check": True,
        "spark_batches": 10,
        "spark_memory": "1g",
        "directory": directory,
        "cores": 1,
        "seed": 1,
        "files": 20,
        "conf": (("spark.x", "y"),),
    }
    return Plan(**{**values, **changes})


class Runner:
    """Stands for the processes: remembers the tasks, answers at once."""

    def __init__(self, wrong: str = "", failing: str = "") -> None:
        self.tasks: list[Task] = []
        self._wrong, self._failing = wrong, failing

    def __call__(self, task: Task) -> Run:
        self.tasks.append(task)
        if task.system == self._failing:
            raise SystemFailedError(task.system, "with status 137", "out of memory")
        found = Checksum(rows=4) if task.system == self._wrong else RIGHT
        answers = (Answer(query="triples", rows=found.rows, checksum=found),) if task.check else ()
        outcome = Outcome(rows_in=600, startup_seconds=1.0, seconds=2.0, answers=answers)
        return Run(task=task, outcome=outcome, use=None)


def quiet() -> Console:
    return Console(file=io.StringIO())


def test_the_order_is_reversed_every_other_time():
    assert order(("a", "b", "c"), 3) == ("a", "b", "c", "c", "b", "a", "a", "b", "c")


def test_checks_come_first_and_the_oracle_is_asked_once(tmp_path: Path):
    runner = Runner()
    runs, checks, failures = carry_out(plan(tmp_path), quiet(), runner)
    assert [(task.system, task.check) for task in runner.tasks[:3]] == [
        ("duckdb", True),
        ("plait", True),
        ("spark", True),
    ]
    assert [task.system for task in runner.tasks[3:]] == [run.task.system for _, run in runs]
    assert len(runs) == 8
    assert all(check.is_equal for check in checks)
    assert failures == []


def test_a_wrong_result_is_a_failed_check(tmp_path: Path):
    _, checks, _ = carry_out(plan(tmp_path, repeat=1), quiet(), Runner(wrong="plait"))
    assert {check.system: check.is_equal for check in checks} == {"plait": False, "spark": True}


def test_a_system_that_dies_does_not_stop_the_others(tmp_path: Path):
    runs, checks, failures = carry_out(plan(tmp_path, repeat=1), quiet(), Runner(failing="spark"))
    assert [run.task.system for _, run in runs] == ["plait", "handover", "duckdb"]
    assert [failure.system for failure in failures] == ["spark"]
    assert [(check.system, check.is_equal) for check in checks] == [("plait", True), ("spark", False)]


def test_spark_gets_the_first_batches_of_large_inputs_and_its_oracle_the_same_files(tmp_path: Path):
    chosen = plan(tmp_path)
    large, small = SizesOnly(10_000_000), SizesOnly(1_000_000)
    assert [chosen.files_of("spark", size) for size in (large, small)] == [10, 20]
    assert chosen.files_of("plait", large) == 20
    assert plan(tmp_path, spark_batches=None).files_of("spark", large) == 20


class SizesOnly:
    """As much of a workload as the choice of files looks at."""

    files = 20

    def __init__(self, rows: int) -> None:
        self.rows = rows


def test_settings_go_to_spark_and_its_heap_to_its_own_join_only(tmp_path: Path):
    runner = Runner()
    carry_out(plan(tmp_path, check=False, repeat=1), quiet(), runner)
    by_system = {task.system: task for task in runner.tasks}
    assert by_system["plait"].options == (("spark.x", "y"),)
    assert by_system["duckdb"].options == ()
    assert {name: task.memory for name, task in by_system.items() if task.memory} == {"spark": "1g"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "flink"], "unknown system 'flink'; expected some of plait, spark, handover, duckdb"),
        (["--repeat", "0"], "expected a number of at least 1, found 0"),
        (["--conf", "x"], "expected KEY=VALUE, found 'x'"),
        (["--sizes", "many"], "invalid numbers value: 'many'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.spark
def test_all_systems_agree_on_a_small_join(tmp_path: Path):
    target = tmp_path / "report.json"
    arguments = ["--sizes", "2000", "--repeat", "1", "--files", "4", "--spark-memory", "1g", "--json", str(target)]
    assert BENCHES["three-way"]([*arguments, "--dir", str(tmp_path)]) == 0
    found = json.loads(target.read_text())
    assert {check["system"]: check["equal"] for check in found["checks"]} == {"plait": True, "spark": True}
    assert found["checks"][0]["expected"]["rows"] > 1000
    summary = {entry["system"]: entry for entry in found["summary"]}
    assert list(summary) == ["plait", "spark", "handover", "duckdb"]
    assert {entry["rows_in"] for entry in summary.values()} == {6000}
    assert summary["plait"]["results"] == summary["duckdb"]["results"] == found["checks"][0]["expected"]["rows"]
    assert summary["plait"]["late_rows"] == summary["spark"]["late_rows"] == 0
    assert len(found["runs"][0]["outcome"]["batch_seconds"]) == 4
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == []
