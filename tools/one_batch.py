"""Carry out the first batch of a small script on the stand-in for Spark: three streams, and two queries, one of whose
results are written by tasks, the other's by Spark.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from plait.cli.script import read_sound_script
from plait.runtime.batch.stream import Run
from plait.runtime.engine import Engine
from tests.property.standin import frames
from tests.property.standin.session import Session

_SELECT = "SELECT r.x, s.y, t.z FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b WHERE r.x > 5 AND s.y <= t.z"
_SCRIPT = f"""
CREATE STREAM r (a BIGINT, x BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '@/r', rate '100', distinct.a '50')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM s (a BIGINT, b BIGINT, y BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '@/s', rate '100')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM t (b BIGINT, z BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '@/t', rate '10', distinct.b '20')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE QUERY direct INTO parquet OPTIONS (path '@/direct') AS {_SELECT};
CREATE QUERY spooled INTO parquet OPTIONS (path '@/spooled', compression 'gzip') AS {_SELECT};
"""
_COLUMNS = {"r": "ax", "s": "aby", "t": "bz"}
_ROWS = 20


def carry_out(follow: Callable[[Callable[[], None]], None] = lambda run: run()) -> dict[str, int]:
    """Run the script for one batch; return the results by query. `follow` is given what the run's thread does."""
    supervise, task = Run._supervise, frames._run
    with TemporaryDirectory() as directory, ExitStack() as patches:

        def patch(of: object, name: str, value: object) -> None:
            patches.enter_context(mock.patch.object(of, name, value))

        frames.install(patch)
        patch(frames, "_run", _elsewhere(task))
        patch(Run, "_supervise", lambda run: follow(lambda: supervise(run)))
        _arrive(Path(directory))
        script = Path(directory, "script.sql")
        script.write_text(_SCRIPT.replace("@", directory))
        engine = Engine(Session(), checkpoint=f"{directory}/checkpoint")
        engine.load(read_sound_script(script).load())
        return dict(engine.run_available().queries)


def _elsewhere(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a worker does, unseen by who follows the driver."""

    def run(*arguments: Any) -> Any:
        follower = sys.getprofile()
        sys.setprofile(None)
        try:
            return task(*arguments)
        finally:
            sys.setprofile(follower)

    return run


def _arrive(directory: Path) -> None:
    """Let a file of each stream arrive."""
    times = pa.array([datetime.datetime(2024, 1, 1, second=row) for row in range(_ROWS)], pa.timestamp("us", "UTC"))
    numbers = pa.array([row % 10 for row in range(_ROWS)], pa.int64())
    for stream, columns in _COLUMNS.items():
        (directory / stream).mkdir()
        pq.write_table(pa.table({**dict.fromkeys(columns, numbers), "ts": times}), directory / stream / "0.parquet")


__all__ = ["carry_out"]
