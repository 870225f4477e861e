"""A real standalone cluster on this machine: master and workers of the installed Spark, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

_HOME = Path(pyspark.__file__).parent
_ROOT = Path(__file__).parents[2]
_DEADLINE_S = 60.0


@dataclass(slots=True)
class Cluster:
    """A running cluster. Everything it writes lies under `directory`."""

    directory: Path
    environment: Mapping[str, str]
    port: int = 0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def master(self) -> str:
        """The master's URL."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int) -> None:
        """Start the master and its workers; return once these have registered."""
        self.port = free_port()
        address = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
        self._launch("master", "org.apache.spark.deploy.master.Master", *address)
        self._wait("master", "I have been elected leader", 1)
        for number in range(workers):
            self.add_worker(number)
        self._wait("master", "Registering worker", workers)

    def add_worker(self, number: int, **environment: str) -> None:
        """Start a worker of one core, with its own directories and these variables."""
        work = self.directory / f"work-{number}"
        size = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work))
        self._launch(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", self.master, *size, **environment)

    def kill_worker(self, number: int) -> int:
        """Kill a worker and all it has started, as ``kill -9`` does; return how many executors were among it."""
        worker = self.processes[number + 1]
        family = descendants(worker.pid)
        executors = sum(pid in family and "CoarseGrainedExecutorBackend" in line for pid, _, line in _processes())
        for pid in (worker.pid, *family):
            kill(pid)
        worker.wait()
        return executors

    def stop(self) -> None:
        """Kill every process of the cluster."""
        for process in reversed(self.processes):
            for pid in (process.pid, *descendants(process.pid)):
                kill(pid)
            process.wait()

    def log(self, name: str) -> str:
        """Return what a process has logged."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def _launch(self, name: str, main: str, *arguments: str, **environment: str) -> None:
        local = self.directory / f"local-{name}"
        local.mkdir()
        variables = {
            **os.environ,
            **self.environment,
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "256m",
            **environment,
        }
        with (self.directory / f"{name}.log").open("wb") as log:
            command = [str(_HOME / "bin" / "spark-class"), main, *arguments]
            process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)

    def _wait(self, name: str, sign: str, count: int) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while self.log(name).count(sign) < count:
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                raise RuntimeError(f"the cluster did not start; its {name} says: {self.log(name)[-2000:]}")
            time.sleep(0.1)


@contextmanager
def cluster(directory: Path, workers: int = 2, **environment: str) -> Iterator[Cluster]:
    """Provide a cluster whose executors find this checkout; end all of it afterwards."""
    directory.mkdir()
    paths = [str(_ROOT), *filter(None, [environment.pop("PYTHONPATH", "")])]
    shared = {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable, **environment}
    made = Cluster(directory=directory, environment=shared)
    try:
        made.start(workers)
        yield made
    finally:
        made.stop()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """Return the processes that `pid` has started, and those that these have started."""
    children: dict[int, list[int]] = {}
    for child, parent, _ in _processes():
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, ()))
    for known in found:
        found += children.get(known, ())
    return found


def _processes() -> list[tuple[int, int, str]]:
    """Return (process, parent, command line) of all processes; Linux may lack the command that lists them."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        )
        lines = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
        return [(int(pid), int(parent), " ".join(rest)) for pid, parent, *rest in lines]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            found.append((int(folder.name), int(parent), (folder / "cmdline").read_text(errors="replace")))
        except OSError:  # it has ended meanwhile
            continue
    return found


def kill(pid: int) -> None:
    """Kill a process that may be gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
