"""Windows that a query's own predicates make narrower.

A predicate between the event times of two streams says how far apart two members of a result can be. So does every
window: nothing in a result is older than the newest member by more than its window. Both are differences with an upper
bound, and bounds add up along paths: the shortest path from a relation to each other one says how much newer any
member of a result can be. What no member outlives need not be kept, and joins the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

from plait.query.model import Operand, Query
from plait.query.predicates import by_kind, negated

TimeOf = Callable[[str], str | None]
"""Source → its event time as an operand's SQL if that is a TIMESTAMP, None for tables and other types."""


def with_narrow_windows(query: Query, time_of: TimeOf) -> Query:
    """Return the query with each stream's window as narrow as its time predicates and the other windows make it.

    The bands must be known. The results are the same; less has to be kept and looked at.
    """
    streams = [relation.alias for relation in query.relations if not relation.is_table]
    apart = _closure(streams, dict(_bounds(query, time_of)))
    windows = {alias: max([0.0, *(apart[alias, other] for other in streams if other != alias)]) for alias in streams}
    return replace(
        query,
        relations=tuple(
            relation
            if relation.is_table or len(streams) == 1 or math.isinf(windows[relation.alias])
            else replace(relation, window_us=_narrower(relation.window_us, int(windows[relation.alias])))
            for relation in query.relations
        ),
    )


def _narrower(window_us: int | None, found_us: int) -> int:
    return found_us if window_us is None else min(window_us, found_us)


def _bounds(query: Query, time_of: TimeOf) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield ((older, newer), µs by which the second can be newer at most), the smallest for each pair last."""
    bounds: dict[tuple[str, str], float] = {}
    for relation in query.relations:
        for other in query.relations:
            if relation.window_us is not None and other != relation and not (relation.is_table or other.is_table):
                bounds[relation.alias, other.alias] = float(relation.window_us)
    for band in by_kind(query.predicates).bands:
        if band.left.type != "timestamp" or not all(_is_time(query, side, time_of) for side in (band.left, band.right)):
            continue
        left, right = band.left.relation, band.right.relation
        for pair, bound in (((left, right), band.high), ((right, left), negated(band.low))):
            if bound is not None:
                bounds[pair] = min(bounds.get(pair, math.inf), bound)
    yield from bounds.items()


def _is_time(query: Query, operand: Operand, time_of: TimeOf) -> bool:
    time = time_of(query.relation(operand.relation).source)
    return time is not None and operand.expression.sql == time


def _closure(aliases: list[str], known: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the shortest path between every two (Floyd and Warshall)."""
    apart = {pair: known.get(pair, math.inf) for pair in permutations(aliases, 2)}
    for middle in aliases:
        for one, other in permutations(aliases, 2):
            if middle not in (one, other):
                apart[one, other] = min(apart[one, other], apart[one, middle] + apart[middle, other])
    return apart
