"""What is kept of queries until the watermark decides, what less with a shorter window, and what for ever.

A row that may have no partner waits until its window is over, and what could be its partner is kept for that: so a
window often costs more than the rows in it. Groups wait until their windows of time are over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.plan.explain.closings import Closing, Grouped
from plait.plan.explain.costs import total
from plait.plan.model import Plan, Selection
from plait.plan.relations import kept_us_of, waiting_selections
from plait.plan.traversals import endings
from plait.query.model import Query, Relation
from plait.query.partners import window_us_of, with_waiting
from plait.query.time_windows import SessionWindow

_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAdvice:
    """A relation of a query whose rows are kept until it is certain which of them have no partner, or, where `kept_us`
    is None, for ever. `rows`: how many that are; None for ever, when they become `rows_per_s` more.
    """

    query: str
    relation: str
    source: str
    kept_us: int | None
    rows: float | None
    rows_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterAdvice:
    """Of a query the window that costs most: with half of `window_us`, `spared_rows` fewer would be kept for it."""

    query: str
    relation: str
    window_us: int
    spared_rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsAdvice:
    """A query that groups by windows of time: what waits in `keeps` until they are over, at most so many `rows`; None
    where nobody knows, as of sessions, which last as long as rows come. `open_us`: for how long a row waits, of a
    session its last one.
    """

    query: str
    groups: Grouped
    open_us: int
    rows: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """All that waits, or stays: most rows first, what stays for ever before all."""

    kept: tuple[KeptAdvice, ...] = ()
    shorter: tuple[ShorterAdvice, ...] = ()
    groups: tuple[GroupsAdvice, ...] = ()


def undecided_of(
    queries: Iterable[Query], closings: Iterable[Closing], best: Plan, cardinality: Cardinality
) -> Undecided:
    """Return it. `closings`: what of the queries comes by the watermark; `best`: a plan for them, with estimates."""
    listed = tuple(queries)
    kept = [advised for query in listed for advised in _kept(query, cardinality)]
    shorter = [advised for query in listed if query.joins for advised in _shorter(query, cardinality)]
    by_name = {query.name: query for query in listed}
    grouped = [
        _groups(by_name[closing.query], closing.groups, best, cardinality)
        for closing in closings
        if closing.groups is not None
    ]
    return Undecided(
        kept=tuple(sorted(kept, key=lambda each: (-_or_most(each.rows), each.query, each.relation))),
        shorter=tuple(sorted(shorter, key=lambda each: (-each.spared_rows, each.query))),
        groups=tuple(sorted(grouped, key=lambda each: (-_or_most(each.rows), each.query))),
    )


def _or_most(rows: float | None) -> float:
    return math.inf if rows is None else float(f"{rows:.9g}")


def _kept(query: Query, cardinality: Cardinality) -> Iterator[KeptAdvice]:
    """Yield the relations of a query that wait; of others those that are kept for ever, for the sake of others."""
    for relation in query.relations:
        kept_us = kept_us_of(relation)
        is_kept = len(query.starts) > 1 and kept_us is None
        if relation.is_table or not (relation.waiting is not None or is_kept):
            continue
        second = _rows(relation, _US_PER_S, cardinality)
        yield KeptAdvice(
            query=query.name,
            relation=relation.alias,
            source=relation.source,
            kept_us=kept_us,
            rows=None if kept_us is None else _rows(relation, kept_us, cardinality),
            rows_per_s=second,
        )


def _rows(relation: Relation, window_us: int, cardinality: Cardinality) -> float:
    extent = Extent(source=relation.source, is_table=False, window_us=window_us)
    waiting = relation.waiting
    kept = Selection(conjuncts=relation.selections) if waiting is None else waiting_selections(waiting)[0]
    return cardinality.selected_rows(extent, kept)


def _shorter(query: Query, cardinality: Cardinality) -> Iterator[ShorterAdvice]:
    """Yield the window that spares most rows where it is halved, if any does."""
    now = _all_rows(query, cardinality)
    found = []
    for relation in query.relations:
        window_us = window_us_of(relation)
        if relation.is_table or window_us is None or now is None:
            continue
        spared = now - (_all_rows(_with_window(query, relation.alias, window_us // 2), cardinality) or 0.0)
        found.append(ShorterAdvice(query=query.name, relation=relation.alias, window_us=window_us, spared_rows=spared))
    best = max(found, key=lambda each: (each.spared_rows, each.relation), default=None)
    if best is not None and best.spared_rows > 0:
        yield best


def _with_window(query: Query, alias: str, window_us: int) -> Query:
    """Return the query with another window of one relation, as it would be bound."""
    relations = (
        replace(each, window_us=window_us if each.alias == alias else window_us_of(each)) for each in query.relations
    )
    return with_waiting(replace(query, relations=tuple(relations)))


def _all_rows(query: Query, cardinality: Cardinality) -> float | None:
    """Return how many rows are kept so that those without a partner are known; None: ever more."""
    lengths = [(each, each.waiting.kept_us) for each in query.relations if each.waiting is not None]
    kept = [(each, kept_us) for each, kept_us in lengths if not each.is_table]
    return total(None if kept_us is None else _rows(each, kept_us, cardinality) for each, kept_us in kept)


def _groups(query: Query, groups: Grouped, best: Plan, cardinality: Cardinality) -> GroupsAdvice:
    window = groups.window
    if isinstance(window, SessionWindow):
        return GroupsAdvice(query=query.name, groups=groups, open_us=window.gap_us + window.lag_us, rows=None)
    open_us = window.size_us + window.lag_us
    per_s = _results_per_s(query, best, cardinality)
    bounds = [] if per_s is None else [per_s * open_us / _US_PER_S]
    most = _distinct(query, groups, cardinality)
    if groups.pane_us and most is not None:
        bounds.append((math.ceil(open_us / groups.pane_us) + 1) * most)
    return GroupsAdvice(query=query.name, groups=groups, open_us=open_us, rows=min(bounds, default=None))


def _results_per_s(query: Query, best: Plan, cardinality: Cardinality) -> float | None:
    """Return how many joined rows a query has, as the best plan expects."""
    if len(query.relations) == 1:
        return _rows(query.relations[0], _US_PER_S, cardinality)
    ends = (steps[-1] for _, steps, output in endings(best) if steps and output.query == query.name)
    return total(step.estimate.results_per_s for step in ends)


def _distinct(query: Query, groups: Grouped, cardinality: Cardinality) -> float | None:
    """Return how many groups there are at most in a pane, as far as distinct values of the columns are known."""
    counts: list[float | None] = []
    for key in groups.keys:
        known: Mapping[str, float] = dict(cardinality.statistics.of(query.relation(key.relation).source).distinct)
        counts.append(known.get(key.column))
    known_counts = [count for count in counts if count is not None]
    return math.prod(known_counts) if len(known_counts) == len(counts) else None


__all__ = ["GroupsAdvice", "KeptAdvice", "ShorterAdvice", "Undecided", "undecided_of"]
