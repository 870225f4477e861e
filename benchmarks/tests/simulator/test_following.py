"""The command reports what every policy took from every order, and how near `dppick` comes to the best."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.simulator.following import main
from benchmarks.simulator.measuring import ABLATIONS, COMPARED, behind_best


def test_returns_tell_what_every_policy_took_from_every_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    sizes = ["--scale", "0.01", "--cycles", "8", "--orders", "2"]
    assert main(["--only", "returns", *sizes, "--json", str(report)]) == 0
    told = json.loads(report.read_text())["returns"]
    policies = {policy.name for policy in (*COMPARED, *ABLATIONS)}
    assert [set(taken) for taken in told["operations"].values()] == [policies] * 2
    assert set(told["changes"]) == policies
    assert told["changes"]["fixed"] == [0, 0]
    best = told["least"]["by cycle"]
    assert all(taken >= best for found in told["operations"].values() for taken in found.values())
    near = sum(share <= 0.01 for share in behind_best(told["operations"]).values())
    assert f"by operations: {near} of 2" in capsys.readouterr().out
