"""The command line of the benchmarks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.commands import BENCHES, listing
from plait.errors import OptionError

_ROOT = Path(__file__).parents[2]


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert listed >= set(BENCHES)


@pytest.mark.parametrize("name", sorted(BENCHES))
def test_help_after_a_name_is_that_ones_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m benchmarks {name} ")


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(OptionError, match="unknown benchmark 'nothing'; expected one of ajoin, all"):
        main(["nothing"])


def test_a_mistake_ends_the_process_with_status_2_and_a_message() -> None:
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "unknown benchmark 'nothing'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_page_has_a_section_for_each_part_of_plait_that_is_measured() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    sections, packages = re.findall(r"^## (\w+):", page, re.M), page.split("## How it is built")[1]
    parts = [name for kind, name, _ in listing() if kind == "part of Plait"]
    assert [name for name in parts if name not in sections or f"`{name}`" not in packages] == []
