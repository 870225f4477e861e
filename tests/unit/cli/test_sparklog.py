"""Where Spark's log is named: only where it may say more than the message."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer

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


class OfPySpark(TCPServer):
    """A server such as PySpark has one for accumulators."""


OfPySpark.__module__ = "pyspark.accumulators"


class Breaking(BaseRequestHandler):
    """A connection that the JVM has broken off."""

    def handle(self) -> None:
        """Fail as PySpark does."""
        raise EOFError("the JVM has gone")


@pytest.mark.parametrize(("kind", "shown"), [(OfPySpark, ""), (TCPServer, "EOFError: the JVM has gone")])
def test_what_servers_of_pyspark_fail_with_is_in_the_log_and_not_on_the_screen(
    kind: type[TCPServer], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = TCPServer.handle_error
    with spark_log() as log, kind(("localhost", 0), Breaking) as server:
        with socket.create_connection(server.server_address[:2]):  # type: ignore[arg-type]
            server.handle_request()
        written = log.path.read_text()
    assert ("EOFError: the JVM has gone" in written) == (not shown)
    said = capsys.readouterr().err
    assert shown in said
    assert bool(said) == bool(shown)
    assert TCPServer.handle_error is before
