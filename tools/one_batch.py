"""Carry out the first batch of a small script on the stand-in for Spark: three streams, a query into each kind of file
sink, one that tasks write themselves and one that Spark writes.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa

from plait.cli.script import read_sound_script
from plait.runtime.batch.stream import Run
from plait.runtime.engine import Engine
from plait.runtime.spark import tasks
from tools.stand_in import Column, Session

_SELECT = "SELECT r.x, s.y, t.z FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b WHERE r.x > 5 AND s.y <= t.z"
_SCRIPT = f"""
CREATE STREAM r (a BIGINT, x BIGINT, r_ts TIMESTAMP) USING json OPTIONS (path '@/r', rate '100', distinct.a '50')
  TIMESTAMP BY r_ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM s (a BIGINT, b BIGINT, y BIGINT, s_ts TIMESTAMP) USING json OPTIONS (path '@/s', rate '100')
  TIMESTAMP BY s_ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM t (b BIGINT, z BIGINT, t_ts TIMESTAMP) USING json OPTIONS (path '@/t', rate '10', distinct.b '20')
  TIMESTAMP BY t_ts WINDOW INTERVAL 60 SECONDS;
CREATE QUERY direct INTO parquet OPTIONS (path '@/direct') AS {_SELECT};
CREATE QUERY spooled INTO json OPTIONS (path '@/spooled') AS {_SELECT};
"""
_COLUMNS = {"r": ("a", "x", "r_ts"), "s": ("a", "b", "y", "s_ts"), "t": ("b", "z", "t_ts")}
_ROWS = 20


def _table(names: tuple[str, ...]) -> pa.Table:
    times = pa.array([datetime.datetime(2024, 1, 1, second=row) for row in range(_ROWS)], pa.timestamp("us"))
    numbers = pa.array([row % 10 for row in range(_ROWS)], pa.int64())
    return pa.table({name: times if name.endswith("_ts") else numbers for name in names})


def carry_out(follow: Callable[[Callable[[], None]], None] = lambda run: run()) -> dict[str, int]:
    """Run the script for one batch; return the results by query. `follow` is given what the run's thread does."""
    numbers = itertools.count()

    def identity() -> tasks.TaskIdentity:
        number = next(numbers)
        return tasks.TaskIdentity(index=number, attempt=f"a{number}", batch=0)

    supervise = Run._supervise
    with (
        TemporaryDirectory() as directory,
        mock.patch.object(tasks, "_identity", identity),
        mock.patch.object(Run, "_supervise", lambda run: follow(lambda: supervise(run))),
        mock.patch("plait.runtime.outputs.binding.expr", Column),
    ):
        script = Path(directory, "script.sql")
        script.write_text(_SCRIPT.replace("@", directory))
        for name in _COLUMNS:
            Path(directory, name).mkdir()
            Path(directory, name, "1.json").write_text("{}\n")
        tables = {name: _table(columns) for name, columns in _COLUMNS.items()}
        engine = Engine(Session(tables, ["x", "y", "z"]), checkpoint=f"{directory}/checkpoint")
        engine.load(read_sound_script(script).load())
        return dict(engine.run_available().queries)


__all__ = ["carry_out"]
