"""Queries that are to have the results of before they came: bit by bit, with the batches that follow.

What must hold: every combination of tuples that had all arrived before batch `since` is found once. They are found from
one relation of the query (`FillingUp.start`), whose tuples are taken in slices, each of which meets all tuples of that
time and no later one. These are kept as they were (`Past`) until the last slice is taken: a result that waits for its
slice must not be lost because a tuple of it expires. The plan for it has no intermediate stores, which come and go,
and is for this query alone: what was kept is read as it wants that, whatever queries that come later want of theirs.

What the watermark had decided before then (rows without a partner, windows of time that were over) comes with the first
batch, as far back as all is stored that decides it (`plait.operators.close.lacking.complete_from`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from plait.operators.ingest.readings import Readings
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.scheduling import Probe, Spread, by_store
from plait.operators.traversal.slicing import Allowance, next_rows, tasks_for
from plait.plan.model import Plan
from plait.plan.pruning import answering_from
from plait.plan.relations import store_for
from plait.query.model import Query
from plait.query.partners import TESTS
from plait.state.model import FillingUp, Left, Manifest, Past

AT_ONCE_ROWS: Final = 50_000
"""So many rows are taken by one batch, as by a start that fills intermediate stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPlan:
    """How the results of the past are found that a query wants: by a plan for it alone, without intermediate stores;
    and how rows of that time are read for it.
    """

    query: Query
    plan: Plan
    readings: Readings

    @property
    def stores(self) -> frozenset[str]:
        """The stores of the query's relations."""
        sources = {relation.source for relation in self.query.relations}
        return frozenset(store.id for store in self.plan.stores if store.source in sources)


def asks(query: Query) -> str:
    """Return what a query asks, as a manifest remembers it: one of the same name that asks otherwise is another."""
    windows = ", ".join(f"{relation.alias} {relation.window_us}" for relation in query.relations)
    return f"{query.text} WINDOW ({windows})"


def wanting(queries: Iterable[Query], manifest: Manifest | None, *, backfill: bool) -> tuple[Query, ...]:
    """Return the queries that want results of the past: those that have not got all of them yet, and, with `backfill`,
    those that are new to what is stored.
    """
    if manifest is None or manifest.batch < 0:
        return ()
    known = {progress.query for progress in manifest.queries}
    waiting = {(each.query, each.asks) for each in manifest.filling_up}
    known_past = (query for query in queries if has_known_past(query))
    return tuple(
        query for query in known_past if (query.name, asks(query)) in waiting or (backfill and query.name not in known)
    )


def has_known_past(query: Query) -> bool:
    """Tell whether the results of the past can be found in what is stored: what was in a table that is read again
    nobody can tell any more.
    """
    return not any(relation.changes for relation in query.relations)


def begins_with_past(manifest: Manifest | None, batch: int) -> frozenset[str]:
    """Return the queries that a batch answers first, on top of this manifest, and that have results of the past."""
    filling_up = () if manifest is None else manifest.filling_up
    return frozenset(each.query for each in filling_up if each.since == batch)


def begun(wanted: Iterable[PastPlan], manifest: Manifest, batch: int) -> Manifest:
    """Return the manifest before a batch with what queries want of the past, if it is the first that answers them;
    without what nobody waits for any more.
    """
    plans = {each.query.name: each for each in wanted}
    going_on = tuple(
        each for each in manifest.filling_up if each.query in plans and each.asks == asks(plans[each.query].query)
    )
    known = {progress.query for progress in manifest.queries} | {each.query for each in going_on}
    new = [each for name, each in plans.items() if name not in known]
    pasts = manifest.pasts
    if new:
        stores = frozenset[str]().union(*(each.stores for each in new))
        kept = [bucket for bucket in manifest.buckets if bucket.store in stores]
        kept += [bucket for each in pasts if each.since == batch for bucket in each.buckets]
        others = (each for each in pasts if each.since != batch)
        pasts = (*others, Past(since=batch, buckets=tuple(dict.fromkeys(kept))))
        going_on += tuple(_begun(each, manifest, batch) for each in new)
    return replace(manifest, filling_up=going_on, pasts=pasts_of(going_on, pasts))


def _begun(past: PastPlan, manifest: Manifest, batch: int) -> FillingUp:
    """Return that a query begins to have the results of the past, from the relation of which the fewest rows are
    stored. What arrived last is taken first.
    """
    query = past.query
    stores = {
        relation.alias: store_for(past.plan, query.name, relation.source)
        for relation in query.relations
        if not relation.is_table
    }
    rows = {
        alias: sum(bucket.rows for bucket in manifest.buckets if bucket.store == store)
        for alias, store in stores.items()
    }
    start = min(rows, key=lambda alias: (rows[alias], alias))
    is_found_late = any(step.kind in TESTS for step in query.joins)  # all of it where the watermark decides
    stored = () if is_found_late else manifest.buckets
    own = [bucket for bucket in stored if bucket.store == stores[start] and bucket.rows]
    own.sort(key=lambda bucket: (-bucket.batch_max, bucket.path))
    left = tuple(Left(path=bucket.path) for bucket in own)
    return FillingUp(
        query=query.name, asks=asks(query), start=start, since=batch, rows=sum(each.rows for each in own), left=left
    )


def pasts_of(filling_up: Iterable[FillingUp], pasts: Iterable[Past]) -> tuple[Past, ...]:
    """Return the pasts that somebody waits for."""
    waited_for: Collection[int] = {each.since for each in filling_up}
    return tuple(past for past in pasts if past.since in waited_for)


class AllAtOnce:
    """Lets everything be taken at once (`Allowance`)."""

    def rows(self) -> int:
        """Return more than there are."""
        return 1 << 62

    def took(self, rows: int, took_s: float) -> None:
        """Take it as it comes."""

    def now(self) -> float:
        """Return any time."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledUp:
    """What a batch has taken: the manifest before it with how far queries are now, and what was found, without the
    counts by edge, which are of a plan of its own; `probe_tuples`: what it took.
    """

    manifest: Manifest
    reports: tuple[ProbeReport, ...]
    probe_tuples: int


def fill_up(
    context: ProbeContext,
    wanted: Iterable[PastPlan],
    manifest: Manifest,
    probe: Probe,
    spread: Spread,
    allowance: Allowance,
) -> FilledUp:
    """Let queries have what is allowed of the results of the past. `context`: of the batch; `manifest`: before it, with
    what has `begun`.

    One that groups its results has all at once: the groups of a window are written when it is over, which may be now.
    """
    plans = {each.query.name: each for each in wanted}
    buckets = {each.since: each.buckets for each in manifest.pasts}
    after, reports = list[FillingUp](), list[ProbeReport]()
    for each in manifest.filling_up:
        stored, past = by_store(buckets[each.since]), plans[each.query]
        alone = answering_from(past.plan, each.query, each.start)
        before = replace(context, plan=alone, buckets=stored, readings=past.readings, beside=None)
        by_path = {bucket.path: bucket for tree in alone.trees for bucket in stored.get(tree.start.store, ())}
        own = allowance if past.query.aggregation is None else AllAtOnce()
        while each.left and (most := own.rows()) > 0:
            began = own.now()
            pieces, left = next_rows(each.left, by_path, most)
            reports += probe(tasks_for(pieces, spread), before)
            each = replace(each, left=left)
            own.took(sum(stop - start for _, start, stop in pieces), own.now() - began)
        after.append(each)
    return FilledUp(
        manifest=replace(manifest, filling_up=tuple(after)),
        reports=tuple(replace(report, probe_tuples=(), matched=(), matches=()) for report in reports),
        probe_tuples=sum(count for report in reports for _, count in report.probe_tuples),
    )


def rows_left(manifest: Manifest) -> int:
    """Return how many rows are still to be taken."""
    rows = {(past.since, bucket.path): bucket.rows for past in manifest.pasts for bucket in past.buckets}
    return sum(rows[each.since, left.path] - left.row for each in manifest.filling_up for left in each.left)


__all__ = [
    "AT_ONCE_ROWS",
    "AllAtOnce",
    "FilledUp",
    "PastPlan",
    "asks",
    "begins_with_past",
    "begun",
    "fill_up",
    "pasts_of",
    "rows_left",
    "wanting",
]
