"""Streams whose rows are the groups of a query, for other queries to read: derived streams.

A group is a row of the stream that is called like its query. Its event time is the end of its window: by then all of it
has happened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from plait.query.model import Query, Source, Stream
from plait.sql.lexis.tokens import tokens_of

HOW: Final = (
    "other queries read the groups of a CREATE QUERY if all columns of its SELECT list have names and one of them is "
    "window.end or session_window.end, of a TIMESTAMP, which is the event time of a group: SELECT window.end AS until, "
    "count(*) AS n, ..."
)
"""What a query must be like for others to read its groups."""


def derived_stream(query: Query, sources: Mapping[str, Source]) -> Stream | None:
    """Return the stream of a query's groups; None if it does not group, or if there is no telling what its columns or
    their event time are. `sources`: what it reads.
    """
    aggregation = query.aggregation
    if aggregation is None or aggregation.columns is None or aggregation.end is None:
        return None
    return Stream(
        name=query.name,
        time=aggregation.columns[aggregation.end].name,
        schema=aggregation.columns,
        derived=_identity(query, sources),
    )


def still_read(query: str, reader: str) -> str:
    """Say why a query cannot be dropped, or become another one."""
    return f"query '{query}' is read by query '{reader}', which joins or groups its groups; drop '{reader}' first"


def _identity(query: Query, sources: Mapping[str, Source]) -> str:
    """Return what tells the groups of a query from those of another one of its name. Checkpoints hold it: it must not
    change with anything that leaves the groups what they are.
    """
    read = (sources.get(relation.source) for relation in query.relations)
    meaning = {
        "text": [f"{token.kind} {token.keyword or token.value}" for token in tokens_of(query.text)],
        "windows": [[relation.alias, relation.window_us] for relation in query.relations],
        "groups": [source.derived for source in read if isinstance(source, Stream) and source.derived is not None],
    }
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()[:16]


__all__ = ["HOW", "derived_stream", "still_read"]
