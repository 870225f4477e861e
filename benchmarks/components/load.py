"""`python -m benchmarks load`: what the service costs a run whose status and events many ask for.

The ten streams of `ajoin` flow, and `--queries` queries run. For a while nobody asks; then `--clients` clients, in a
process of their own, listen to the events and ask for the status once a second, each on connections of its own; then
nobody again. Told are the batches of each part, what the thread of the service has taken of a processor, and what was
open and kept before and after.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from benchmarks.workloads.ajoin_queries import (
    ATTRIBUTES,
    LARGEST_VALUE,
    STREAMS,
    WINDOWS_S,
    AjoinWanted,
    draw_queries,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait import Engine
    from plait.runtime.batch.events import BatchEvent
    from plait.server.service import Service

_MOST_SLOWER: Final = 1.05
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a run: seconds of its batches, and of a processor that the service's thread has taken; at its end
    how many files and threads were open, Python objects alive, and bytes of memory taken.
    """

    name: str
    seconds: float
    batches: tuple[float, ...]
    service_cpu_s: float
    files: int
    threads: int
    objects: int
    memory_bytes: int


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments; 1 if batches were slower by more than 5 %."""
    asked = parser("load", "What the service costs a run whose status and events many ask for.")
    asked.add_argument("--clients", type=positive, default=200)
    asked.add_argument("--queries", type=positive, default=100)
    asked.add_argument("--seconds", type=positive, default=300, help="how long the clients ask")
    asked.add_argument("--without", type=positive, default=60, help="how long nobody asks, before and after")
    asked.add_argument("--settle", type=positive, default=30, help="seconds before that")
    asked.add_argument("--rate", type=positive, default=50, help="rows a second of each stream")
    given = asked.parse_args(arguments)
    parts, seen = _run(given)
    console = Console()
    console.print(table(parts))
    console.print(seen)
    if given.json is not None:
        write_json(given.json, {**surroundings(), "parts": [asdict(part) for part in parts], "clients": seen})
    return int(slower(parts) > _MOST_SLOWER)


def slower(parts: list[Part]) -> float:
    """Return how many times as long as otherwise a batch takes while clients ask, by medians."""
    quiet = [seconds for part in parts if part.name != "asked" for seconds in part.batches]
    return median(seconds for part in parts if part.name == "asked" for seconds in part.batches) / median(quiet)


def _run(given: Any) -> tuple[list[Part], dict[str, Any]]:
    from plait import Engine
    from plait.runtime.spark.session import open_session
    from plait.server.addresses import Listening
    from plait.server.of_engine import ServedEngine
    from plait.server.service import Rules, Service

    spark = open_session(f"local[{given.cores}]", {name: each for name, each in given.conf if "spark." in name})
    batches: list[float] = []

    def heard(event: BatchEvent) -> None:
        batches.append(event.seconds)

    with (
        tempfile.TemporaryDirectory(prefix="plait-load-") as place,
        Service(Rules(listening=Listening(host="127.0.0.1", port=0))) as service,
    ):
        checkpoint = str(Path(place) / "checkpoint")
        engine = Engine(spark, checkpoint=checkpoint, listener=heard)
        _declare(engine, spark, given)
        service.begin(ServedEngine(engine, checkpoint))
        handle = engine.start(trigger="0 seconds")
        time.sleep(given.settle)
        watch = _Watch(batches)
        parts = [watch.part("before", given.without)]
        with _clients(service, given.clients) as clients:
            parts.append(watch.part("asked", given.seconds))
            seen: dict[str, Any] = json.loads(clients.communicate()[0])
        parts.append(watch.part("after", given.without))
        handle.stop()
    spark.stop()
    return parts, seen


def _declare(engine: Engine, spark: SparkSession, given: Any) -> None:
    from plait import sinks

    for number, stream in enumerate(STREAMS):
        reader = spark.readStream.name(stream.name).format("rate").option("rowsPerSecond", given.rate)
        values = LARGEST_VALUE + 1
        attributes = [f"pmod(xxhash64(value, {number}, {each}), {values}) AS a{each}" for each in range(ATTRIBUTES)]
        frame = reader.load().selectExpr("timestamp AS ts", "value AS nr", *attributes)
        engine.stream(stream.name, frame, time="ts", window=f"{max(WINDOWS_S)} seconds")
    wanted = AjoinWanted(sizes=(2,), rows_per_s=given.rate, selections=True)
    for query in islice(draw_queries(wanted, given.seed), given.queries):
        windows = dict.fromkeys(query.relations, f"{query.window_s} seconds")
        engine.query(query.name, query.select_sql(), sink=sinks.noop(), windows=windows)


def _clients(service: Service, count: int) -> subprocess.Popen[str]:
    address = urlsplit(service.url)
    command = [sys.executable, "-m", "benchmarks.components.load_clients", str(address.hostname), str(address.port)]
    return subprocess.Popen([*command, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class _Watch:
    """Watches parts of a run, whose `batches` are added to a list."""

    def __init__(self, batches: list[float]) -> None:
        self._batches = batches

    def part(self, name: str, seconds: float) -> Part:
        """Wait so long, and return what was seen."""
        first, cpu = len(self._batches), _service_cpu_s()
        time.sleep(seconds)
        last, cpu = tuple(self._batches[first:]), _service_cpu_s() - cpu
        gc.collect()
        return Part(
            name=name,
            seconds=seconds,
            batches=last,
            service_cpu_s=cpu,
            files=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            objects=len(gc.get_objects()),
            memory_bytes=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        )


def _service_cpu_s() -> float:
    return sum(_cpu_s(thread.native_id) for thread in _service_threads() if thread.native_id is not None)


def _service_threads() -> Iterator[threading.Thread]:
    return (thread for thread in threading.enumerate() if thread.name.startswith("plait-service"))


def _cpu_s(thread: int) -> float:
    fields = Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def table(parts: list[Part]) -> Table:
    """Return what was seen, a line a part."""
    shown = Table("", "s", "batches", "median s", "service cpu", "files", "threads", "objects", "MB", title="load")
    for part in parts:
        shown.add_row(
            part.name,
            f"{part.seconds:.0f}",
            str(len(part.batches)),
            f"{median(part.batches or (0.0,)):.3f}",
            f"{part.service_cpu_s / part.seconds:.1%}",
            str(part.files),
            str(part.threads),
            f"{part.objects:,}",
            f"{part.memory_bytes / 1e6:.0f}",
        )
    return shown


__all__ = ["Part", "main", "slower", "table"]
