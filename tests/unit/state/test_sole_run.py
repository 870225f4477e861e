"""A second run on a checkpoint is refused while the first one lives, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plait.errors import CheckpointError
from plait.state.sole_run import sole_run

HOLDING = """
import sys, time
from plait.state.sole_run import sole_run
with sole_run(sys.argv[1]):
    print("in", flush=True)
    time.sleep(60)
"""


def enter(checkpoint: Path | str, within: str = "") -> None:
    with sole_run(str(checkpoint), within):
        pass


def test_a_second_run_is_refused_until_the_first_is_over(tmp_path: Path) -> None:
    checkpoint = tmp_path / "new" / "c"
    with sole_run(str(checkpoint)):
        with pytest.raises(CheckpointError, match=f"another run works on checkpoint 'file://{checkpoint}'. Stop it"):
            enter(f"file://{checkpoint}")
        enter(tmp_path / "other")
    enter(checkpoint)


def test_a_directory_within_has_a_lock_of_its_own_and_stays_if_something_is_in_it(tmp_path: Path) -> None:
    with (
        sole_run(str(tmp_path)),
        sole_run(str(tmp_path), "plait"),
        pytest.raises(CheckpointError, match=f"another run works on checkpoint 'file://{tmp_path}'"),
    ):
        enter(f"file://{tmp_path}", "plait")
    assert not list(tmp_path.iterdir())
    with sole_run(str(tmp_path), "plait"):
        (tmp_path / "plait" / "catalog.json").write_text("{}")
        with pytest.raises(CheckpointError, match="another run"):
            enter(tmp_path, "plait")
    assert (tmp_path / "plait" / "catalog.json").exists()


def test_a_run_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "in\n"
    with pytest.raises(CheckpointError, match="another run"):
        enter(tmp_path)
    first.send_signal(signal.SIGKILL)
    first.wait(timeout=30)
    first.stdout.close()
    enter(tmp_path)


def test_what_cannot_be_locked_is_let_pass(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for checkpoint in ("s3://bucket/c", str(tmp_path / "file" / "c")):
        with sole_run(checkpoint):
            enter(checkpoint)


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_the_directory_of_a_file_uri_is_the_one_that_a_run_works_in(tmp_path: Path, scheme: str) -> None:
    checkpoint = tmp_path / "a b"
    with sole_run(f"{scheme}{tmp_path}/a%20b"):
        with pytest.raises(CheckpointError, match="another run works on checkpoint"):
            enter(checkpoint)
        assert [path.name for path in tmp_path.iterdir()] == ["a b"]
    assert not list(tmp_path.iterdir()), "nothing came of it"


def test_directories_that_were_there_before_stay(tmp_path: Path) -> None:
    checkpoint = tmp_path / "mine" / "new" / "c"
    (tmp_path / "mine").mkdir()
    enter(checkpoint, "plait")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_no_directory_is_made_for_a_uri_without_slashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    enter("hdfs:/checkpoint")
    assert not list(tmp_path.iterdir())
