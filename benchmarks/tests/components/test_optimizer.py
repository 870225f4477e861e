"""The optimizer benchmark."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.commands import BENCHES
from benchmarks.components.optimizer import TARGETS, Case, Planned, main, missed_targets, plan_case, summarize, table
from plait.optimizer.multi_query import Limits

CASE = Case(relations=10, queries=6, size=3, parallelism=1)
LIMITS = Limits(seconds=30.0, gap=0.0)


def test_a_shared_plan_costs_no_more_than_queries_planned_alone() -> None:
    found = plan_case(CASE, 1, LIMITS)
    assert found.bound <= found.together <= found.alone < found.alone_flat
    assert found.gap == pytest.approx(0.0, abs=1e-6)
    assert found.distinct <= 6
    assert found.steps > 0
    assert found.intermediates > 0


def test_a_query_of_three_alone_costs_450_flat_and_400_with_an_intermediate_store() -> None:
    """100 + 50 from each relation, or 100 from one and 100 + 50 from each of the two that are stored together."""
    found = plan_case(replace(CASE, queries=1), 1, LIMITS)
    assert (found.alone_flat, found.alone, found.together) == pytest.approx((450.0, 400.0, 400.0))


def planned(seconds: float, bound: float) -> Planned:
    return Planned(
        distinct=90,
        steps=1000,
        intermediates=100,
        keys=0,
        build_seconds=seconds / 2,
        solve_seconds=seconds / 2,
        alone_flat=200.0,
        alone=180.0,
        together=100.0,
        bound=bound,
        solver="highs",
    )


def test_medians_are_taken_over_instances() -> None:
    found = summarize(CASE, [planned(1.0, 100.0), planned(3.0, 90.0), planned(8.0, 99.0)])
    assert (found.seconds, found.gap, found.saved_of_flat) == (3.0, pytest.approx(0.01), 0.5)
    assert found.variables == 1100


@pytest.mark.parametrize(("seconds", "bound", "is_missed"), [(0.9, 1.0, False), (1.1, 1.0, True), (0.9, 0.98, True)])
def test_time_and_gap_of_a_target_count(seconds: float, bound: float, is_missed: bool) -> None:
    target = TARGETS[1]
    found = summarize(target.case, [planned(seconds * target.seconds, bound * 100.0)])
    assert missed_targets([found]) == ([target] if is_missed else [])
    assert missed_targets([replace(found, case=CASE)]) == []


def test_the_report_has_everything_and_the_table_a_line_a_case(tmp_path: Path) -> None:
    report = tmp_path / "out" / "report.json"
    arguments = ["--relations", "10", "--queries", "4,6", "--sizes", "3", "--repeat", "2", "--json", str(report)]
    assert BENCHES["optimizer"] is not None
    assert main(arguments) == 0
    document = json.loads(report.read_text())
    assert [each["case"]["queries"] for each in document["figures"]] == [4, 6]
    assert len(document["runs"]) == 4
    assert document["missed"] == []


def test_the_table_fits_a_terminal() -> None:
    found = [summarize(case, [planned(1.0, 99.0)]) for case in (CASE, replace(CASE, queries=100, parallelism=4))]
    console = Console(file=io.StringIO(), width=85)
    console.print(table(found))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "…" not in text
    assert "50%" in text


def test_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.svg"
    assert main(["--relations", "10", "--queries", "3,4", "--sizes", "2,3", "--repeat", "1", "--plot", str(path)]) == 0
    assert path.read_text().count("<svg") == 1
