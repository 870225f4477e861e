"""A Kafka broker for tests: one process, broker and controller at once."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kafka.jars import fetched_jars

_CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qk"
_PATIENCE_S: Final = 60
_JAVA: Final = ("java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Broker:
    """A broker in a folder that is formatted for it."""

    def __init__(self, folder: Path, java: list[str], port: int) -> None:
        self._folder, self._java, self._port = folder, java, port
        self._process = self._start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port}"

    def restart(self) -> None:
        """Stop it and start it again, with the topics it has."""
        self.stop()
        self._process = self._start()

    def stop(self) -> None:
        """Stop it."""
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [*self._java, "kafka.Kafka", str(self._folder / "server.properties")]
        with (self._folder / "broker.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        _await(self._port, process, self._folder / "broker.log")
        return process


@contextmanager
def running_broker() -> Iterator[Broker]:
    """Provide a broker that has no topics. Raises NoJarsError."""
    jars = fetched_jars()
    with tempfile.TemporaryDirectory(prefix="plait-broker-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        port, controller = free_port(), free_port()
        _configure(folder, port, controller)
        java = [*_JAVA, "-cp", f"{jars}/*:{folder}"]
        formatted = [
            *java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            _CLUSTER,
            "-c",
            str(folder / "server.properties"),
        ]
        subprocess.run(formatted, capture_output=True, timeout=_PATIENCE_S, check=True)
        broker = Broker(folder, java, port)
        try:
            yield broker
        finally:
            broker.stop()


def _configure(folder: Path, port: int, controller: int) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "false",
        "num.network.threads": 2,
        "num.io.threads": 2,
        "log.cleaner.enable": "false",
        "log.retention.ms": -1,  # records of tests are of any time
    }
    (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (folder / "log4j2.yaml").write_text("Configuration:\n  Loggers:\n    Root:\n      level: ERROR\n")


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the broker did not start: {log.read_text(errors='replace')[-2000:]}")
