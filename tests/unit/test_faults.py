"""Fail points."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("fault", "survives"), [("a:b", 0), ("a:b:1", 0), ("a:b:3", 2), ("a", 5), ("a:b:9", 5), ("c", 5)]
)
def test_the_process_dies_when_it_has_reached_the_point_so_often(fault: str, survives: int) -> None:
    program = "from plait.faults import reach\nfor n in range(5):\n    reach('a:b')\n    print(n, flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PLAIT_FAULT": fault}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [str(n) for n in range(survives)]
    assert done.returncode == (0 if survives == 5 else -signal.SIGKILL)
