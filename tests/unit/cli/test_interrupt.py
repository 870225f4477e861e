"""Ctrl-C: once for a clean end, twice for an end at once."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from plait.cli.execution import Choices, execute, settle
from plait.cli.main import main
from plait.cli.output.plain import PlainOutput
from plait.cli.script import read_sound_script
from plait.cli.stopping import StopOnSignal


def test_the_first_signal_asks_for_an_end_and_says_so_once() -> None:
    said: list[str] = []
    with StopOnSignal(lambda: said.append("stopping")) as stop:
        assert not stop.requested.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.requested.is_set()
    assert said == ["stopping"]


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_gives_up(second: signal.Signals) -> None:
    with StopOnSignal(lambda: None) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)


def test_handlers_are_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopOnSignal(lambda: None):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_came_while_a_session_was_opened_is_obeyed_once_it_is_there() -> None:
    with StopOnSignal(lambda: None) as stop:
        stop.obey()
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        stop.obey()


def test_a_jvm_that_is_being_started_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is interrupted before it has told where it listens goes on for ever, whoever ends."""
    done: list[str] = []

    def opened(*args: object, **options: object) -> SimpleNamespace:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        done.append("opened")
        return SimpleNamespace(stop=lambda: done.append("stopped"))

    monkeypatch.setattr("plait.runtime.spark.session.open_session", opened)
    file = tmp_path / "s.sql"
    file.write_text(
        "CREATE STREAM s USING rate TIMESTAMP BY timestamp; CREATE QUERY q INTO noop AS SELECT value FROM s"
    )
    script = read_sound_script(file)
    shown = io.StringIO()
    with pytest.raises(KeyboardInterrupt), PlainOutput(shown) as output:
        execute(settle(script, Choices()), output)
    assert done == ["opened", "stopped"]
    assert shown.getvalue() == "note: interrupted: this ends once Spark has started\n"


def test_a_jvm_that_does_not_start_can_be_given_up() -> None:
    with StopOnSignal(lambda: None, patience_seconds=0.05):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.06)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(130)])
def test_an_interrupted_command_says_so_and_nothing_else(
    ending: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_command() -> None:
        raise ending

    monkeypatch.setattr("plait.cli.app.run_command", run_command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "plait: interrupted\n"


def test_nothing_is_imported_before_a_ctrl_c_ends_well() -> None:
    program = (
        "import plait.cli.main, sys; print(*(n for n in sys.modules if n.startswith(('plait', 'typer', 'pyarrow'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) <= {"plait", "plait.cli", "plait.cli.main", "plait.errors", "plait.version"}
