"""What a script asks that a running engine does not answer, and the other way round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plait.query.model import Query, Relation, Source, Stream
from plait.query.windows import with_narrow_windows
from plait.spelling import backquoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The queries of a script that are to be `added`, or put in the place of others of their name (`replaced`), and the
    names of those to be `dropped`; `same`: how many stay as they are.
    """

    added: tuple[Query, ...] = ()
    replaced: tuple[Query, ...] = ()
    dropped: tuple[str, ...] = ()
    same: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the engine answers the script already."""
        return not (self.added or self.replaced or self.dropped)


def difference(queries: Iterable[Query], sources: Iterable[Source], running: Iterable[Mapping[str, Any]]) -> Difference:
    """Return what has to be done for an engine to answer these queries and no others. `running`: its queries, as the
    service tells of them. A query is another one if its text, its windows or its sink are.
    """
    known = {each["name"]: each for each in running}
    times = {source.name: _time_of(source) for source in sources}
    wanted = {query.name: query for query in queries}
    added = tuple(query for name, query in wanted.items() if name not in known)
    changed = tuple(query for name, query in wanted.items() if name in known and _differs(query, times, known[name]))
    return Difference(
        added=added,
        replaced=changed,
        dropped=readers_first({name: _read_by(each) for name, each in known.items() if name not in wanted}),
        same=len(wanted) - len(added) - len(changed),
    )


def readers_first(reads: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return queries in an order in which they can be dropped: each before those whose groups it reads. `reads`: what
    each reads.

    >>> readers_first({"hours": ["orders"], "days": ["hours"], "other": ["orders"]})
    ('days', 'other', 'hours')
    """
    left, ordered = dict(reads), list[str]()
    while left:
        read = {source for sources in left.values() for source in sources}
        free = [name for name in left if name not in read] or list(left)
        ordered += free
        left = {name: sources for name, sources in left.items() if name not in free}
    return tuple(ordered)


def _read_by(running: Mapping[str, Any]) -> set[str]:
    return {each["source"] for each in running["relations"]}


def _differs(query: Query, times: Mapping[str, str | None], other: Mapping[str, Any]) -> bool:
    narrowed = with_narrow_windows(query, times.get)
    windows = [{each.alias: each.window_us for each in of.relations} for of in (query, narrowed)]
    theirs = {each["alias"]: each["window_us"] for each in other["relations"]}
    options = {name: value for name, value in query.sink.options if name in other["sink"]["options"]}
    sinks = (query.sink.format, options) == (other["sink"]["format"], other["sink"]["options"])
    return query.text != other["sql"] or theirs not in windows or not sinks


def _time_of(source: Source) -> str | None:
    """Return a stream's event time as operands have it, if it is known to be a TIMESTAMP."""
    if not isinstance(source, Stream) or source.computed is not None:
        return None
    types = {column.name: column.type for column in source.schema or ()}
    return backquoted(source.time) if types.get(source.time) == "timestamp" else None


def statement_text(query: Query) -> str:
    """Return the text of CREATE QUERY for a query, views merged and windows said, so that it stands by itself."""
    options = ", ".join(f"{name} {_text(value)}" for name, value in query.sink.options)
    streams = relations_with_windows(query)
    windows = ", ".join(f"{backquoted(each.alias)} {_length(each.window_us)}" for each in streams)
    clause = f" WINDOW ({windows})" if windows else ""
    sink = f"{query.sink.format}{f' OPTIONS ({options})' if options else ''}"
    return f"CREATE QUERY {backquoted(query.name)} INTO {sink}{clause} AS {query.text}"


def relations_with_windows(query: Query) -> list[Relation]:
    """Return the streams of a query that windows can be said of: not groups that are read as they come, which have
    none, and no statement can say that.
    """
    return [relation for relation in query.relations if not relation.is_table and relation.window_us != 0]


def _length(window_us: int | None) -> str:
    return "UNBOUNDED" if window_us is None else f"INTERVAL {window_us} MICROSECONDS"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


__all__ = ["Difference", "difference", "readers_first", "relations_with_windows", "statement_text"]
