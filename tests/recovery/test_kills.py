"""``kill -9``, of the driver alone or of all its processes, then a restart with the same command."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recovery.workload import expected, found, make_input

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[2]
_KILLS = int(os.environ.get("PLAIT_KILLS", "14"))


def _start(directory: Path, fault: str | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": sys.executable}
    environment.pop("PLAIT_FAULT", None)
    if fault is not None:
        environment["PLAIT_FAULT"] = fault
    command = [sys.executable, "-m", "tests.recovery.workload", str(directory)]
    with (directory / "log").open("a") as log:
        return subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )


def _finish(directory: Path) -> None:
    process = _start(directory)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, (directory / "log").read_text()[-4000:]
    assert "finished" in output


@pytest.mark.parametrize(
    "fault",
    ["write:stores:5", "rename:arrow:9", "write:results:3", "write:groups:3", "stage:2", "committed:2", "pruned"],
)
def test_a_killed_process_or_worker_loses_and_repeats_nothing(tmp_path: Path, fault: str) -> None:
    make_input(tmp_path, batches=4)
    process = _start(tmp_path, fault)
    process.communicate(timeout=300)
    assert process.returncode != 0
    _finish(tmp_path)
    assert found(tmp_path) == expected(tmp_path)


def test_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """One run, killed again and again at moments spread over start-up and batches, then left to finish."""
    seed = int(os.environ.get("PLAIT_SEED", str(random.randrange(1 << 30))))
    print("seed", seed)
    chosen = random.Random(seed)
    make_input(tmp_path, batches=16)
    for kill in range(_KILLS):
        process = _start(tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chosen.uniform(0.0, 8.0))
        if chosen.random() < 0.5:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        process.stdout.close()
        if kill % 5 == 4:
            for name, rows in found(tmp_path)[0].items():
                assert rows <= expected(tmp_path)[0][name], f"seed {seed}: repeated or wrong results in {name}"
    _finish(tmp_path)
    assert found(tmp_path) == expected(tmp_path), f"seed {seed}"
