"""What queries lack of the rows that came before them: columns that were not stored, and rows that were not.

A stream stores what the queries of its day need, and for as long as their windows say. One that is added or changed
later goes without what it does not find stored, for as long as the rows in question could still be part of a result:
until the watermark has passed their event time and the query's window. Rows in time for which no condition of the day
held were not stored at all; whether they would satisfy the new query nobody can tell any more, so they are counted
whole, as are those that had been let go when it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from plait.operators.ingest.report_sums import highest
from plait.operators.probe.partials import NO_LOW
from plait.plan.model import Plan, Requirement, Selection, Store
from plait.plan.relations import (
    kept_us_of,
    keys_of,
    own_store,
    projected_columns,
    requirements_of,
    selection_of,
    values_read,
    waiting_selections,
)
from plait.query.model import Query, Relation
from plait.query.remembering import remembered
from plait.query.time_windows import SessionWindow
from plait.state.model import Bucket, Forgotten, KeptFor, Layout, Manifest, SourceProgress, Unstored

_MOST_SPANS = 8
_MOST_FORGOTTEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A query goes without something of `rows` earlier rows of a stream: they are in none of its results.

    `columns`: what these rows were stored without, as the query's text has it; () if they were not stored at all or,
    `forgotten`, no longer when the query came, at most so many. `until_us`: once the watermark has passed this event
    time it no longer matters; None: it always will.
    """

    query: str
    stream: str
    columns: tuple[str, ...]
    rows: int
    until_us: int | None
    forgotten: bool = False

    @property
    def text(self) -> str:
        """Say it in a sentence."""
        until = (
            "for good, because its window is unbounded"
            if self.until_us is None
            else f"until the watermark has passed {moment_text(self.until_us)}"
        )
        return f"{self._what}: its results go without them {until}. {self._advice}"

    @property
    def _what(self) -> str:
        rows, query = f"{self.rows} rows of '{self.stream}'", f"query '{self.query}'"
        if self.columns:
            return f"{rows} were stored without {', '.join(self.columns)}, which {query} needs"
        if self.forgotten:
            return f"up to {rows} that {query} might need are gone, because no query before it had so long a window"
        return f"{rows} that {query} might need were not stored, because no query needed them when they came"

    @property
    def _advice(self) -> str:
        if self.forgotten:
            return "OPTIONS (keep 'all') and a longer WINDOW on the stream keep everything for queries added later."
        return "OPTIONS (keep 'all') on the stream stores everything for queries added later."

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "query": self.query,
            "stream": self.stream,
            "columns": list(self.columns),
            "rows": self.rows,
            "until_us": self.until_us,
            "forgotten": self.forgotten,
            "text": self.text,
        }


def moment_text(us: int) -> str:
    """Return an event time for the user."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=us)
    return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")


def kept_for(requirements: Iterable[Requirement]) -> tuple[KeptFor, ...]:
    """Return why rows are stored, as a manifest remembers it."""
    kept = {
        KeptFor(selection=_texts(selection), keys=need.keys)
        for need in requirements
        for selection in need.selection.alternatives
    }
    return tuple(sorted(kept, key=lambda each: (each.selection, each.keys)))


def keeps_all_of(kept: Iterable[Requirement], wanted: Iterable[Requirement]) -> bool:
    """Tell whether a store with rows for the requirements `kept` has all that the `wanted` ones ask for."""
    reasons = kept_for(kept)
    parts = (replace(need, selection=part) for need in wanted for part in need.selection.alternatives)
    return all(any(_covers(reason, part) for reason in reasons) for part in parts)


def _texts(selection: Selection) -> tuple[str, ...]:
    return tuple(conjunct.sql for conjunct in selection.conjuncts)


def with_unstored(progress: SourceProgress, rows: int, tau_max_us: int, kept: tuple[KeptFor, ...]) -> SourceProgress:
    """Return the progress after `rows` more rows that were in time and that nothing in `kept` held for."""
    spans = {each.kept: each for each in progress.unstored}
    before = spans.pop(kept, None)
    added = Unstored(
        kept=kept,
        rows=rows + (0 if before is None else before.rows),
        tau_max_us=tau_max_us if before is None else max(tau_max_us, before.tau_max_us),
    )
    ordered = (*spans.values(), added)
    while len(ordered) > _MOST_SPANS:
        # Told apart no longer, the two earliest count as rows of a time when nothing was stored.
        first, second, *others = ordered
        merged = Unstored(kept=(), rows=first.rows + second.rows, tau_max_us=max(first.tau_max_us, second.tau_max_us))
        ordered = (merged, *others)
    return replace(progress, unstored=ordered)


def with_forgotten(progress: SourceProgress, rows: int, tau_max_us: int) -> SourceProgress:
    """Return the progress after `rows` more rows have been let go."""
    spans = [*progress.forgotten, Forgotten(rows=rows, tau_max_us=tau_max_us)]
    if len(spans) > _MOST_FORGOTTEN:
        # Of neighbours the fewest rows are told apart no longer, so that no span comes to hold most of them.
        place = min(range(len(spans) - 1), key=lambda each: spans[each].rows + spans[each + 1].rows)
        first, second = spans[place : place + 2]
        merged = Forgotten(rows=first.rows + second.rows, tau_max_us=max(first.tau_max_us, second.tau_max_us))
        spans[place : place + 2] = [merged]
    return replace(progress, forgotten=tuple(spans))


def lacking_after(
    queries: Iterable[Query], plan: Plan, manifest: Manifest | None, *, backfill: bool = False
) -> tuple[Lacking, ...]:
    """Return what the queries lack of the rows that arrived up to this manifest, by query and stream. With `backfill`
    queries that the manifest does not know are about to be filled up with the past.
    """
    if manifest is None:
        return ()
    known_queries = {query.query for query in manifest.queries}
    progress = {lacking.source: lacking for lacking in manifest.sources}
    reasons = {lacking.source: tuple(map(_Reasons.of, lacking.unstored)) for lacking in manifest.sources}
    layouts = _Layouts.of(manifest.buckets, plan)
    lacking: list[Lacking] = []
    for query in queries:
        streams = [relation for relation in query.relations if not relation.is_table]
        # What joins one stream with tables is found when its rows arrive: it needs none of those that were there.
        needs_earlier = len(streams) > 1 or (backfill and query.name not in known_queries)
        for relation in streams if needs_earlier else ():
            lacking += layouts.lacking(query, relation, manifest.oldest_us)
            known = progress.get(relation.source)
            if known is not None:
                lacking += _unstored(query, relation, reasons[known.source], manifest.oldest_us)
                lacking += _forgotten(query, relation, known, manifest.oldest_us)
    return _merged(lacking)


def complete_from(query: Query, plan: Plan, manifest: Manifest) -> int | None:
    """Return the event time from which on all is stored that says what a query that is new to a manifest would have had
    before, had it been there: rows that its joins decide about from that watermark on, and windows of time that begin
    from then on. The smallest int64 if nothing is lacking; None: it cannot be told of any time.

    Where every query has stores of its own those of a new one are empty. A session may have begun with any row before,
    so of sessions it can be told only if nothing is lacking.
    """
    own = {own_store(query.name, relation.source) for relation in query.relations if not relation.is_table}
    if any(store.id in own for store in plan.stores):
        return None
    all_that_ever = lacking_after((query,), plan, replace(manifest, watermark_us=None), backfill=True)
    untils = [each.until_us for each in all_that_ever]
    has_sessions = query.aggregation is not None and isinstance(query.aggregation.window, SessionWindow)
    if None in untils or (untils and has_sessions):
        return None
    return max((until + 1 for until in untils if until is not None), default=NO_LOW)


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Why rows of a time were stored: for a query of that time a look-up tells that its rows were among them."""

    span: Unstored
    known: frozenset[KeptFor]

    @classmethod
    def of(cls, span: Unstored) -> _Reasons:
        return cls(span, frozenset(span.kept))

    def cover(self, need: Requirement) -> bool:
        mine = KeptFor(selection=_texts(need.selection), keys=need.keys)
        return mine in self.known or any(_covers(kept, need) for kept in self.span.kept)


def _unstored(
    query: Query, relation: Relation, spans: Iterable[_Reasons], watermark_us: int | None
) -> Iterable[Lacking]:
    needs = requirements_of(query, relation)
    for each in spans:
        until = _until(each.span.tau_max_us, kept_us_of(relation))
        if _matters(until, watermark_us) and not all(map(each.cover, needs)):
            yield Lacking(query=query.name, stream=relation.source, columns=(), rows=each.span.rows, until_us=until)


def _forgotten(
    query: Query, relation: Relation, progress: SourceProgress, watermark_us: int | None
) -> Iterable[Lacking]:
    """Yield what was let go too early for the query: whatever it still could join, had a window been as long."""
    window = kept_us_of(relation)
    missed = [each for each in progress.forgotten if _matters(_until(each.tau_max_us, window), watermark_us)]
    if missed:
        yield Lacking(
            query=query.name,
            stream=relation.source,
            columns=(),
            rows=sum(each.rows for each in missed),
            until_us=_until(max(each.tau_max_us for each in missed), window),
            forgotten=True,
        )


def _covers(kept: KeptFor, need: Requirement) -> bool:
    """Tell whether every row that the need asks for is one that was kept."""
    return set(kept.keys) <= set(need.keys) and set(kept.selection) <= set(_texts(need.selection))


@dataclass(frozen=True, slots=True)
class _Layouts:
    """Buckets by store and layout, each with what they hold, so that each layout is looked at once; and the stores of
    sources by id, and by source where there is just one.
    """

    by_store: Mapping[str, tuple[tuple[frozenset[str], list[Bucket]], ...]]
    stores: Mapping[str, Store]
    only: Mapping[str, Store]

    @classmethod
    def of(cls, buckets: Iterable[Bucket], plan: Plan) -> _Layouts:
        grouped: dict[str, dict[Layout, list[Bucket]]] = {}
        for bucket in buckets:
            grouped.setdefault(bucket.store, {}).setdefault(bucket.layout, []).append(bucket)
        by_source: dict[str, list[Store]] = {}
        for store in plan.stores:
            by_source.setdefault(store.source or "", []).append(store)
        return cls(
            by_store={
                store: tuple((frozenset((*layout.carried, *layout.selections)), those) for layout, those in by.items())
                for store, by in grouped.items()
            },
            stores={store.id: store for store in plan.stores if store.source is not None},
            only={source: mine[0] for source, mine in by_source.items() if len(mine) == 1},
        )

    def lacking(self, query: Query, relation: Relation, watermark_us: int | None) -> Iterable[Lacking]:
        store = self._store_of(query, relation)
        if store is None or store.id not in self.by_store:
            return
        needed = needed_of(query, relation)
        for held, buckets in self.by_store[store.id]:
            if held.issuperset(needed):
                continue
            missing = tuple(dict.fromkeys(text for name, text in needed.items() if name not in held))
            window = kept_us_of(relation)
            concerned = [bucket for bucket in buckets if _matters(_until(bucket.tau_max, window), watermark_us)]
            if concerned:
                tau_max = max((bucket.tau_max for bucket in concerned if bucket.tau_max is not None), default=None)
                yield Lacking(
                    query=query.name,
                    stream=relation.source,
                    columns=missing,
                    rows=sum(bucket.rows for bucket in concerned),
                    until_us=_until(tau_max, window),
                )

    def _store_of(self, query: Query, relation: Relation) -> Store | None:
        """Return the store that keeps the relation's rows for this query: its own under strategy ``independent``."""
        own = self.stores.get(own_store(query.name, relation.source))
        return own if own is not None and own.source == relation.source else self.only.get(relation.source)


@remembered(1 << 13)  # of hundreds of queries, each time that one of them comes or goes
def needed_of(query: Query, relation: Relation) -> dict[str, str]:
    """Return what a query needs of a relation's stored rows: names in a layout, each with the user's words for it."""
    alias = relation.alias
    needed = {column: column for column in projected_columns(query, alias)}
    for key in keys_of(query, alias):
        needed[key.name] = _shown(key.expression.sql)
        if key.value_name is not None:
            needed[key.value_name] = _shown(key.expression.sql)
    for operand in values_read(query, alias):
        if isinstance(operand, str):
            needed[operand] = operand
        else:
            needed[operand.name] = _shown(operand.expression.sql)
    waiting = () if relation.waiting is None else waiting_selections(relation.waiting)
    for selection in (selection_of(relation), *waiting):
        if selection.conjuncts:
            needed[selection.sql] = " AND ".join(_shown(conjunct.sql) for conjunct in selection.conjuncts)
    return needed


def _shown(sql: str) -> str:
    return sql[1:-1] if sql.startswith("`") and sql.find("`", 1) == len(sql) - 1 else sql.replace("`", "")


def _until(tau_us: int | None, window_us: int | None) -> int | None:
    return None if tau_us is None or window_us is None else tau_us + window_us


def _matters(until_us: int | None, watermark_us: int | None) -> bool:
    return until_us is None or watermark_us is None or until_us >= watermark_us


def _merged(parts: Iterable[Lacking]) -> tuple[Lacking, ...]:
    """Return one entry for each (query, stream, columns). A self-join reads the same rows under two aliases: the larger
    count is taken.
    """
    merged: dict[tuple[str, str, tuple[str, ...], bool], Lacking] = {}
    for each in parts:
        name = (each.query, each.stream, each.columns, each.forgotten)
        known = merged.get(name)
        if known is not None:
            endless = known.until_us is None or each.until_us is None
            until = None if endless else highest(known.until_us, each.until_us)
            each = replace(each, rows=max(known.rows, each.rows), until_us=until)
        merged[name] = each
    return tuple(merged[name] for name in sorted(merged))


__all__ = [
    "Lacking",
    "complete_from",
    "keeps_all_of",
    "kept_for",
    "lacking_after",
    "moment_text",
    "needed_of",
    "with_forgotten",
    "with_unstored",
]
