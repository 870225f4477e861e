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


@contextmanager
def running_broker() -> Iterator[str]:
    """Provide the address of a broker that has no topics. Raises NoJarsError."""
    jars = fetched_jars()
    with tempfile.TemporaryDirectory(prefix="plait-broker-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        port, controller = _free_port(), _free_port()
        _configure(folder, port, controller)
        java = [*_JAVA, "-cp", f"{jars}/*:{folder}"]
        settings = str(folder / "server.properties")
        formatted = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings]
        subprocess.run(formatted, capture_output=True, timeout=_PATIENCE_S, check=True)
        with (folder / "broker.log").open("wb") as log:
            process = subprocess.Popen([*java, "kafka.Kafka", settings], stdout=log, stderr=subprocess.STDOUT)
        try:
            _await(port, process, folder / "broker.log")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


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


def _free_port() -> int:
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
