"""The recovery workload as a script, run by ``plait run`` in a process of its own on any master."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from tests.cluster.standalone import descendants, kill
from tests.recovery.workload import DELAY_S, QUERIES, SCHEMAS, WINDOW_S, make_input

PARALLELISM = 3
_ROOT = Path(__file__).parents[2]
_SECONDS = 300
PARTITIONS = {"parts": ", partitionBy 'name'"}

Event = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: exit status, the events of its ``--json`` lines, and what it wrote to standard error."""

    status: int
    events: tuple[Event, ...]
    errors: str

    @property
    def finished(self) -> Event:
        """The last event."""
        assert self.status == 0, self.errors[-3000:]
        return self.events[-1]

    def batches(self) -> list[Event]:
        """The events of batches."""
        return [event for event in self.events if event["event"] == "batch"]


def prepare(directory: Path, batches: int) -> Path:
    """Write the input and the script into a new directory; return the script."""
    directory.mkdir()
    make_input(directory, batches=batches)
    statements = [
        f"CREATE STREAM {name} ({schema}) USING parquet OPTIONS (path 'in/{name}', maxFilesPerTrigger '1', "
        f"deadLetter 'dead') TIMESTAMP BY ts WINDOW INTERVAL {WINDOW_S} SECONDS DELAY INTERVAL {DELAY_S} SECONDS;"
        for name, schema in SCHEMAS.items()
    ]
    statements += [
        f"CREATE QUERY {name} INTO {kind} OPTIONS (path 'out/{name}'{PARTITIONS.get(name, '')}) AS {sql};"
        for name, (kind, sql) in QUERIES.items()
    ]
    script = directory / "workload.sql"
    script.write_text("\n".join([*statements, f"SET plait.parallelism = {PARALLELISM};"]))
    return script


def run(
    script: Path,
    master: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Outcome:
    """Run the script to its end, telling `on_event` of every line as it comes."""
    command = [sys.executable, "-m", "plait.cli.main", "run", str(script), "--available-now", "--json"]
    command += ["--master", master, "--conf", "spark.driver.host=127.0.0.1", *arguments]
    environment = dict(environment or {})
    variables = {
        **os.environ,
        **environment,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), environment.get("PYTHONPATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(script.parent / "spark-local"),
        "TMPDIR": str(script.parent),
    }
    log = script.parent / "errors"
    events: list[Event] = []
    with log.open("w") as errors:
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        patience = Timer(_SECONDS, process.kill)
        patience.start()
        try:
            for line in process.stdout:
                events.append(json.loads(line))
                if on_event is not None:
                    on_event(events[-1])
            status = process.wait()
        finally:
            patience.cancel()
            for pid in (process.pid, *descendants(process.pid)):
                kill(pid)
            process.wait()
            process.stdout.close()
    return Outcome(status=status, events=tuple(events), errors=log.read_text())
