"""Sinks of a script: are they told what they understand, and do they write where nobody else does?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from plait.errors import OptionError, PlacedError, SinkError, SqlError
from plait.query.model import Query, Source
from plait.sinks.kinds import format_problem, kind_of
from plait.sinks.options import option_of
from plait.sinks.overlaps import (
    Place,
    archive_places,
    checkpoint_place,
    letter_places,
    overlap,
    read_places,
    sink_places,
)
from plait.sql.lexis.names import folded
from plait.sql.script.paths import output_problem
from plait.sql.statements import CreateQuery, CreateStream, CreateTable, place_of

Mistake: TypeAlias = tuple[str, tuple[int, int], type[PlacedError]]
"""A message, the line and column it is about, and its kind."""


def sink_problems(statement: CreateQuery) -> Iterator[Mistake]:
    """Yield what is wrong with the sink of a query, by itself."""
    sink, what = statement.sink, f"query '{statement.name}'"
    problem = format_problem(sink.format)
    if problem is not None:
        yield f"{what}: {problem}", place_of(statement, "sink"), SqlError
        return
    for refused in kind_of(sink).problems(sink):
        if refused.option is None:
            example = refused.example or f"path 'out/{statement.name}'"
            message = f"{what}: {refused.message}; add OPTIONS ({example})"
            yield message, place_of(statement, "sink"), OptionError
        else:
            yield f"{what}: {refused.message}", _option_place(statement, refused.option), OptionError
    for place in sink_places(statement.name, sink):
        unwritable = output_problem(place.path)
        if unwritable is not None:
            yield f"{what}: {unwritable}", _option_place(statement, "path"), SinkError


def partition_problems(statement: CreateQuery, query: Query) -> Iterator[Mistake]:
    """Yield what is wrong with the columns that options name: for directories, for the keys of records."""
    named = (option_of(statement.sink.options, option) for option in ("partitionBy", "key"))
    if format_problem(statement.sink.format) is not None or not any(named):
        return
    columns = [(name, None) for name in query.names]
    for problem in kind_of(statement.sink).column_problems(statement.sink, columns):
        if problem.option is not None:
            yield f"query '{statement.name}': {problem.message}", _option_place(statement, problem.option), OptionError


def overlap_problems(
    sources: Iterable[tuple[CreateStream | CreateTable, Source]],
    queries: Iterable[CreateQuery],
    checkpoint: str | None,
) -> Iterator[Mistake]:
    """Yield which directories lie in each other although one of them is written to."""
    read = tuple(sources)
    places = [] if checkpoint is None else [checkpoint_place(checkpoint)]
    used: list[tuple[Place, tuple[int, int]]] = []
    for option, places_of in (
        ("path", read_places),
        ("sourcearchivedir", archive_places),
        ("deadletter", letter_places),
    ):
        for statement, source in read:
            used += [(place, place_of(statement, f"option {option}")) for place in places_of(source)]
    for query in queries:
        used += [(place, _option_place(query, "path")) for place in sink_places(query.name, query.sink)]
    for place, at in used:
        message = overlap(place, places)
        if message is not None:
            yield f"{place.owner}: {message}", at, SinkError
        places.append(place)


def _option_place(statement: CreateQuery, option: str) -> tuple[int, int]:
    return place_of(statement, f"option {folded(option)}")
