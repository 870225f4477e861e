"""`python -m benchmarks start`: from `plait run` to the first batch and from the last to the end, part by part.

Three streams of Parquet files are joined, a file of each a batch. Runs with the class-data archive of Spark's JVM take
turns with runs without it. Linux only, since the processes' times come from /proc.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import write_json
from benchmarks.measure import watching
from benchmarks.surroundings import surroundings
from plait.runtime.spark.archive import find_archive

PARTS = {
    "load": "load the command line",
    "check": "read and check the script",
    "jvm": "start the JVM",
    "spark": "start Spark",
    "engine": "load the rest of Plait",
    "sources": "open the sources",
    "streaming": "plan, start the streaming query",
    "waiting": "until the first batch is called for",
    "first batch": "the first batch",
    "later batch": "a later batch (median)",
    "stop": "stop Spark",
}
_SCRIPT = """
SET spark.master = 'local[{cores}]';
CREATE STREAM r USING parquet OPTIONS (path 'r', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 200 SECONDS;
CREATE STREAM s USING parquet OPTIONS (path 's', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 200 SECONDS;
CREATE STREAM t USING parquet OPTIONS (path 't', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 200 SECONDS;
CREATE QUERY q INTO parquet OPTIONS (path 'out', existing 'overwrite')
  AS SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id FROM r, s, t WHERE r.a = s.a AND s.b = t.b;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: milliseconds by part, and processor seconds by kind of process."""

    parts_ms: dict[str, float]
    cpu_seconds: dict[str, float]


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments."""
    asked = parser("start", "What a start of Plait takes, part by part.")
    asked.add_argument("--repeat", type=positive, default=3, help="runs with the archive, and as many without")
    asked.add_argument("--rows", type=positive, default=10_000, help="rows of each stream in a batch")
    asked.add_argument("--batches", type=positive, default=20, help="batches")
    given = asked.parse_args(arguments)
    archive = find_archive()
    ways = {"no archive": True} if archive is None or archive.path() is None else {"archive": False, "no archive": True}
    found: dict[str, list[Run]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(prefix="plait-start-") as place:
        directory = Path(place)
        (directory / "three.sql").write_text(_SCRIPT.format(cores=given.cores))
        write_streams(directory, given.rows, given.batches, given.seed)
        for number in range(given.repeat):
            for way, is_without in ways.items():
                found[way].append(_run(directory, f"{way}-{number}".replace(" ", "-"), is_without=is_without))
    _show(found)
    if given.json is not None:
        write_json(
            given.json, {**surroundings(), "runs": {way: list(map(asdict, runs)) for way, runs in found.items()}}
        )
    return 0


def write_streams(directory: Path, rows: int, batches: int, seed: int) -> None:
    """Write streams r, s and t as Parquet files, one of each a batch."""
    random = np.random.default_rng(seed)
    for stream, keys in (("r", "a"), ("s", "ab"), ("t", "b")):
        (directory / stream).mkdir()
        for batch in range(batches):
            ids = np.arange(batch * rows, (batch + 1) * rows)
            columns = {"id": pa.array(ids), "ts": pa.array(ids * 100_000, pa.timestamp("us", "UTC"))}
            columns |= {key: pa.array(random.integers(0, 2 * rows, rows)) for key in keys}
            pq.write_table(pa.table(columns), directory / stream / f"{batch:05}.parquet")


def _run(directory: Path, name: str, *, is_without: bool) -> Run:
    trace = directory / f"{name}.json"
    environment = {**os.environ, "PLAIT_TRACE": str(trace)}
    if is_without:
        # A file where a directory would have to be: the run finds no archive, and makes none.
        environment["XDG_CACHE_HOME"] = str(directory / "three.sql")
    command = [sys.executable, "-m", "benchmarks.components.start_traced", "run", str(directory / "three.sql")]
    command += ["--available-now", "--json", "--checkpoint", str(directory / f"{name}.checkpoint")]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    with watching(running.pid, interval_s=0.2) as watch:
        status = running.wait()
    if status:
        raise RuntimeError(f"plait run ended with status {status}")
    use = watch.take()
    cpu: dict[str, float] = {}
    for process in () if use is None else use.processes:
        cpu[process.kind] = cpu.get(process.kind, 0.0) + process.cpu_seconds
    return Run(parts_ms=parts(json.loads(trace.read_text())), cpu_seconds=cpu)


def parts(steps: list[tuple[str, float, float]]) -> dict[str, float]:
    """Return the milliseconds of each of `PARTS` from traced steps (name, begin, seconds), in any order."""
    first = {name: (begin, seconds) for name, begin, seconds in sorted(steps, key=lambda step: step[1], reverse=True)}
    batches = [(begin, seconds) for name, begin, seconds in sorted(steps, key=lambda step: step[1]) if name == "batch"]
    ends = {name: begin + seconds for name, (begin, seconds) in first.items()}
    seconds = {
        **{name: first[name][1] for name in ("load", "check", "jvm", "sources", "streaming", "stop")},
        "spark": first["session"][1] - first["jvm"][1],
        "engine": first["sources"][0] - ends["session"],
        "waiting": batches[0][0] - ends["streaming"],
        "first batch": batches[0][1],
        "later batch": median(took for _, took in batches[1:] or batches),
    }
    return {name: 1000 * seconds[name] for name in PARTS}


def _show(found: dict[str, list[Run]]) -> None:
    table = Table(title="Medians, milliseconds")
    table.add_column("part")
    for way, runs in found.items():
        table.add_column(f"{way} ({len(runs)})", justify="right")
    for part, meaning in PARTS.items():
        table.add_row(meaning, *(f"{median(run.parts_ms[part] for run in runs):,.0f}" for runs in found.values()))
    table.add_section()
    for kind in ("driver", "jvm", "worker"):
        values = (median(run.cpu_seconds.get(kind, 0.0) for run in runs) for runs in found.values())
        table.add_row(f"processor time, {kind}", *(f"{1000 * value:,.0f}" for value in values))
    Console().print(table)
