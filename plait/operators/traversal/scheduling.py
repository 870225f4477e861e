"""Which tasks probe in a micro-batch, and in what order: nothing here knows of manifests.

A batch's starting tuples traverse the probe trees phase by phase; what one phase keeps in intermediate stores the next
can find. The same traversal with what is stored fills new stores and new queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from plait.operators.ingest.projection import layout_of
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask, Start
from plait.plan.model import Plan, Store
from plait.plan.pruning import last_filling
from plait.plan.traversals import intermediates, phases
from plait.state.model import Bucket, Layout


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


_STEP_ROWS = 2_000
"""A step takes as long as what is done for so many rows, however few there are."""


def probe_tasks(plan: Plan, trees: Iterable[int], delta: Iterable[Bucket], spread: Spread) -> tuple[ProbeTask, ...]:
    """Spread the starting tuples of a batch for these trees (by number) over tasks of about equal work, largest shares
    first.
    """
    shares: list[_Share] = []
    stores = by_store(delta)
    for number in trees:
        tree = plan.trees[number]
        shares += _shares(number, stores.get(tree.start.store, ()), sum(1 for _ in tree.steps()), spread)
    return _binned(shares, spread)


def _binned(shares: list[_Share], spread: Spread) -> tuple[ProbeTask, ...]:
    shares.sort(key=lambda share: (-share.work, share.starts[0][0], share.starts[0][1].path, share.starts[0][2]))
    bins: list[list[Start]] = [[] for _ in range(min(spread.slots, len(shares)))]
    loads = [0] * len(bins)
    fair = sum(share.work for share in shares) / max(len(bins), 1)
    for share in shares:
        # One partition's tuples mostly stay in it, so that a task maps few buckets; but not at the price of balance.
        chosen = share.partition % len(bins)
        if loads[chosen] + share.work > 1.25 * fair:
            chosen = loads.index(min(loads))
        bins[chosen] += share.starts
        loads[chosen] += share.work
    return tuple(ProbeTask(number=number, starts=tuple(starts)) for number, starts in enumerate(filter(None, bins)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What one task starts with in one tree. `work`: in rows; `partition`: where it mostly stays."""

    starts: tuple[Start, ...]
    work: int
    partition: int


def _shares(number: int, buckets: Iterable[Bucket], steps: int, spread: Spread) -> Iterator[_Share]:
    """Yield the shares of a tree of so many steps: pieces of its buckets, or all in one if the steps take longer than
    what is done for the rows: two tasks would take as long each as one for both.
    """
    chosen = tuple(buckets)
    rows, overhead = sum(bucket.rows for bucket in chosen), steps * _STEP_ROWS
    if chosen and rows <= overhead:
        starts = tuple((number, bucket, 0, bucket.rows) for bucket in chosen)
        yield _Share(starts=starts, work=rows + overhead, partition=number)
        return
    for bucket in chosen:
        count = max(1, -(-bucket.rows // spread.rows_per_start))
        bounds = [bucket.rows * part // count for part in range(count + 1)]
        for low, high in pairwise(bounds):
            starts = ((number, bucket, low, high),)
            yield _Share(starts=starts, work=high - low + overhead, partition=bucket.partition)


def spread_over(starts: Iterable[Start], spread: Spread) -> tuple[ProbeTask, ...]:
    """Spread these starting tuples, of one tree, over as many tasks as run at a time if they are worth it."""
    shares: list[_Share] = []
    for number, bucket, start, stop in starts:
        rows = stop - start
        count = max(1, min(spread.slots, rows // _STEP_ROWS), -(-rows // spread.rows_per_start))
        bounds = [start + rows * part // count for part in range(count + 1)]
        shares += [
            _Share(starts=((number, bucket, low, high),), work=high - low, partition=bucket.partition)
            for low, high in pairwise(bounds)
        ]
    return _binned(shares, spread)


Probe: TypeAlias = Callable[[tuple[ProbeTask, ...], ProbeContext], tuple[ProbeReport, ...]]
"""Carries out probe tasks, by Spark or otherwise."""


def probe_in_phases(
    context: ProbeContext, live: tuple[Bucket, ...], delta: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[ProbeReport, ...]:
    """Traverse all trees with a batch's tuples (`delta`); what one phase keeps in a store the next can find."""
    all_reports: tuple[ProbeReport, ...] = ()
    made: tuple[Bucket, ...] = ()
    arrived = (*delta, *_copies_of(context))
    for trees in phases(context.plan):
        tasks = probe_tasks(context.plan, trees, arrived, spread)
        reports = probe(tasks, replace(context, buckets=by_store((*live, *delta, *made))))
        made += tuple(bucket for report in reports for bucket in report.buckets)
        all_reports += reports
    return all_reports


def _copies_of(context: ProbeContext) -> tuple[Bucket, ...]:
    """Return the copies of a batch's tuples that tables have sent where they are wanted."""
    if context.tables is None:
        return ()
    copies = (copy for of_store in context.tables.copies.values() for copy in of_store)
    return tuple(copy for copy in copies if copy.batch_max >= context.batch)


def probe_stored(
    context: ProbeContext, live: tuple[Bucket, ...], probe: Probe, spread: Spread
) -> tuple[ProbeReport, ...]:
    """Traverse all trees of the plan with what is stored, as if it had all arrived just now."""
    tasks = probe_tasks(context.plan, range(len(context.plan.trees)), live, spread)
    return probe(tasks, replace(context, buckets=by_store(live)))


def with_intermediates(
    context: ProbeContext,
    buckets: tuple[Bucket, ...],
    probe: Probe,
    spread: Spread,
    complete: frozenset[str] = frozenset(),
) -> tuple[Bucket, ...]:
    """Return the stored buckets with every intermediate store of the plan filled from what the others hold, except
    those that come and those known to be `complete`.

    One that has buckets is complete, because every batch since it was filled has kept it so; but if they lack something
    that is needed now, it is filled anew. Smaller ones come first: larger ones may be filled from them.
    """
    plan = context.plan
    done = complete.union(plan.coming)
    stores = {store.id: store for store, _ in intermediates(plan) if store.id not in done}
    lacking = {bucket.store for bucket in buckets if bucket.store in stores and lacks(bucket, stores[bucket.store])}
    kept = tuple(bucket for bucket in buckets if bucket.store not in lacking)
    filled = done.union(bucket.store for bucket in kept)
    for store, _ in intermediates(plan):
        if store.id not in filled:
            past = replace(context, plan=last_filling(plan, store.id), kept_before=True)
            reports = probe_stored(past, kept, probe, spread)
            kept += tuple(bucket for report in reports for bucket in report.buckets)
    return kept


def lacks(bucket: Bucket, store: Store) -> bool:
    """Tell whether the bucket lacks a column, key or selection of the store's layout."""
    return is_less(bucket.layout, store)


def is_less(have: Layout, store: Store) -> bool:
    """Tell whether a layout lacks a column, key or selection of the store's."""
    want = layout_of(store)
    return not (set(have.carried).issuperset(want.carried) and set(have.selections).issuperset(want.selections))


__all__ = [
    "Probe",
    "Spread",
    "by_store",
    "is_less",
    "lacks",
    "probe_in_phases",
    "probe_stored",
    "probe_tasks",
    "spread_over",
    "with_intermediates",
]
