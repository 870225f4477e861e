"""What the benchmark of several queries runs, in which order, and what it makes of the outcome."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from plait.bench.checksum import Checksum
from plait.bench.curve import curve_case, draw, follow, points
from plait.bench.curve import tables as curve_tables
from plait.bench.data import Workload, prepare
from plait.bench.multi_query import main
from plait.bench.multi_report import INDEPENDENT, complaints, summarize, tables
from plait.bench.multi_run import Case, Plan, carry_out
from plait.bench.registry import BENCHES
from plait.bench.systems.launch import Run, SystemFailedError
from plait.bench.systems.separate import add_up, one_by_one
from plait.bench.systems.task import Answer, Outcome, Task
from plait.bench.edges import EdgeTruth

EDGE = EdgeTruth(edge="r→s", joined=1, span_us=1, measured=10, estimated=30.0, filling=10.0)
SECONDS = {"separate": 20.0, INDEPENDENT: 8.0, "shared": 2.0, "spark": 40.0, "duckdb": 1.0}


def plan(directory: Path, **changes: object) -> Plan:
    values: dict[str, object] = {
        "systems": (INDEPENDENT, "shared", "spark"),
        "repeat": 2,
        "check": True,
        "directory": directory,
        "cores": 1,
        "spark_memory": "1g",
        "sample": 1,
        "timeout_s": 60.0,
        "conf": (("spark.x", "y"),),
    }
    return Plan(**{**values, **changes})


def case(queries: int, directory: Path = Path("data")) -> Case:
    return curve_case(Workload(rows=100), directory, queries, seed=0)


class Runner:
    """Stands for the processes: remembers the tasks, answers at once."""

    def __init__(self, *, wrong: str = "", failing: str = "") -> None:
        self.tasks: list[tuple[str, bool]] = []
        self.made: list[Task] = []
        self._wrong, self._failing = wrong, failing

    def __call__(self, task: Task, *, timeout_s: float | None = None) -> Run:
        system = task.strategy or task.system
        self.tasks.append((system, task.check))
        self.made.append(task)
        if system == self._failing:
            raise SystemFailedError(system, "with status 137", "out of memory")
        rows = 4 if system == self._wrong else 5
        checksum = Checksum(rows=rows, first=1, second=1) if task.check else None
        names = [query.name for query in task.questions.queries] if task.check or system != "spark" else []
        stored = 1 if system == "shared" else 3
        outcome = Outcome(
            rows_in=600,
            startup_seconds=1.0,
            seconds=SECONDS[system] * len(task.questions.queries),
            batch_seconds=(1.0, 0.5, 0.5),
            answers=tuple(Answer(query=name, rows=rows, checksum=checksum) for name in names),
            probe_tuples=100,
            peak_stored_tuples=1000 * stored,
            peak_stored_bytes=9000 * stored,
            edges=(EDGE,) if task.check and task.strategy else (),
        )
        return Run(task=task, outcome=outcome, use=None)


def quiet() -> Console:
    return Console(file=io.StringIO())


def test_results_are_compared_first_and_the_oracle_is_asked_once(tmp_path: Path):
    runner = Runner()
    runs, comparisons, failures = carry_out(plan(tmp_path), (case(2),), quiet(), runner)
    checked = [("duckdb", True), (INDEPENDENT, True), ("shared", True), ("spark", True)]
    timed = [INDEPENDENT, "shared", "spark", "spark", "shared", INDEPENDENT]
    assert runner.tasks == [*checked, *((system, False) for system in timed)]
    assert len(runs) == 6
    assert all(comparison.is_equal for comparison in comparisons)
    assert failures == []


def test_plait_is_told_its_strategy_and_spark_its_heap(tmp_path: Path):
    runner = Runner()
    systems = (INDEPENDENT, "shared", "separate", "spark")
    carry_out(plan(tmp_path, systems=systems, check=False, repeat=1), (case(1),), quiet(), runner)
    assert [(task.system, task.strategy, task.memory, task.sample) for task in runner.made] == [
        ("plait", INDEPENDENT, None, 1),
        ("plait", "shared", None, 1),
        ("separate", None, None, 1),
        ("spark", None, "1g", 0),
    ]


def test_a_query_with_other_results_is_named(tmp_path: Path):
    runs, comparisons, _ = carry_out(plan(tmp_path, repeat=1), (case(2),), quiet(), Runner(wrong="shared"))
    assert [comparison.system for comparison in comparisons if not comparison.is_equal] == ["shared"]
    assert [line.partition(":")[0] for line in complaints(comparisons, ())] == [
        "shared, 2 queries, q1",
        "shared, 2 queries, q2",
    ]
    assert {found.system: found.equal for found in summarize(runs, comparisons)} == {
        INDEPENDENT: True,
        "shared": False,
        "spark": True,
    }


def test_a_system_that_dies_does_not_stop_the_others(tmp_path: Path):
    runs, comparisons, failures = carry_out(plan(tmp_path, repeat=1), (case(1),), quiet(), Runner(failing="spark"))
    assert [run.task.strategy for _, run in runs] == [INDEPENDENT, "shared"]
    assert [comparison.is_equal for comparison in comparisons] == [True, True, False]
    assert [failure.system for failure in failures] == ["spark"]
    assert "status 137" in next(complaints(comparisons, failures))


def test_ratios_are_against_the_same_workload_without_sharing(tmp_path: Path):
    systems = ("separate", INDEPENDENT, "shared", "spark")
    runs, comparisons, _ = carry_out(plan(tmp_path, systems=systems), (case(1), case(2)), quiet(), Runner())
    found = {(figures.workload, figures.system): figures for figures in summarize(runs, comparisons)}
    shared = found["2 queries", "shared"]
    assert shared.rows_per_s == 150
    assert shared.times_independent == 4
    assert shared.times_separate == 10
    assert shared.rows_below_independent == shared.bytes_below_independent == 3
    assert shared.rows_per_s_later == 600 / 20 / 0.5
    assert shared.truth is not None
    assert (shared.truth.worst, shared.truth.above_two, shared.truth.data_above_two) == (3, 1, 0)
    assert found["1 query", "spark"].times_independent == 0.2
    assert found["1 query", "spark"].results == 5
    assert found["1 query", "spark"].truth is None


def test_timed_runs_with_other_counts_are_not_right(tmp_path: Path):
    runs, comparisons, _ = carry_out(plan(tmp_path, repeat=1), (case(1),), quiet(), Runner())
    wrong, _, _ = carry_out(plan(tmp_path, repeat=1, check=False), (case(1),), quiet(), Runner(wrong="shared"))
    assert [figures.equal for figures in summarize(runs, comparisons)] == [True, True, True]
    assert [figures.equal for figures in summarize(wrong, comparisons)] == [True, False, True]


def test_tables_show_every_workload(tmp_path: Path):
    runs, comparisons, _ = carry_out(plan(tmp_path), (case(1), case(2)), quiet(), Runner())
    console = Console(file=io.StringIO(), width=120)
    for made in tables(summarize(runs, comparisons)):
        console.print(made)
    printed = console.file.getvalue()
    assert "1 query" in printed
    assert "2 queries" in printed
    assert "4.00x" in printed


def test_a_line_of_the_curve_ends_after_a_run_beyond_the_limit(tmp_path: Path):
    cases = [case(number) for number in (1, 2, 20)]
    runs, comparisons, failures = follow(plan(tmp_path, repeat=1), cases, 30.0, quiet(), Runner())
    found = points(cases, runs)
    assert [(point.system, point.queries, point.seconds) for point in found] == [
        (INDEPENDENT, 1, 8),
        ("shared", 1, 2),
        ("spark", 1, 40),
        (INDEPENDENT, 2, 16),
        ("shared", 2, 4),
        (INDEPENDENT, 20, 160),
        ("shared", 20, 40),
    ]
    assert failures == []
    assert all(comparison.is_equal for comparison in comparisons)
    assert comparisons[-1].workload == "20 queries"
    console = Console(file=io.StringIO(), width=120)
    console.print(*curve_tables(found))
    assert "160.0 s  20.00x" in console.file.getvalue()


def test_many_queries_are_compared_by_their_counts(tmp_path: Path):
    runner = Runner(wrong="shared")
    _, comparisons, _ = follow(plan(tmp_path, repeat=1), [case(20)], 1e9, quiet(), runner)
    assert [task for task in runner.tasks if task[1]] == [("duckdb", True)]
    assert {comparison.system: len(comparison.wrong) for comparison in comparisons} == {INDEPENDENT: 0, "shared": 20}


def test_the_curve_is_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib")
    cases = [case(1), case(2)]
    runs, _, _ = follow(plan(tmp_path, repeat=1, check=False), cases, 1e9, quiet(), Runner())
    draw(points(cases, runs), tmp_path / "plots" / "curve.png")
    assert (tmp_path / "plots" / "curve.png").stat().st_size > 1000


def test_separate_engines_read_their_own_streams_and_add_up(tmp_path: Path):
    data = prepare(Workload(rows=100), tmp_path)
    asked = case(9, data)
    task = plan(tmp_path).task("separate", asked)
    alone = one_by_one(task)
    assert [found.questions.queries for found in alone] == [(query,) for query in asked.questions.queries]
    assert {len(found.questions.streams) for found in alone} == {2, 3}
    assert len({found.checkpoint for found in alone}) == 9
    total = add_up(task, [Runner()(found).outcome for found in alone])
    assert total.rows_in == 300
    assert total.seconds == 9 * SECONDS["separate"]
    assert total.batch_seconds == (9.0, 4.5, 4.5)
    assert [answer.query for answer in total.answers] == [query.name for query in asked.questions.queries]
    assert total.peak_stored_tuples == 27_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--history", "none"], "unknown history 'none'"),
        (["--queries", "0"], "expected a number of at least 1, found 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_strategy_there_is_none_of_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--curve", "--systems", "clairvoyant", "--rows", "100", "--no-check", "--dir", str(tmp_path)]
    assert main(arguments) == 0
    assert "there is no strategy 'clairvoyant'; it is left out" in capsys.readouterr().out


@pytest.mark.spark
@pytest.mark.slow
def test_all_systems_agree_on_random_queries_with_and_without_windows(tmp_path: Path):
    target = tmp_path / "report.json"
    arguments = ["--scale", "0.001", "--queries", "2", "--files", "3", "--repeat", "1", "--spark-memory", "1g"]
    arguments += ["--systems", "independent,shared,spark", "--json", str(target), "--dir", str(tmp_path)]
    assert BENCHES["multi-query"](arguments) == 0
    found = json.loads(target.read_text())
    assert [entry["equal"] for entry in found["comparisons"]] == [True] * 6
    assert min(sum(answer["rows"] for answer in entry["expected"]) for entry in found["comparisons"]) > 0
    for entry in found["summary"]:
        assert entry["equal"] is True
        assert entry["late_rows"] == 0
        assert entry["peak_stored_tuples"] > 0
    by_place = {(entry["workload"], entry["system"]): entry for entry in found["summary"]}
    shared = by_place["2 queries, full history", "shared"]
    assert shared["rows_below_independent"] > 1
    assert shared["truth"]["edges"] > 1
