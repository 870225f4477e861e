"""A Flink session cluster in the process's own JVM, and what its REST interface tells about jobs."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.systems.task import Task, UnableError
from plait.errors import PlaitError

HEAP = "8g"
NETWORK_MB_A_QUERY = 32
CHECKPOINT_S = 10
_REFUSALS = "org.apache.flink.table.api."
_POLL_S = 0.05


def set_up_jvm(task: Task) -> None:
    """Say how PyFlink is to start its JVM; the jars are where ``make peers`` put them, beside the interpreter."""
    jars = sorted((Path(sys.prefix) / "jars").glob("*.jar"))
    if not jars:
        raise PlaitError(f"no jars for Parquet in {Path(sys.prefix) / 'jars'}: run `make peers`")
    # Java drops folders from its path that are not there when it starts.
    classes(task).mkdir(parents=True, exist_ok=True)
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join((*map(str, jars), str(classes(task))))
    os.environ["JVM_ARGS"] = f"-Xmx{HEAP} -XX:+UseParallelGC -Duser.timezone=UTC"
    os.environ["FLINK_LOG_DIR"] = task.scratch
    os.environ["ROOT_LOG_LEVEL"] = "WARN"


def classes(task: Task) -> Path:
    """Return the folder on the JVM's path for classes that are compiled in the run."""
    return Path(task.scratch) / "classes"


def settings(task: Task) -> dict[str, str]:
    """Return the settings of the cluster and of its jobs, the user's last."""
    network = f"{64 + NETWORK_MB_A_QUERY * len(task.questions.queries)}mb"
    return {
        "pipeline.object-reuse": "true",
        "taskmanager.memory.managed.size": "0",
        "taskmanager.memory.network.min": network,
        "taskmanager.memory.network.max": network,
        "execution.checkpointing.interval": f"{CHECKPOINT_S} s",
        "execution.checkpointing.checkpoints-after-tasks-finish": "false",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": Path(task.checkpoint).as_uri(),
        "rest.address": "localhost",
        "rest.bind-address": "localhost",
        "execution.runtime-mode": "STREAMING",
        "table.local-time-zone": "UTC",
        "restart-strategy.type": "none",
        "io.tmp.dirs": task.scratch,
        **dict(task.options),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running cluster that listens at a port."""

    port: int

    def ask(self, path: str) -> Any:
        """Return what the REST interface answers."""
        with urllib.request.urlopen(f"http://localhost:{self.port}/{path}") as answer:
            return json.load(answer)

    def cancel(self, jobs: list[str]) -> None:
        """End jobs, and return when they have ended. Raises PlaitError if one failed."""
        for job in jobs:
            self._tell(f"jobs/{job}?mode=cancel", "PATCH")
        for job in jobs:
            while self.state(job) != "CANCELED":
                time.sleep(_POLL_S)

    def take_checkpoints(self, jobs: list[str], seconds: float) -> None:
        """Let jobs take a checkpoint each; return when they are complete or failed, or after so many seconds."""
        deadline = time.monotonic() + seconds
        asked = {job: self._tell(f"jobs/{job}/checkpoints", "POST")["request-id"] for job in jobs}
        for job, number in asked.items():
            while self.ask(f"jobs/{job}/checkpoints/{number}")["status"]["id"] != "COMPLETED":
                if time.monotonic() > deadline:
                    return
                time.sleep(_POLL_S)

    def _tell(self, path: str, method: str) -> Any:
        request = urllib.request.Request(
            f"http://localhost:{self.port}/{path}",
            data=b"{}",
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def state(self, job: str) -> str:
        """Return a job's state. Raises PlaitError with Flink's words if it failed, and UnableError if that was because
        an operator refused its plan: then it is Flink's table layer that complains, and it would again.
        """
        found = str(self.ask(f"jobs/{job}")["state"])
        if found == "FAILED":
            entries = self.ask(f"jobs/{job}/exceptions").get("exceptionHistory", {}).get("entries", [])
            trace = entries[0]["stacktrace"] if entries else "no cause"
            cause = innermost(trace)
            if cause.startswith(_REFUSALS):
                raise UnableError(f"Flink plans the query, but cannot run the plan: {cause}")
            raise PlaitError(f"Flink's job ended {found}: {cause}")
        return found

    def wait_until_running(self, jobs: list[str]) -> None:
        """Return when every task of the jobs runs. Raises PlaitError if one fails."""
        for job in jobs:
            while self.state(job) != "RUNNING" or not self._all_run(job):
                time.sleep(_POLL_S)

    def _all_run(self, job: str) -> bool:
        return all(vertex["status"] == "RUNNING" for vertex in self.ask(f"jobs/{job}")["vertices"])

    def wait_until_ended(self, jobs: list[str]) -> float:
        """Return when the last of the jobs ended, by Flink's clock. Raises PlaitError unless all finished."""
        for job in jobs:
            while (found := self.state(job)) not in ("FINISHED", "CANCELED"):
                time.sleep(_POLL_S)
            if found != "FINISHED":
                raise PlaitError(f"Flink's job ended {found}: expected FINISHED")
        return max(float(self.ask(f"jobs/{job}")["end-time"]) / 1000 for job in jobs)

    def shuffled_bytes(self, jobs: list[str]) -> int:
        """Return the bytes that the tasks of the jobs wrote for other tasks; those within a chain of operators are
        handed on as objects.
        """
        vertices = [vertex for job in jobs for vertex in self.ask(f"jobs/{job}")["vertices"]]
        return sum(int(vertex["metrics"]["write-bytes"]) for vertex in vertices)


@contextmanager
def running_cluster(task: Task) -> Iterator[Cluster]:
    """Start a session cluster with room for all queries at a time, and close it at the end."""
    from pyflink.common import Configuration
    from pyflink.java_gateway import get_gateway

    configuration = Configuration()
    for name, value in {**settings(task), "rest.bind-port": "0", "rest.port": "0"}.items():
        configuration.set_string(name, value)
    package = get_gateway().jvm.org.apache.flink.runtime.minicluster
    described = package.MiniClusterConfiguration.Builder().setConfiguration(configuration._j_configuration)
    described = described.setNumTaskManagers(1).setNumSlotsPerTaskManager(task.cores * len(task.questions.queries))
    cluster = package.MiniCluster(described.build())
    cluster.start()
    try:
        yield Cluster(port=int(cluster.getRestAddress().get().getPort()))
    finally:
        cluster.close()


def innermost(trace: str) -> str:
    """Return the message of the innermost exception of a stack trace."""
    return trace.rpartition("Caused by: ")[2].partition("\n\tat ")[0]
