"""How Spark starts workers and talks to them: forked with what they need loaded, over sockets of their user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import plait
from plait.runtime.spark import session
from plait.runtime.spark.daemon import quiet
from plait.runtime.spark.session import finds_plait, sockets_are_private

ROOT = str(Path(plait.__file__).parents[1])

FORKED = """
import os, sys
from plait.runtime.spark import daemon
daemon.load()
loaded = set(sys.modules)
from plait.kernels import matching
read, write = os.pipe()
if not os.fork():
    from plait.kernels.warm import warm
    from plait.runtime.spark.tasks import settle
    settle()
    warm()
    os.write(write, str(sorted(set(sys.modules) - loaded)).encode())
    os._exit(0)
os.wait()
print(os.read(read, 10000).decode())
"""


def test_a_forked_worker_finds_the_kernels_loaded_and_uses_them() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("way", ["setting", "variable"])
def test_another_interpreter_need_not_have_plait(way: str) -> None:
    other = "/usr/bin/another-python"
    stated = {"spark.pyspark.python": other} if way == "setting" else {}
    environment = {"PYSPARK_PYTHON": other} if way == "variable" else {}
    assert not finds_plait(stated, {**environment, "PYTHONPATH": ROOT})


def test_plait_is_found_where_it_is_installed_or_its_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert finds_plait({"spark.pyspark.python": sys.executable}, {"PYTHONPATH": ROOT})
    monkeypatch.setattr(session, "_is_installed", lambda: False)
    assert finds_plait({}, {"PYTHONPATH": os.pathsep.join(("/elsewhere", ROOT))})
    assert not finds_plait({}, {"PYTHONPATH": "/elsewhere"})


@pytest.mark.parametrize(("mask", "are_private"), [(0o022, True), (0o077, True), (0o002, False), (0o000, False)])
def test_sockets_are_used_only_where_nobody_else_may_write_to_them(mask: int, are_private: bool) -> None:
    before = os.umask(mask)
    try:
        assert sockets_are_private() == are_private
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_a_worker_whose_task_nobody_waits_for_any_more_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    def fails(error: type[Exception]) -> int:
        raise error

    assert [quiet(fails)(error) for error in (BrokenPipeError, ConnectionResetError)] == [1, 1]
    with pytest.raises(ValueError):
        quiet(fails)(ValueError)
    assert quiet(lambda sock, authenticated: sock + authenticated)(0, 2) == 2
    assert capfd.readouterr().err == ""
