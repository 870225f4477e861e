"""Where Spark's log is named: only where it may say more than the message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.cli.sparklog import spark_log
from plait.errors import OptionError, PlaitError, SinkError, SourceError


def of_spark() -> PlaitError:
    error = SourceError("the run failed")
    error.__cause__ = RuntimeError("what Spark threw")
    return error


def raised_again(error: PlaitError) -> PlaitError:
    error.__cause__ = error
    return error


def failing(error: Exception, logs: list[Path]) -> None:
    with spark_log() as log:
        logs.append(log.path)
        with log.collecting():
            os.write(2, b"WARN: something of no interest\n")
        raise error


def log_after(error: Exception) -> Path:
    logs: list[Path] = []
    with pytest.raises(type(error)):
        failing(error, logs)
    return logs[0]


@pytest.mark.parametrize("error", [of_spark(), RuntimeError("of nobody")], ids=["of Spark", "unexpected"])
def test_what_spark_wrote_is_named_where_spark_failed(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    path = log_after(error)
    assert capfd.readouterr().err == f"plait: what Spark wrote is in {path}\n"
    assert path.read_text() == "WARN: something of no interest\n"
    path.unlink()


@pytest.mark.parametrize(
    "error", [OptionError("no query"), raised_again(SinkError("others' results"))], ids=["refused", "raised again"]
)
def test_what_spark_wrote_is_not_named_where_plait_refuses(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    path = log_after(error)
    assert capfd.readouterr().err == ""
    assert not path.exists()
