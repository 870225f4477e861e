"""One run of the state benchmark: store rows through the engine, then let small batches probe them.

``python -m benchmarks.components.state_run TASK OUTCOME``, both files of JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.components.stored_data import PROBES_SCHEMA, STORED_SCHEMA, StoredWorkload, make_probes
from benchmarks.measure import ProcessUse, Use, watching
from benchmarks.workloads.data import write_files
from plait import sinks

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent

QUERY = "found"
SELECT = """
SELECT p.ts AS probe_ts, p.id AS id, s.ts AS ts, s.k AS k, s.v AS v, s.w AS w FROM probes p JOIN stored s ON p.k = s.k
""".strip()
_WATCH_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTask:
    """Store the rows of `data`, then probe them with `batches` batches of `batch_rows` after one to warm up.

    `smallest`: the smallest store of the family, whose keys the probes draw from.
    """

    data: str
    smallest: StoredWorkload
    batch_rows: int
    batches: int
    seed: int
    cores: int
    scratch: str
    conf: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> str:
        """Return the task as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StateTask:
        """Return the task that `as_json` wrote."""
        value: dict[str, Any] = json.loads(text)
        value["smallest"] = StoredWorkload(**value["smallest"])
        value["conf"] = tuple((name, setting) for name, setting in value["conf"])
        return cls(**value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOutcome:
    """`batch_seconds`: of each probing batch but the first, from the end of the one before it; `inside_seconds`: the
    part of it that is Plait's, the rest being Spark's own overhead of a micro-batch. Use: peaks while storing, and
    while probing.
    """

    stored_tuples: int
    stored_bytes: int
    load_seconds: float
    results: int
    batch_seconds: tuple[float, ...]
    inside_seconds: tuple[float, ...]
    load_use: Use | None
    probe_use: Use | None

    def as_json(self) -> str:
        """Return the outcome as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StateOutcome:
        """Return the outcome that `as_json` wrote."""
        value: dict[str, Any] = json.loads(text)
        for name in ("batch_seconds", "inside_seconds"):
            value[name] = tuple(value[name])
        for name in ("load_use", "probe_use"):
            value[name] = _use(value[name])
        return cls(**value)


def _use(value: dict[str, Any] | None) -> Use | None:
    if value is None:
        return None
    processes = tuple(ProcessUse(**found) for found in value["processes"])
    return Use(resident_bytes=value["resident_bytes"], processes=processes)


def run(task: StateTask) -> StateOutcome:
    """Store, probe, measure."""
    from plait.runtime.engine import Engine
    from plait.runtime.spark.session import open_session

    spark = open_session(f"local[{task.cores}]", dict(task.conf))
    ends: list[tuple[float, BatchEvent]] = []
    engine = Engine(
        spark,
        checkpoint=str(Path(task.scratch) / "checkpoint"),
        listener=lambda event: ends.append((time.perf_counter(), event)),
    )
    probes = Path(task.scratch) / "probes"
    probes.mkdir()
    for name, schema, path in (("stored", STORED_SCHEMA, task.data), ("probes", PROBES_SCHEMA, str(probes))):
        frame = spark.readStream.name(name).schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        engine.stream(name, frame, time="ts")
    engine.query(QUERY, SELECT, sink=sinks.noop())
    with watching(os.getpid(), interval_s=_WATCH_S) as watch:
        started = time.perf_counter()
        engine.run_available()
        load_seconds, load_use = time.perf_counter() - started, watch.take()
        ends.clear()
        write_files(probes, _probes(task))
        summary = engine.run_available()
        probe_use = watch.take()
    spark.stop()
    return StateOutcome(
        stored_tuples=summary.stored_tuples,
        stored_bytes=summary.stored_bytes,
        load_seconds=load_seconds,
        results=dict(summary.queries)[QUERY],
        batch_seconds=tuple(later - earlier for (earlier, _), (later, _) in itertools.pairwise(ends)),
        inside_seconds=tuple(event.seconds for _, event in ends[1:]),
        load_use=load_use,
        probe_use=probe_use,
    )


def _probes(task: StateTask) -> Iterator[pa.Table]:
    return (make_probes(task.smallest, task.batch_rows, file, task.seed) for file in range(task.batches + 1))


def main() -> int:
    """Carry out the task."""
    source, target = map(Path, sys.argv[1:])
    target.write_text(run(StateTask.from_json(source.read_text())).as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
