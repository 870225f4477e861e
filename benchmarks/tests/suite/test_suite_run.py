"""The suite takes the time only of systems whose results are the oracle's, in alternating order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.suite.carry_out import carry_out
from benchmarks.suite.pacing import Feed
from benchmarks.suite.plan import Findings, Grow, Plan, order
from benchmarks.systems.checksum import Checksum
from benchmarks.systems.known import Choice, choose
from benchmarks.systems.launch import NotPreparedError, Run, SystemFailedError
from benchmarks.systems.task import Answer, Delivery, Outcome, Task
from benchmarks.workloads.case import Case
from benchmarks.workloads.three_way import THREE_WAY

RIGHT = Answer(query="triples", rows=7, checksum=Checksum(rows=7, first=11, second=13))
LACKING = replace(RIGHT, rows=6, checksum=Checksum(rows=6, first=10, second=12))
SYSTEMS = ("plait", "plait:ilp", "spark", "handover")
Act = Callable[[Task], Outcome]


def outcome(task: Task) -> Outcome:
    """Return what a system that does everything right comes to."""
    answers = (RIGHT,) if task.check else (replace(RIGHT, checksum=None),) if task.system == "plait" else ()
    return Outcome(rows_in=30, startup_seconds=1.0, seconds=2.0, answers=answers)


def carry(
    tmp_path: Path,
    act: Act = outcome,
    sizes: tuple[int, ...] = (1,),
    keep: Callable[[Findings], None] = lambda found: None,
    grow: Grow | None = None,
    **settings: object,
) -> tuple[Findings, list[Task]]:
    tasks: list[Task] = []

    def run(task: Task, **_: object) -> Run:
        tasks.append(task)
        return Run(task=task, outcome=act(task), use=None)

    plan = Plan(choices=tuple(map(choose, SYSTEMS)), repeat=2, check=True, directory=tmp_path, cores=2)
    cases = [Case(name=f"case {size}", questions=THREE_WAY, data=tmp_path, files=3, size=size) for size in sizes]
    settled = replace(plan, **settings)  # type: ignore[arg-type]
    return carry_out(settled, cases, Console(quiet=True), run, keep, grow), tasks


def name(task: Task) -> str:
    return task.system if task.mode is None else f"{task.system}:{task.mode}"


def test_all_are_compared_before_any_is_timed_and_the_order_is_reversed(tmp_path: Path):
    found, tasks = carry(tmp_path)
    checked = [name(task) for task in tasks if task.check]
    assert checked == ["duckdb", "plait", "plait:ilp", "spark"]
    assert [name(task) for task in tasks[4:]] == [*SYSTEMS, *reversed(SYSTEMS)]
    assert [(run.system, run.turn) for run in found.runs[:4]] == [(system, 0) for system in SYSTEMS]
    assert all(check.is_equal for check in found.checks)
    assert found.absences == []


def test_one_row_less_is_seen_and_the_system_is_not_timed(tmp_path: Path):
    def act(task: Task) -> Outcome:
        lacks = task.check and name(task) == "spark"
        return replace(outcome(task), answers=(LACKING,)) if lacks else outcome(task)

    found, _ = carry(tmp_path, act)
    (wrong,) = (check for check in found.checks if not check.is_equal)
    assert (wrong.system, wrong.wrong[0].expected, wrong.wrong[0].found) == ("spark", RIGHT, LACKING)
    assert {run.system for run in found.runs} == {"plait", "plait:ilp", "handover"}


def test_results_that_are_not_counted_are_those_that_were_checked(tmp_path: Path):
    found, _ = carry(tmp_path)
    assert {run.system: run.results for run in found.runs} == {
        "plait": 7,
        "plait:ilp": 7,
        "spark": 7,
        "handover": None,
    }
    found, _ = carry(tmp_path, check=False)
    assert {run.results for run in found.runs if run.system == "plait"} == {7}
    assert {run.results for run in found.runs if run.system == "spark"} == {None}


def test_a_row_exchanged_for_another_is_seen(tmp_path: Path):
    other = replace(RIGHT, checksum=Checksum(rows=7, first=11, second=14))
    found, _ = carry(
        tmp_path, lambda task: replace(outcome(task), answers=(other,)) if name(task) == "spark" else outcome(task)
    )
    assert [check.system for check in found.checks if not check.is_equal] == ["spark"]


def test_a_system_that_goes_wrong_later_loses_its_earlier_times(tmp_path: Path):
    seen: list[Task] = []

    def act(task: Task) -> Outcome:
        seen.extend([task] if name(task) == "plait" and not task.check else [])
        right = outcome(task)
        return replace(right, answers=(replace(LACKING, checksum=None),)) if seen[1:] and task is seen[-1] else right

    found, _ = carry(tmp_path, act)
    assert len(seen) == 2
    assert {run.system for run in found.runs} == {"plait:ilp", "spark", "handover"}


def test_a_timed_run_that_counts_other_results_has_no_time(tmp_path: Path):
    def act(task: Task) -> Outcome:
        lacks = not task.check and name(task) == "plait"
        return replace(outcome(task), answers=(replace(LACKING, checksum=None),)) if lacks else outcome(task)

    found, tasks = carry(tmp_path, act)
    assert "plait" not in {run.system for run in found.runs}
    (absence,) = found.absences
    assert (absence.system, absence.unable) == ("plait", False)
    assert "other numbers of results" in absence.reason
    assert len([task for task in tasks if name(task) == "plait" and not task.check]) == 1


@pytest.mark.parametrize(
    ("error", "unable"),
    [(SystemFailedError("spark", "with status 1", "no heap"), False), (NotPreparedError("spark", Path("x")), True)],
)
def test_a_system_that_gives_nothing_is_named_with_its_reason(tmp_path: Path, error: Exception, unable: bool):
    def act(task: Task) -> Outcome:
        if task.system == "spark":
            raise error
        return outcome(task)

    found, _ = carry(tmp_path, act)
    (absence,) = found.absences
    assert (absence.case, absence.system, absence.unable) == ("case 1", "spark", unable)
    assert absence.reason == str(error)


def test_a_system_says_in_its_own_words_what_it_cannot_do(tmp_path: Path):
    words = "no join on inequality"
    found, _ = carry(
        tmp_path, lambda task: replace(outcome(task), unable=words) if task.system == "spark" else outcome(task)
    )
    assert [(absence.reason, absence.unable) for absence in found.absences] == [(words, True)]


def test_a_slow_system_is_not_asked_for_larger_cases(tmp_path: Path):
    found, _ = carry(
        tmp_path,
        lambda task: replace(outcome(task), seconds=9.0 if task.system == "spark" else 1.0),
        sizes=(1, 2),
        limit_s=5.0,
    )
    assert [run.case for run in found.runs if run.system == "spark"] == ["case 1", "case 1"]
    assert [(absence.case, absence.verdict) for absence in found.absences] == [("case 2", "not asked")]


def test_a_slow_system_is_asked_for_other_cases_of_the_same_size(tmp_path: Path):
    found, _ = carry(tmp_path, lambda task: replace(outcome(task), seconds=9.0), sizes=(1, 1), limit_s=5.0)
    assert len([run for run in found.runs if run.system == "spark"]) == 4
    assert found.absences == []


def test_without_check_nothing_is_compared(tmp_path: Path):
    found, tasks = carry(tmp_path, check=False)
    assert found.checks == []
    assert [name(task) for task in tasks if task.check] == ["duckdb"]


def test_order_alternates():
    choices: tuple[Choice, ...] = (choose("plait"), choose("spark"))
    assert [(turn, choice.label) for turn, choice in order(choices, 3)] == [
        (0, "plait"),
        (0, "spark"),
        (1, "spark"),
        (1, "plait"),
        (2, "plait"),
        (2, "spark"),
    ]


def follow(monkeypatch: pytest.MonkeyPatch, capacity: float) -> list[tuple[float, int, Task]]:
    """Let systems keep up with rates up to a capacity; return what was asked of them: rate, rows, task."""
    asked: list[tuple[float, int, Task]] = []

    def run_paced(task: Task, *, rows_per_s: float, rows: int, **_: object) -> tuple[Feed, Outcome]:
        asked.append((rows_per_s, rows, task))
        arrived = [1_000_000 * file for file in range(RIGHT.rows)]
        grows = 0 if rows_per_s <= capacity else 1_000_000
        late = [Delivery(delivered_us=at + 100 + grows * file, file=file, rows=1) for file, at in enumerate(arrived)]
        feed = Feed(rows_per_file=1, rows_per_s=rows_per_s, grace_s=1, arrived_us=arrived)
        return feed, replace(outcome(task), deliveries=tuple(late))

    monkeypatch.setattr("benchmarks.suite.live_streams.run_paced", run_paced)
    return asked


def grown(case: Case, factor: float) -> Case:
    return replace(case, files=max(round(factor * 30), 1))


LIVE_SYSTEMS = (choose("plait"), choose("handover"))


@pytest.mark.parametrize(
    ("capacity", "paces", "highest"),
    [
        (12.0, [12.5, 6.3, 8.0, 10.0], 10.0),
        (6.5, [12.5, 6.3, 8.0], 6.3),
        (60.0, [12.5, 25.0, 50.0, 100.0, 63.0], 50.0),
        (0.01, [12.5, 6.3, 3.2, 1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025], None),
    ],
)
def test_the_highest_rate_that_is_kept_up_with_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capacity: float, paces: list[float], highest: float | None
):
    asked = follow(monkeypatch, capacity)
    found, _ = carry(tmp_path, sustain=True, choices=LIVE_SYSTEMS, grow=grown)
    assert [rate for rate, _, _ in asked] == pytest.approx(paces)
    assert {paced.case for paced in found.paced} == {"live"}
    kept = max((paced.rows_per_s for paced in found.paced if paced.is_sustained), default=None)
    assert kept == (None if highest is None else pytest.approx(highest))


def test_streams_last_equally_long_at_every_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = follow(monkeypatch, 1e9)
    _, tasks = carry(tmp_path, paces=(100.0, 1000.0), choices=LIVE_SYSTEMS, grow=grown)
    assert [(rate, task.files) for rate, _, task in asked] == [
        (100.0, 2000),
        (100.0, 2000),
        (1000.0, 20000),
        (1000.0, 20000),
    ]
    asked_oracle = [task.files for task in tasks if task.system == "duckdb"]
    assert asked_oracle == [3, 2000, 20000], "once a rate"


def test_streams_that_cannot_grow_are_not_tried_at_rates_at_which_they_are_soon_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = follow(monkeypatch, 1e9)
    found, _ = carry(
        tmp_path,
        act=lambda task: replace(outcome(task), rows_in=1000, seconds=100.0),
        sustain=True,
        paces=(200.0,),
        choices=LIVE_SYSTEMS,
    )
    assert [rate for rate, _, _ in asked] == pytest.approx([8.0, 16.0, 32.0, 63.0])
    assert {paced.case for paced in found.paced} == {"case 1"}
    assert "last 5.0 s at 200 rows/s; expected 10 s" in found.absences[0].reason


def test_a_system_is_not_run_again_when_its_runs_took_long_enough_but_twice_at_least(tmp_path: Path):
    found, _ = carry(tmp_path, repeat=5, enough_s=4.0)
    assert [run.turn for run in found.runs if run.system == "spark"] == [0, 1]
    found, _ = carry(tmp_path, repeat=5, enough_s=7.0)  # three seconds a run, with its start-up
    assert [run.turn for run in found.runs if run.system == "spark"] == [0, 1, 2]


def test_what_was_found_is_kept_after_every_case(tmp_path: Path):
    kept: list[int] = []
    carry(tmp_path, sizes=(1, 2, 3), keep=lambda found: kept.append(len(found.cases)))
    assert kept == [1, 2, 3]
