"""Figures from runs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from plait.bench import report
from plait.bench.checksum import Checksum
from plait.bench.measure import ProcessUse, Use
from plait.bench.question import THREE_WAY
from plait.bench.report import Check, summarize
from plait.bench.systems.launch import Run
from plait.bench.systems.task import Answer, Outcome, Task, plait_settings, spark_settings
from plait.bench.edges import EdgeTruth


def made(system: str, seconds: float, *, rows_in: int = 3000, startup: float = 1.0, **outcome: object) -> Run:
    task = Task(system=system, questions=THREE_WAY, data="d", files=20, scratch="s")
    use = Use(
        resident_bytes=500,
        processes=(ProcessUse(pid=1, kind="worker", resident_bytes=300, private_bytes=round(100 * seconds)),),
    )
    return Run(
        task=task,
        outcome=Outcome(rows_in=rows_in, startup_seconds=startup, seconds=seconds, **outcome),
        use=use,
    )


SEVEN = (Answer(query="triples", rows=7),)
RUNS = [
    (1000, made("plait", 2.0, answers=SEVEN, batch_seconds=(9.0, 1.0, 3.0))),
    (1000, made("spark", 20.0, batch_seconds=(4.0,))),
    (1000, made("handover", 1.0)),
    (1000, made("handover", 1.0)),
    (1000, made("spark", 60.0)),
    (1000, made("plait", 4.0, answers=SEVEN, batch_seconds=(11.0, 2.0, 8.0))),
    (1000, made("spark", 30.0)),
    (5000, made("plait", 5.0)),
]
RIGHT, WRONG = Checksum(rows=7, first=1, second=2), Checksum(rows=7, first=1, second=3)


def figures(checks: tuple[Check, ...] = ()) -> dict[tuple[int, str], report.Figures]:
    return {(found.rows, found.system): found for found in summarize(RUNS, checks)}


def test_rates_are_medians_over_the_runs():
    found = figures()
    assert found[1000, "spark"].rows_per_s == 100
    assert found[1000, "plait"].rows_per_s == (1500 + 750) / 2
    assert found[1000, "plait"].rows_per_s_with_startup == (1000 + 600) / 2


def test_ratios_compare_at_the_same_size_only():
    found = figures()
    assert found[1000, "plait"].of_spark == 11.25
    assert found[1000, "plait"].of_handover == 0.375
    assert found[1000, "spark"].of_spark == 1
    assert found[5000, "plait"].of_spark is None


def test_the_first_batch_of_each_run_is_kept_apart():
    found = figures()[1000, "plait"]
    assert found.first_batch_seconds == 10
    assert found.batch_seconds == 2.5
    assert figures()[1000, "handover"].batch_seconds is None


def test_memory_is_the_most_of_all_runs():
    assert figures()[1000, "plait"].worker_private_bytes == 400


def test_results_are_equal_only_if_every_check_says_so():
    right = Check(system="plait", rows=1000, files=20, expected=RIGHT, found=RIGHT)
    wrong = Check(system="plait", rows=1000, files=20, expected=RIGHT, found=WRONG)
    failed = Check(system="plait", rows=1000, files=20, expected=RIGHT, found=None, failure="no memory")
    assert figures((right,))[1000, "plait"].equal is True
    assert figures((right, wrong))[1000, "plait"].equal is False
    assert figures((failed,))[1000, "plait"].equal is False
    assert figures((right,))[1000, "spark"].equal is None


def test_results_of_a_system_that_discards_them_are_those_of_its_check():
    check = Check(system="spark", rows=1000, files=20, expected=RIGHT, found=RIGHT)
    assert figures((check,))[1000, "spark"].results == 7
    assert figures()[1000, "spark"].results is None


def test_the_table_shows_what_is_known_and_a_dash_for_the_rest():
    text = io.StringIO()
    wrong = Check(system="plait", rows=1000, files=20, expected=RIGHT, found=WRONG)
    first, second = report.tables(summarize(RUNS, (wrong,)))
    Console(file=text, width=80).print(first)
    lines = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in text.getvalue().splitlines()]
    shown = {cells[0]: cells[1:] for cells in lines if len(cells) == 4}
    assert shown["input rows a second"] == ["1,125", "100", "3,000"]
    assert shown["with start-up"] == ["800", "97", "1,500"]
    assert shown["against Spark's join"] == ["11.2x", "1.0x", "30.0x"]
    assert shown["against hand-over"] == ["38%", "3%", "100%"]
    assert shown["later batch, median"] == ["2.50 s", "-", "-"]
    assert shown["results right"] == ["NO", "-", "-"]
    assert shown["results"] == ["7", "-", "-"]
    assert [column.header for column in second.columns] == ["", "plait"]


def test_sizes_have_the_unit_that_suits_them():
    assert [report.size(value) for value in (12, 2048, 3 << 20, 5 << 29)] == ["12 B", "2.0 kB", "3.0 MB", "2.5 GB"]


ANSWERS = (Answer(query="a", rows=7, checksum=RIGHT), Answer(query="b", rows=7, checksum=WRONG))
EDGES = (EdgeTruth(edge="r→s", joined=1, span_us=1, measured=3, estimated=2.0, filling=3.5),)


def test_tasks_and_outcomes_survive_the_way_to_another_process():
    task = Task(system="plait", questions=THREE_WAY, data="d", files=3, scratch="s", options=(("a", "b"),))
    outcome = Outcome(rows_in=1, startup_seconds=1.0, seconds=2.0, batch_seconds=(1.0,), answers=ANSWERS, edges=EDGES)
    assert Task.from_json(task.as_json()) == task
    assert Outcome.from_json(outcome.as_json()) == outcome


def test_settings_go_to_whom_they_belong():
    options = (("plait.storage", "5"), ("spark.a", "b"))
    task = Task(system="plait", questions=THREE_WAY, data="d", files=3, scratch="s", memory="1g", options=options)
    assert spark_settings(task, {"spark.a": "c"}) == {"spark.a": "b", "spark.driver.memory": "1g"}
    assert plait_settings(task) == {"plait.storage": "5"}


def test_results_of_several_queries_add_up():
    outcome = Outcome(rows_in=1, startup_seconds=1.0, seconds=2.0, answers=ANSWERS)
    assert (outcome.results, outcome.checksum) == (14, RIGHT + WRONG)
    counted = Outcome(rows_in=1, startup_seconds=1.0, seconds=2.0, answers=(*ANSWERS, *SEVEN))
    assert (counted.results, counted.checksum) == (21, None)
    silent = Outcome(rows_in=1, startup_seconds=1.0, seconds=2.0)
    assert (silent.results, silent.checksum) == (None, None)


def test_reports_are_json(tmp_path: Path):
    check = Check(system="spark", rows=1000, files=20, expected=RIGHT, found=WRONG)
    document = {"runs": [report.run_json(*run) for run in RUNS], "checks": [report.check_json(check)]}
    report.write_json(tmp_path / "new" / "report.json", document)
    read = json.loads((tmp_path / "new" / "report.json").read_text())
    assert read["checks"][0]["equal"] is False
    assert read["runs"][0]["outcome"]["batch_seconds"] == [9.0, 1.0, 3.0]
    assert read["runs"][0]["outcome"]["results"] == 7


def test_a_ratio_needs_a_base():
    assert report.ratio(3.0, None) is None
    assert report.ratio(3.0, 2.0) == pytest.approx(1.5)
