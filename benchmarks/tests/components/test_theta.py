"""The benchmark of theta joins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.components.theta import Case, Outcome, cases, main


def test_small_cases_run_and_find_what_duckdb_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "theta.json"
    main(["--scale", "0.01", "--repeat", "1", "--dir", str(tmp_path), "--json", str(report)])
    outcomes = json.loads(report.read_text())["outcomes"]
    assert [outcome["case"]["name"] for outcome in outcomes] == [case.name for case in cases(1.0)]
    assert sum(outcome["results"] for outcome in outcomes) > 0
    assert "distance" in capsys.readouterr().out


def test_a_case_that_is_too_slow_is_seen() -> None:
    case = Case(name="band", condition="", probes=1, stored=1, reference="nested loop", limit=0.05)
    assert Outcome(case=case, seconds=0.04, reference_seconds=1.0, results=1).is_within_limit
    assert not Outcome(case=case, seconds=0.06, reference_seconds=1.0, results=1).is_within_limit
    alone = Case(name="large", condition="", probes=1, stored=1, reference="", limit=1.0)
    assert not Outcome(case=alone, seconds=1.1, reference_seconds=None, results=1).is_within_limit
