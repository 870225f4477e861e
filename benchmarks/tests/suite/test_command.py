"""What the command line of a workload chooses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.reports.report import read_report, write_report
from benchmarks.suite import command, everything
from benchmarks.suite.plan import Findings, Plan
from benchmarks.tests.sample_reports import report
from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.listed import NAMES
from benchmarks.workloads.three_way import THREE_WAY
from plait.errors import OptionError


def cases(request: Request) -> Iterator[Case]:
    for size in request.sizes:
        for question in ("q2", "q20", "all"):
            yield Case(
                name=f"{question}, {request.variants} {size:g}", questions=THREE_WAY, data=request.directory, files=1
            )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the cases that are carried out, none of which is run."""
    names: list[str] = []

    def carry_out(plan: Plan, wanted: Iterator[Case], console: object, **_: object) -> Findings:
        names.extend(case.name for case in wanted)
        return Findings()

    made = Workload(name="made", summary="made", source="own", unit="rows", sizes=(1, 2), cases=cases)
    monkeypatch.setattr(command, "workload", lambda name: made)
    monkeypatch.setattr(command, "carry_out", carry_out)
    return names


def test_cases_are_chosen_by_what_they_ask(asked: list[str], tmp_path: Path) -> None:
    command.main("made", ["--cases", "q2,all", "--dir", str(tmp_path)])
    assert asked == ["q2, usual 1", "all, usual 1", "q2, usual 2", "all, usual 2"]


def test_variants_reach_the_workload(asked: list[str], tmp_path: Path) -> None:
    command.main("made", ["--variants", "all", "--sizes", "7", "--cases", "q20", "--dir", str(tmp_path)])
    assert asked == ["q20, all 7"]


def test_a_case_there_is_not_is_named_with_those_there_are(asked: list[str], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no case is called q3; expected some of q2, q20, all"):
        command.main("made", ["--cases", "q2,q3", "--dir", str(tmp_path)])


def _value(arguments: list[str], option: str) -> str:
    return next(text for text in arguments if text.startswith(f"{option}=")).partition("=")[2]


def test_everything_runs_every_workload_and_makes_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []

    def run(name: str, arguments: list[str]) -> int:
        ran.append(name)
        write_report(report(workload=name), Path(_value(arguments, "--json")))
        return int(name == "drift")

    monkeypatch.setattr(everything, "run_workload", run)
    assert everything.main(["--json", str(tmp_path / "out"), "--repeat", "2"]) == 1, "one of them failed"
    assert ran == list(NAMES)
    assert {read_report(path).workload for path in (tmp_path / "out").glob("*.json")} == set(NAMES)
    assert "drift" in (tmp_path / "out" / "README.md").read_text()
    assert (tmp_path / "out" / "index.html").exists()


def test_some_workloads_alone_are_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []

    def run(name: str, arguments: list[str]) -> int:
        ran.append(name)
        write_report(report(workload=name), tmp_path / f"{name}.json")
        return 0

    monkeypatch.setattr(everything, "run_workload", run)
    assert everything.main(["--only", "skew,drift", "--json", str(tmp_path)]) == 0
    assert ran == ["skew", "drift"]
    with pytest.raises(OptionError, match="unknown workload 'nothing'"):
        everything.main(["--only", "nothing", "--json", str(tmp_path)])


@pytest.mark.parametrize("name", NAMES)
def test_what_everything_runs_is_understood(name: str, asked: list[str], tmp_path: Path) -> None:
    stage = everything.STAGES[name]
    without = [text for at, text in enumerate(stage) if "--cases" not in stage[max(at - 1, 0) : at + 1]]
    assert command.main("made", [*without, "--dir", str(tmp_path)]) == 0
