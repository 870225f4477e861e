"""Two runs of the suite, compared."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.reports.changes import Change, Differences, differences
from benchmarks.reports.compare import main
from benchmarks.reports.report import Absence, Report, write_report
from benchmarks.tests.sample_reports import full_report, report
from plait.errors import OptionError

NOISE = 0.05


def changed(found: Differences) -> list[Change]:
    return [change for change in found.changes if change.is_changed]


def compared(before: Path, after: Path) -> tuple[int, str]:
    text = io.StringIO()
    status = main([str(before), str(after)], Console(file=text, width=200))
    return status, text.getvalue()


def written(report: Report, path: Path) -> Path:
    write_report(report, path)
    return path


def test_the_same_noise_drawn_again_is_no_change() -> None:
    for seed in range(0, 40, 2):
        found = differences([report(noise=NOISE, seed=seed)], [report(noise=NOISE, seed=seed + 1)])
        assert not found.is_worse
        assert not changed(found)


def test_a_planted_slow_down_of_a_fifth_is_found_where_it_is() -> None:
    before = report(noise=NOISE, repeat=5, seed=1)
    found = differences([before], [report(noise=NOISE, repeat=5, seed=2, slower={"plait": 1.2})])
    assert found.is_worse
    assert {change.place.system for change in changed(found)} == {"plait"}
    assert {change.place.measure for change in changed(found)} == {"rows_per_s", "cpu_seconds"}
    assert all(change.is_worse for change in changed(found))


def test_a_speed_up_is_a_change_but_not_worse() -> None:
    found = differences([report(noise=NOISE, seed=1)], [report(noise=NOISE, seed=2, slower={"plait": 0.5})])
    assert changed(found)
    assert not found.is_worse


def test_counts_are_compared_exactly() -> None:
    before = report()
    runs = tuple(
        replace(run, outcome=replace(run.outcome, probe_tuples=run.outcome.probe_tuples + 1))
        if run.outcome.probe_tuples is not None
        else run
        for run in before.runs
    )
    found = differences([before], [replace(before, runs=runs)])
    assert {(change.place.measure, change.place.system) for change in changed(found)} == {("probe_tuples", "plait")}
    assert found.is_worse
    assert not differences([replace(before, runs=runs)], [before]).is_worse


def test_a_count_that_varies_from_run_to_run_is_judged_like_a_time() -> None:
    before = report()
    counts = iter(range(100_000, 200_000))
    runs = tuple(replace(run, outcome=replace(run.outcome, shuffled_bytes=next(counts))) for run in before.runs)
    later = tuple(replace(run, outcome=replace(run.outcome, shuffled_bytes=next(counts))) for run in before.runs)
    assert not changed(differences([replace(before, runs=runs)], [replace(before, runs=later)]))


def test_a_wrong_result_and_a_failure_are_worse_than_before() -> None:
    before, after = report(noise=NOISE), full_report()
    found = differences([before], [after])
    assert found.is_worse
    assert found.broken == (
        "three-way, 1 query, spark: wrong results in 2 queries",
        "three-way, 1 query, duckdb: it ran out of <memory>",
    )
    assert found.only_after == ("three-way, 1 query, flink", "three-way, 10 queries, flink")
    back = differences([after], [before])
    assert not back.is_worse
    assert back.mended == ("three-way, 1 query, spark", "three-way, 1 query, duckdb")


def test_a_system_that_fails_now_is_broken() -> None:
    before = report()
    failing = Absence(case="1 query", system="spark", reason="it stopped", unable=False)
    found = differences([before], [replace(before, absences=(failing,))])
    assert found.broken == ("three-way, 1 query, spark: it stopped",)


def test_what_only_one_side_has_is_named_once() -> None:
    before = [report(), report(workload="chains")]
    after = [report(cases=("1 query",), systems=("plait", "duckdb"))]
    found = differences(before, after)
    assert found.only_before == ("chains", "three-way, 1 query, spark", "three-way, 10 queries")
    assert found.only_after == ()


def test_other_rows_under_the_same_name_are_not_compared() -> None:
    before = report()
    other = tuple(replace(case, rows_in=case.rows_in + (case.name == "1 query")) for case in before.cases)
    found = differences([before], [replace(before, cases=other, settings={**before.settings, "cores": 4})])
    assert {change.place.case for change in found.changes} == {"10 queries"}
    assert found.apart == (
        "settings: before cores 2; after cores 4",
        "three-way, 1 query: not compared, for its rows are others",
    )


def test_several_reports_of_a_workload_on_one_side_are_more_runs() -> None:
    before = [report(noise=NOISE, seed=seed) for seed in (1, 2)]
    found = differences(before, [report(noise=NOISE, seed=3)])
    assert {(len(change.before), len(change.after)) for change in found.changes} == {(6, 3)}


def test_the_drift_of_reference_systems_is_told_and_not_divided_away(tmp_path: Path) -> None:
    systems = ("plait", "duckdb")
    before = written(report(systems=systems, noise=0.02), tmp_path / "a.json")
    slower = {"plait": 1.3, "duckdb": 1.3}
    status, text = compared(before, written(report(systems=systems, noise=0.02, slower=slower), tmp_path / "b.json"))
    assert status == 1
    assert "duckdb, which no change of Plait touches, took 1.30x the time in B (2 cases" in text
    assert "0.77x" in text


def test_only_a_reference_that_slows_down_blames_the_machine(tmp_path: Path) -> None:
    before = written(report(noise=0.02), tmp_path / "a.json")
    after = written(report(noise=0.02, slower={"duckdb": 1.3}), tmp_path / "b.json")
    status, text = compared(before, after)
    assert status == 1
    assert "the machine is to blame" in text


def test_the_command_compares_directories(tmp_path: Path) -> None:
    for side, slower in (("a", {}), ("b", {"plait": 1.5})):
        for seed, workload in enumerate(("three-way", "chains")):
            made = report(workload=workload, noise=NOISE, seed=seed + 10 * len(slower), slower=slower)
            written(made, tmp_path / side / f"{workload}.json")
    status, text = compared(tmp_path / "a", tmp_path / "b")
    assert status == 1
    assert "Worse beyond the noise" in text
    assert text.count("input rows a second") == 4
    assert compared(tmp_path / "a", tmp_path / "a")[0] == 0


def test_two_single_runs_say_that_they_are_too_few(tmp_path: Path) -> None:
    before = written(report(repeat=1), tmp_path / "a.json")
    status, text = compared(before, written(report(repeat=1, slower={"plait": 3.0}), tmp_path / "b.json"))
    assert status == 0
    assert "with too few runs to tell: run at least three times a side" in text


def test_an_empty_directory_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no report in"):
        compared(tmp_path, tmp_path)


def sustaining(kept: float | None, lost: float | None, system: str = "plait") -> Report:
    """Return a report whose system kept up with one rate and fell behind at another."""
    like = full_report().paced[0]
    tried = [replace(like, system=system, rows_per_s=rate, is_sustained=True) for rate in (kept,) if rate]
    tried += [replace(like, system=system, rows_per_s=rate, is_sustained=False) for rate in (lost,) if rate]
    return replace(report(), paced=tuple(tried))


@pytest.mark.parametrize(
    ("after", "is_changed", "is_worse"),
    [((24_000, 30_000), False, False), ((18_000, 24_000), True, True), ((60_000, 75_000), True, False)],
)
def test_a_sustained_rate_changed_if_it_is_more_than_a_step_away(
    after: tuple[float, float], is_changed: bool, is_worse: bool
) -> None:
    found = differences([sustaining(30_000, 37_500)], [sustaining(*after)])
    (change,) = (change for change in found.changes if change.place.measure == "sustained")
    assert (change.is_changed, change.is_worse) == (is_changed, is_worse)
    assert (change.before, change.after) == ((30_000,), (after[0],))
