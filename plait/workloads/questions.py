"""The demo's questions in words, and a few rows of each answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query of `flights.sql`: what it asks, the columns worth showing, and the one whose largest values are shown."""

    query: str
    asks: str
    columns: tuple[str, ...]
    worst: str


QUESTIONS = (
    Question(
        query="gusty_departures",
        asks="Which flights left half an hour late within an hour of a gust of 35 mph, and how old was the aircraft?",
        columns=("departed", "origin", "dest", "airline", "dep_delay", "wind_gust", "age"),
        worst="wind_gust",
    ),
    Question(
        query="knock_on",
        asks="Which aircraft left New York, landed 45 minutes late, and later left New York as late again?",
        columns=("tailnum", "origin", "dest", "arrived", "arr_delay", "next_departed", "next_dest", "next_delay"),
        worst="next_delay",
    ),
    Question(
        query="late_landings",
        asks="How was the weather at take-off of the flights that landed 45 minutes late?",
        columns=("departed", "carrier", "flight", "origin", "dest", "arr_delay", "visib", "wind_speed"),
        worst="arr_delay",
    ),
    Question(
        query="grounded",
        asks="Which flights were cancelled within an hour of fog or snow both here and at the airport next door?",
        columns=("planned", "origin", "dest", "airline", "flight", "visib", "other_origin", "other_visib"),
        worst="planned",
    ),
    Question(
        query="gate_crunch",
        asks="Where did two late aircraft of one airline, from two New York airports, land within 20 minutes?",
        columns=("airport", "airline", "arrived", "arr_delay", "other_arrived", "other_delay"),
        worst="arr_delay",
    ),
    Question(
        query="unobserved",
        asks="Which departures had no complete weather report of their airport for the hour they left in?",
        columns=("departed", "origin", "dest", "airline", "flight", "dep_delay"),
        worst="departed",
    ),
    Question(
        query="delays",
        asks="How late did aircraft leave, airport by airport and hour by hour?",
        columns=("hour", "origin", "flights", "mean_delay", "worst_delay"),
        worst="mean_delay",
    ),
    Question(
        query="bad_days",
        asks="On which days were departures half an hour late on average, for how many hours, and how late at worst?",
        columns=("day", "origin", "hours", "worst_mean"),
        worst="worst_mean",
    ),
    Question(
        query="stayed_away",
        asks="Which aircraft left for a place less than 300 miles away and did not leave New York again in 12 hours?",
        columns=("departed", "tailnum", "origin", "dest", "carrier", "flight", "distance"),
        worst="departed",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How many results a question has so far, and some of them as text."""

    question: Question
    results: int
    sample: tuple[tuple[str, ...], ...]


def read_answer(question: Question, output: Path, *, sample: int) -> Answer:
    """Read what a demo in `output` has found; a folder that is not there yet holds nothing."""
    folder = output / "out" / question.query
    answers = ds.dataset(folder, format="parquet") if folder.exists() else None
    if answers is None or not answers.files:
        return Answer(question=question, results=0, sample=())
    rows = answers.to_table(columns=list(question.columns))
    order = [(question.worst, "descending"), *((name, "ascending") for name in question.columns)]
    first = rows.sort_by(order).slice(0, sample)
    texts = zip(*([_text(value) for value in column] for column in first.columns), strict=True)
    return Answer(question=question, results=rows.num_rows, sample=tuple(texts))


def _text(value: pa.Scalar) -> str:
    """Return one value as a reader wants it: times to the minute, numbers without false digits, NULL as nothing."""
    plain = value.as_py()
    if plain is None:
        return ""
    if pa.types.is_timestamp(value.type):
        return f"{plain:%b %d %H:%M}"
    return f"{plain:.4g}" if isinstance(plain, float) else str(plain)
