"""Write the flights as files that arrive one after the other, and remember which part of the year they hold."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import OptionError
from plait.workloads.flights import TIME_COLUMNS, find_data, read_streams, read_tables

SCRIPT = "flights.sql"
STAMP = "replay.json"
FIRST_DAY, LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which part of 2013 to replay, and how many hours of it make one file of each stream, so one micro-batch."""

    first_day: date
    days: int
    hours_per_file: int

    def __post_init__(self) -> None:
        if not FIRST_DAY <= self.first_day <= LAST_DAY:
            raise OptionError(f"the flights are those of 2013: expected a day of that year, found {self.first_day}")
        if self.days < 1 or self.hours_per_file < 1:
            raise OptionError(
                f"expected at least one day and one hour a file, found {self.days} days and {self.hours_per_file} hours"
            )

    @property
    def last_day(self) -> date:
        """The last day replayed: never beyond the year."""
        return min(date.fromordinal(self.first_day.toordinal() + self.days - 1), LAST_DAY)


def prepare(replay: Replay, output: Path, *, fresh: bool = False) -> Path:
    """Write inputs and the script below `output` unless they are there already; return the script's path.

    A folder without the demo's stamp is never touched unless it is empty. One with another replay is refused, because
    its checkpoint and results would be mixed with these; `fresh` removes it first.
    """
    script, stamp = output / SCRIPT, output / STAMP
    wanted = {**asdict(replay), "first_day": replay.first_day.isoformat(), "complete": True}
    found = json.loads(stamp.read_text()) if stamp.exists() else None
    if found is None and output.exists() and any(output.iterdir()):
        raise OptionError(f"{output} holds files that the demo did not write; name another folder with --output")
    if found == wanted and not fresh:
        return script
    if found is not None and found["complete"] and not fresh:
        raise OptionError(
            f"{output} holds a replay of {found['days']} days from {found['first_day']} in files of "
            f"{found['hours_per_file']} hours; start over with --fresh, or name another folder with --output"
        )
    data = find_data()
    output.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps({**wanted, "complete": False}) + "\n")
    _clear(output)
    _write_streams(
        read_streams(data, pd.Timestamp(replay.first_day), replay.days), replay.hours_per_file, output / "in"
    )
    for name, frame in read_tables(data).items():
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), output / "in" / f"{name}.parquet")
    script.write_text(files("plait.workloads").joinpath(SCRIPT).read_text(encoding="utf-8"), encoding="utf-8")
    stamp.write_text(json.dumps(wanted) + "\n")
    return script


def _clear(output: Path) -> None:
    """Remove what an earlier demo left in this folder, and nothing else."""
    for folder in ("in", "out", f"{Path(SCRIPT).stem}.checkpoint"):
        shutil.rmtree(output / folder, ignore_errors=True)
    (output / SCRIPT).unlink(missing_ok=True)


def _write_streams(streams: Mapping[str, pd.DataFrame], hours: int, folder: Path) -> None:
    """Cut all streams at the same instants; the n-th file of each holds the same hours.

    Spark takes files in order of modification time, so that is set, a second apart.
    """
    length = pd.Timedelta(hours=hours)
    start = min(frame[TIME_COLUMNS[name]].iloc[0] for name, frame in streams.items() if len(frame)).floor("D")
    first_mtime = int(time.time()) - 100_000
    for name, frame in streams.items():
        (folder / name).mkdir(parents=True)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        piece = ((frame[TIME_COLUMNS[name]] - start) // length).to_numpy()
        for number in range(int(piece.max(initial=0)) + 1):
            path = folder / name / f"{number:05}.parquet"
            low, high = piece.searchsorted([number, number + 1])
            pq.write_table(table.slice(low, high - low), path, coerce_timestamps="us")
            os.utime(path, (first_mtime + number, first_mtime + number))
