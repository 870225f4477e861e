"""Which tasks probe in a micro-batch, and in what order: nothing here knows of manifests.

A batch's starting tuples traverse the probe trees phase by phase; what one phase keeps in intermediate stores the next
can find. The same traversal with what is stored fills new stores and new queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from plait.operators.ingest.projection import layout_of
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.traverse import ProbeTask
from plait.plan.model import Plan, Store
from plait.plan.pruning import last_filling
from plait.plan.traversals import intermediates, phases
from plait.state.model import Bucket


def by_store(buckets: Iterable[Bucket]) -> dict[str, tuple[Bucket, ...]]:
    """Group buckets by store."""
    grouped: dict[str, list[Bucket]] = {}
    for bucket in buckets:
        grouped.setdefault(bucket.store, []).append(bucket)
    return {store: tuple(together) for store, together in grouped.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Over how many tasks starting tuples are spread, and the most of them that one traversal takes from one bucket."""

    slots: int
    rows_per_start: int = 250_000


def probe_tasks(plan: Plan, trees: Iterable[int], delta: Iterable[Bucket], spread: Spread) -> tuple[ProbeTask, ...]:
    """Spread the starting tuples of a batch for these trees (by number) over tasks of about equal rows, largest pieces
    first.
    """
    pieces = []
    stores = by_store(delta)
    for number in trees:
        for bucket in stores.get(plan.trees[number].start.store, ()):
            count = max(1, -(-bucket.rows // spread.rows_per_start))
            bounds = [bucket.rows * part // count for part in range(count + 1)]
            pieces += [(number, bucket, low, high) for low, high in pairwise(bounds)]
    pieces.sort(key=lambda piece: (piece[2] - piece[3], piece[0], piece[1].path, piece[2]))
    bins: list[list[tuple[int, Bucket, int, int]]] = [[] for _ in range(min(spread.slots, len(pieces)))]
    loads = [0] * len(bins)
    fair = sum(piece[3] - piece[2] for piece in pieces) / max(len(bins), 1)
    for piece in pieces:
        # One partition's tuples mostly stay in it, so that a task maps few buckets; but not at the price of balance.
        chosen = piece[1].partition % len(bins)
        if loads[chosen] + piece[3] - piece[2] > 1.25 * fair:
            chosen = loads.index(min(loads))
        bins[chosen].append(piece)
        loads[chosen] += piece[3] - piece[2]
    return tuple(ProbeTask(number=number, starts=tuple(starts)) for number, starts in enumerate(filter(None, bins)))


Probe: TypeAlias = Callable[[tuple[ProbeTask, ...], ProbeContext], tuple[ProbeReport, ...]]
"""Carries out probe tasks, by Spark or otherwise."""


def probe_in_phases(
    context: ProbeContext, live: tuple[Bucket, ...], delta: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[ProbeReport, ...]:
    """Traverse all trees with a batch's tuples (`delta`); what one phase keeps in a store the next can find."""
    all_reports: tuple[ProbeReport, ...] = ()
    made: tuple[Bucket, ...] = ()
    for trees in phases(context.plan):
        tasks = probe_tasks(context.plan, trees, delta, spread)
        reports = probe(tasks, replace(context, buckets=by_store((*live, *delta, *made))))
        made += tuple(bucket for report in reports for bucket in report.buckets)
        all_reports += reports
    return all_reports


def probe_stored(
    context: ProbeContext, live: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[ProbeReport, ...]:
    """Traverse all trees of the plan with what is stored, as if it had all arrived just now."""
    tasks = probe_tasks(context.plan, range(len(context.plan.trees)), live, spread)
    return probe(tasks, replace(context, buckets=by_store(live)))


def with_intermediates(
    context: ProbeContext, buckets: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[Bucket, ...]:
    """Return the stored buckets with every intermediate store of the plan filled from what the others hold.

    One that has buckets is complete, because every batch since it was filled has kept it so; but if they lack something
    that is needed now, it is filled anew. Smaller ones come first: larger ones may be filled from them.
    """
    plan = context.plan
    stores = {store.id: store for store, _ in intermediates(plan)}
    lacking = {bucket.store for bucket in buckets if bucket.store in stores and lacks(bucket, stores[bucket.store])}
    kept = tuple(bucket for bucket in buckets if bucket.store not in lacking)
    filled = {bucket.store for bucket in kept}
    for store, _ in intermediates(plan):
        if store.id not in filled:
            past = replace(context, plan=last_filling(plan, store.id), kept_before=True)
            reports = probe_stored(past, kept, probe, spread)
            kept += tuple(bucket for report in reports for bucket in report.buckets)
    return kept


def lacks(bucket: Bucket, store: Store) -> bool:
    """Tell whether the bucket lacks a column, key or selection of the store's layout."""
    have, want = bucket.layout, layout_of(store)
    return not (set(have.carried).issuperset(want.carried) and set(have.selections).issuperset(want.selections))


__all__ = [
    "Probe",
    "Spread",
    "by_store",
    "lacks",
    "probe_in_phases",
    "probe_stored",
    "probe_tasks",
    "with_intermediates",
]
