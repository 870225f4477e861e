"""Let rows without a partner, and first partners, become results in the batch that makes them certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plait.errors import ComputationError, Failure
from plait.operators.close.certain import certain_rows, mark_of_query, span_of
from plait.operators.close.certain_sql import Span
from plait.operators.close.closing import Closed
from plait.operators.close.found import write_found
from plait.operators.close.lacking import complete_from
from plait.operators.close.levels import watermark_of
from plait.operators.close.sides import Stored
from plait.operators.failing import computation_error
from plait.operators.probe.reader import Reader
from plait.operators.traversal.filling_up import begins_with_past
from plait.plan.relations import own_store
from plait.query.model import Query
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.sinks.delivery import Delivery
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage


def with_certain(
    storage: Storage,
    work: Batch,
    closed: Closed,
    live: tuple[Bucket, ...],
    deliveries: Mapping[str, Delivery],
) -> Closed:
    """Return what a batch has closed with the results that its queries with outer, semi and anti joins have by that.

    `live`: what was stored before.
    """
    reader = Reader(storage, work.epoch.readings)
    fresh = tuple(bucket for report in work.ingested for bucket in report.buckets)
    stored = Stored(reader=reader, before=reader.all_seen(live), fresh=reader.all_seen(fresh))
    before = () if work.before is None else work.before.sources
    with_past, found, failures = begins_with_past(work.before, work.number), {}, list[Failure]()
    for name in sorted(deliveries):
        binding = work.epoch.bindings[name]
        span, looked_at = span_of(binding.query, before, closed.sources), stored
        if name in with_past and work.before is not None:
            span = _with_past(binding.query, span, work.epoch, work.before)
            looked_at = Stored(reader=reader, before=(), fresh=reader.all_seen((*work.before.buckets, *fresh)))
        try:
            rows = certain_rows(binding.query, work.epoch.plan, looked_at, span, binding.joined_types)
        except ComputationError as error:
            failures += error.failures or (Failure(query=name, reason=f"query '{name}': {error}"),)
            continue
        if rows is not None:
            found[name] = (rows,)
    if failures:
        raise computation_error(tuple(failures))
    if not found:
        return closed
    report = write_found(found, deliveries, storage, batch=work.number)
    return replace(closed, found=(*closed.found, report))


def _with_past(query: Query, span: Span, epoch: Epoch, before: Manifest) -> Span:
    """Return what the first batch of a query decides that has results of the past: as if all had arrived just now, and
    as far back as what is stored says what had partners.
    """
    complete = complete_from(query, epoch.plan, replace(before, buckets=epoch.seen(before.buckets)))
    since = span.since_us if complete is None else min(complete, span.since_us)
    return replace(span, since_us=since, is_past=True)


def awaits_certain(before: Manifest, epoch: Epoch, watermark_us: int | None, marks: Mapping[str, int | None]) -> bool:
    """Tell whether stored rows would be decided about, if the watermark came there, and derived streams to their
    `marks`.
    """
    for query in (binding.query for binding in epoch.bindings.values() if binding.query.joins):
        since, until = mark_of_query(query, before.sources), watermark_of(query, watermark_us, marks)
        if until is not None and any(_closes_between(bucket, query, since, until) for bucket in before.buckets):
            return True
    return False


def _closes_between(bucket: Bucket, query: Query, since_us: int | None, until_us: int) -> bool:
    for relation in query.relations:
        waiting, is_kept = relation.waiting, bucket.store in (relation.source, own_store(query.name, relation.source))
        if not is_kept or waiting is None or waiting.window_us is None:
            continue
        if bucket.tau_min is None or bucket.tau_max is None or bucket.tau_min + waiting.window_us >= until_us:
            continue
        if since_us is None or waiting.kept_us is None or bucket.tau_max + waiting.kept_us >= since_us:
            return True
    return False


__all__ = ["awaits_certain", "with_certain"]
