"""Runs in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.systems.launch import SystemFailedError, launch, run_fresh
from benchmarks.systems.task import Task
from benchmarks.workloads.three_way import THREE_WAY
from plait.errors import OptionError

ENDLESS = "import os, sys, time; open(open(sys.argv[1]).read(), 'w').write(str(os.getpid())); time.sleep(60)"


def module(directory: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    (directory / "made_up_system.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(directory))
    return "made_up_system"


def test_what_the_process_wrote_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read() + '!')"
    text, _ = launch(module(tmp_path, monkeypatch, code), "made up", "task", tmp_path)
    assert text == "task!"


@pytest.mark.parametrize(("code", "status"), [("print('why'); raise SystemExit(3)", 3), ("print('why')", 0)])
def test_a_process_without_an_outcome_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, status: int):
    with pytest.raises(SystemFailedError, match=rf"'made up' ended with status {status}(.|\n)*why") as failed:
        launch(module(tmp_path, monkeypatch, code), "made up", "task", tmp_path)
    assert failed.value.end == f"with status {status}"


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    note = tmp_path / "pid"
    with pytest.raises(SystemFailedError, match=r"ended because it took longer than 1\.5 seconds"):
        launch(module(tmp_path, monkeypatch, ENDLESS), "made up", str(note), tmp_path, timeout_s=1.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_system_finds_this_very_plait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import plait

    code = "import sys, plait; open(sys.argv[2], 'w').write(plait.__file__)"
    text, _ = launch(module(tmp_path, monkeypatch, code), "made up", "task", tmp_path)
    assert Path(text).resolve() == Path(plait.__file__).resolve()


def test_an_unknown_system_fails_and_leaves_nothing_behind(tmp_path: Path):
    with pytest.raises(OptionError, match="unknown system 'nothing'; expected one of plait, spark"):
        run_fresh(Task(system="nothing", questions=THREE_WAY, data="d", files=1, scratch=str(tmp_path / "scratch")))
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_benchmark_told_to_end_takes_its_process_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    name = module(tmp_path, monkeypatch, ENDLESS)
    note = tmp_path / "pid"
    # Started in the background of a shell, tests would hand on that interrupts are ignored.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from pathlib import Path; from benchmarks.systems.launch import launch; "
        f"launch({name!r}, 'made up', {str(note)!r}, Path({str(tmp_path)!r}))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    child = wait_for_number(note)
    parent.send_signal(number)
    assert parent.wait(timeout=30) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def wait_for_number(note: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if note.exists() and note.read_text():
            return int(note.read_text())
        time.sleep(0.02)
    raise AssertionError("the process did not start")
