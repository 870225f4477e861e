"""Follow the distinct values of the keys in every store of a stream, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.operators.ingest.ingest import highest, union_sketches
from plait.operators.reports import IngestReport
from plait.plan.model import Plan, Store
from plait.state.model import Manifest
from plait.stats.cycles import Count
from plait.stats.live_keys import LiveKeys, added_and_expired, with_arrived, without_expired

_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedKeys:
    """What is followed after a batch, and what it adds to the series of κ."""

    live: tuple[LiveKeys, ...]
    counts: tuple[Count, ...]


def counted_keys(previous: Manifest | None, plan: Plan, ingested: Iterable[IngestReport]) -> CountedKeys:
    """Return what a batch did to the keys of every store of a stream. Rows are gone when the watermark that the batch
    began with has passed them and the store's window.
    """
    known = {} if previous is None else {(each.store, each.key): each for each in previous.live_keys}
    watermark = None if previous is None else previous.watermark_us
    sketches: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {}
    ends: dict[str, int | None] = {}
    for report in ingested:
        sketches[report.source] = union_sketches(sketches.get(report.source, ()), report.sketches)
        ends[report.source] = highest(ends.get(report.source), report.tau_max)
    live, counts = list[LiveKeys](), list[Count]()
    for store in (each for each in plan.stores if each.source is not None and not each.is_table):
        arrived, end = dict(sketches.get(store.source or "", ())), ends.get(store.source or "")
        for key in sorted({each.name for each in store.keys}):
            before = known.get((store.id, key), LiveKeys(store=store.id, key=key))
            more = before if end is None else with_arrived(before, arrived.get(key, ()), end // _US_PER_MS)
            after = _let_go(more, store, watermark)
            live.append(after)
            changed = added_and_expired(before, more, after)
            if any(changed):
                counts.append(Count(kind="keys", name=(store.id, key), counts=changed))
    return CountedKeys(live=tuple(live), counts=tuple(counts))


def _let_go(live: LiveKeys, store: Store, watermark_us: int | None) -> LiveKeys:
    if watermark_us is None or store.window_us is None:
        return live
    return without_expired(live, (watermark_us - store.window_us) // _US_PER_MS)


__all__ = ["CountedKeys", "counted_keys"]
