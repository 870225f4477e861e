"""What a sound script probably does not mean: told, and run all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from plait.query.model import Query, Source, Stream
from plait.query.windows import with_narrow_windows
from plait.sql.lexis.names import backquoted


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptWarning:
    """A warning, and where it points into the script."""

    message: str
    file: str | None
    line: int
    column: int

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}: {self.message}"


def forgotten_windows(
    queries: Iterable[Query],
    sources: Mapping[str, Source],
    windowless: Mapping[str, tuple[int, int]],
    file: str | None,
) -> Iterator[ScriptWarning]:
    """Yield a warning for each stream that is kept for ever because nobody said for how long.

    `windowless`: the streams without a WINDOW clause, and where they are created. A stream that is joined with tables
    only is not kept; nor is one for ever whose event time the query's own predicates bound.
    """
    told: set[str] = set()
    for query in queries:
        if sum(not relation.is_table for relation in query.relations) < 2:
            continue
        narrowed = with_narrow_windows(query, lambda source: _time_of(sources.get(source)))
        for relation in narrowed.relations:
            if relation.is_table or relation.window_us is not None or relation.source not in windowless:
                continue
            if relation.source not in told:
                told.add(relation.source)
                line, column = windowless[relation.source]
                message = (
                    f"stream '{relation.source}' has no WINDOW and query '{query.name}' joins it with streams, so all "
                    f"its rows are kept for ever; write WINDOW INTERVAL 1 HOUR in CREATE STREAM {relation.source} (as "
                    "long as its rows have to wait for others), or WINDOW UNBOUNDED if that is meant"
                )
                yield ScriptWarning(message=message, file=file, line=line, column=column)


def _time_of(source: Source | None) -> str | None:
    """Return a stream's event time as operands have it, if it is a TIMESTAMP."""
    if not isinstance(source, Stream):
        return None
    if source.computed is not None:
        return source.computed.sql if source.computed.type == "timestamp" else None
    types = {column.name: column.type for column in source.schema or ()}
    return backquoted(source.time) if types.get(source.time) == "timestamp" else None
