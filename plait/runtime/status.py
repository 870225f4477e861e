"""The part of an engine's status that concerns some queries and streams: with hundreds of them all of it is long."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from plait.query.model import Query

_BY_QUERY: Final = ("queries", "results", "failing", "set_aside", "outside_selections")
_BY_STREAM: Final = ("sources", "lag", "marks")


def part_of(
    status: Mapping[str, Any], queries: Iterable[Query], names: Collection[str], streams: Collection[str]
) -> dict[str, Any]:
    """Return what a status says of the queries of these `names` and of those that read one of these `streams`; where
    both are given, of those for which both holds; and of the streams that they read. Nothing given: all.
    """
    if not (names or streams):
        return dict(status)
    read = {query.name: {relation.source for relation in query.relations} for query in queries}
    shown = {
        name
        for name, sources in read.items()
        if (not names or name in names) and (not streams or not sources.isdisjoint(streams))
    }
    used = set(streams) or {source for name in shown for source in read[name]}
    part = _part(status, shown, used)
    part["streams"] = [name for name in status["streams"] if name in used]
    part["bounds"] = [bound for bound in status["bounds"] if bound["stream"] in used]
    for of in ("last_batch", "totals"):
        part[of] = None if status[of] is None else _part(status[of], shown, used)
    return part


def _part(told: Mapping[str, Any], queries: Collection[str], streams: Collection[str]) -> dict[str, Any]:
    part = dict(told)
    part |= {key: _chosen(told[key], queries) for key in _BY_QUERY if key in told}
    part |= {key: _chosen(told[key], streams) for key in _BY_STREAM if key in told}
    part["lacking"] = [each for each in told["lacking"] if each["query"] in queries and each["stream"] in streams]
    return part


def _chosen(told: Any, names: Collection[str]) -> Any:
    if isinstance(told, Mapping):
        return {name: value for name, value in told.items() if name in names}
    return [name for name in told if name in names]


__all__ = ["part_of"]
