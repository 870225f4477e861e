"""Follow the distinct values of the keys in every store of a stream, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.operators.ingest.report_sums import highest, union_sketches
from plait.operators.reports import IngestReport
from plait.plan.model import Plan, Store
from plait.state.model import Manifest
from plait.stats.cycles import Count
from plait.stats.live_keys import LiveKeys, added_and_expired, most_followed, with_arrived, without_expired

_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedKeys:
    """What is followed after a batch, and what it adds to the series of κ."""

    live: tuple[LiveKeys, ...]
    counts: tuple[Count, ...]


def counted_keys(previous: Manifest | None, plan: Plan, ingested: Iterable[IngestReport]) -> CountedKeys:
    """Return what a batch did to the keys of the stores of streams: all of them, or as many as may be followed
    (`plait.stats.live_keys`). Rows are gone when the watermark that the batch began with has passed them and the
    store's window.
    """
    known = {} if previous is None else {(each.store, each.key): each for each in previous.live_keys}
    watermark = None if previous is None else previous.watermark_us
    sketches: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {}
    ends: dict[str, int | None] = {}
    for report in ingested:
        sketches[report.source] = union_sketches(sketches.get(report.source, ()), report.sketches)
        ends[report.source] = highest(ends.get(report.source), report.tau_max)
    live, counts = list[LiveKeys](), list[Count]()
    keys = [(store, key) for store in plan.stores for key in _keys(store)]
    followed, most = most_followed(len(keys))
    for store, key in keys[:followed]:
        arrived, end = dict(sketches.get(store.source or "", ())), ends.get(store.source or "")
        before = known.get((store.id, key), LiveKeys(store=store.id, key=key))
        more = before if end is None else with_arrived(before, arrived.get(key, ()), end // _US_PER_MS, most)
        after = _let_go(more, store, watermark, most)
        live.append(after)
        changed = added_and_expired(before, more, after)
        if any(changed):
            counts.append(Count(kind="keys", name=(store.id, key), counts=changed))
    return CountedKeys(live=tuple(live), counts=tuple(counts))


def _keys(store: Store) -> list[str]:
    """Return the keys of the store of a stream, each once; none of another store."""
    return [] if store.source is None or store.is_table else sorted({each.name for each in store.keys})


def _let_go(live: LiveKeys, store: Store, watermark_us: int | None, most: int) -> LiveKeys:
    if watermark_us is None or store.window_us is None:
        return live
    return without_expired(live, (watermark_us - store.window_us) // _US_PER_MS, most)


__all__ = ["CountedKeys", "counted_keys"]
