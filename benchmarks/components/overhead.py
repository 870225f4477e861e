"""`python -m benchmarks overhead`: what statistics and planning take of a run's processor time.

Three streams are joined, a file of each a batch. In one and the same run the functions that keep statistics and plan
are timed, in the driver and in the workers, and their seconds held against those of all its processes, the JVM's
included. It tells more than the difference of two runs, which noise would hide.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.components.overhead_timed import DIRECTORY, TIMED, time_functions
from benchmarks.components.start import write_streams
from benchmarks.figures import write_json
from benchmarks.measure import cpu_seconds_by_kind
from benchmarks.surroundings import surroundings

MOST_SHARE = 0.03
_SELECT = "SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id FROM r, s, t WHERE r.a = s.a AND s.b = t.b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of a processor: of all processes `by_kind`, and of what they were `for_statistics`."""

    by_kind: dict[str, float]
    for_statistics: dict[str, float]

    @property
    def share(self) -> float:
        """Return the share of statistics and planning."""
        return sum(self.for_statistics.values()) / sum(self.by_kind.values())


def main(arguments: list[str]) -> int:
    """Run the benchmark; the exit status is 1 if the share is above `MOST_SHARE`."""
    asked = parser("overhead", "What statistics and planning take of the processor.")
    asked.add_argument("--rows", type=positive, default=50_000, help="rows of each stream in a batch")
    asked.add_argument("--batches", type=positive, default=20, help="batches")
    asked.add_argument("--strategy", default="dppick", help="how to plan")
    asked.add_argument("--cycle", default="1 batches", help="how often the plan is reconsidered")
    given = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="plait-overhead-") as place:
        directory = Path(place)
        write_streams(directory, given.rows, given.batches, given.seed)
        settings = {"plait.strategy": given.strategy, "plait.cycle": given.cycle, **dict(given.conf)}
        spent = _run(directory, given.cores, settings)
    _show(spent)
    if given.json is not None:
        write_json(
            given.json,
            {**surroundings(), "seconds": spent.by_kind, "statistics": spent.for_statistics, "share": spent.share},
        )
    return int(spent.share > MOST_SHARE)


def _run(directory: Path, cores: int, settings: dict[str, str]) -> Spent:
    counted = directory / "counted"
    counted.mkdir()
    os.environ[DIRECTORY] = str(counted)
    from plait import Engine, sinks
    from plait.runtime.spark.session import open_session

    write = time_functions()
    daemon = {"spark.python.daemon.module": "benchmarks.components.overhead_timed"}
    spark = open_session(f"local[{cores}]", daemon)
    engine = Engine(spark, checkpoint=str(directory / "checkpoint"))
    for name, value in settings.items():
        engine.set_option(name, value)
    for stream in "rst":
        folder = str(directory / stream)
        reader = spark.readStream.name(stream).schema(spark.read.parquet(folder).schema)
        engine.stream(stream, reader.option("maxFilesPerTrigger", 1).parquet(folder), time="ts", window="1 hour")
    engine.query("q", _SELECT, sink=sinks.noop())
    engine.run_available()
    write()
    by_kind = cpu_seconds_by_kind(os.getpid())
    spark.stop()
    found = [json.loads(file.read_text()) for file in counted.iterdir()]
    return Spent(by_kind=by_kind, for_statistics={what: sum(each[what] for each in found) for what in TIMED})


def _show(spent: Spent) -> None:
    whole = sum(spent.by_kind.values())
    table = Table(title="Processor time of a run")
    table.add_column("what")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for kind, seconds in spent.by_kind.items():
        table.add_row(kind, f"{seconds:.2f}", "")
    table.add_section()
    for what, seconds in spent.for_statistics.items():
        table.add_row(what, f"{seconds:.3f}", f"{seconds / whole:.2%}")
    table.add_row("statistics and planning", f"{sum(spent.for_statistics.values()):.3f}", f"{spent.share:.2%}")
    Console().print(table)


__all__ = ["MOST_SHARE", "Spent", "main"]
