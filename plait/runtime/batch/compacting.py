"""Merge small buckets beside the stream. A merge takes effect with the next manifest, if its buckets are still live."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace as with_changes

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import PlaitError
from plait.operators.close.keeping import windows_of
from plait.operators.ingest.readings import NO_READINGS, Readings
from plait.operators.probe.reader import seen
from plait.operators.traversal.scheduling import lacks
from plait.plan.model import Plan, Store
from plait.runtime.spark.tasks import REPORT, MergeWork, merge_task, reports
from plait.state import compaction
from plait.state.compaction import Merge, choose_merges
from plait.state.fillings import after_merge, fence, may_merge
from plait.state.model import Bucket, Filling, Manifest
from plait.state.storage import Storage

_LOG = logging.getLogger(__name__)
_Merged = tuple[tuple[Merge, Bucket], ...]


class Compactor:
    """Runs at most one round of merges at a time, as a Spark job of its own in a background thread."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-compaction")
        self._running: Future[_Merged] | None = None

    @property
    def is_running(self) -> bool:
        """Whether a round is under way or waits to be adopted."""
        return self._running is not None

    def start(
        self,
        buckets: tuple[Bucket, ...],
        plan: Plan,
        fillings: tuple[Filling, ...] = (),
        readings: Readings = NO_READINGS,
    ) -> None:
        """Begin merging what is worth it, unless a round is under way. What is read under one layout becomes one, and
        has that layout then.
        """
        if self._running is not None:
            return
        merges = choose_merges(
            buckets, windows_of(plan), fence=fence(fillings), layout_of=lambda bucket: seen(bucket, readings).layout
        )
        if merges:
            indexes = {store.id: store.indexes for store in plan.stores}
            stores = ((merge, merge.buckets[0].store) for merge in merges)
            work = tuple(MergeWork(merge=merge, indexes=indexes[of], reading=readings.get(of)) for merge, of in stores)
            self._running = self._pool.submit(self._merge, work)

    def _merge(self, work: tuple[MergeWork, ...]) -> _Merged:
        numbers = self._spark.range(0, len(work), 1, len(work))
        merged = reports(numbers.mapInArrow(merge_task(work, self._storage), REPORT).collect())
        return tuple((work[number].merge, bucket) for number, bucket in merged)

    def adopt(self, manifest: Manifest, plan: Plan, readings: Readings = NO_READINGS) -> Manifest:
        """Return the manifest with finished merges in place of what they merged, and what is left to take of them. A
        merge that began under another plan may have lost what this one reads: then they stay as they are.
        """
        if self._running is None or not self._running.done():
            return manifest
        running, self._running = self._running, None
        try:
            merged = running.result()
        except (PySparkException, PlaitError) as error:
            # Merging only saves work later. What made it fail (a full disk, say) will stop a batch soon enough.
            _LOG.warning("buckets could not be merged, which is tried again later: %s", error)
            return manifest
        stores = {store.id: store for store in plan.stores}
        buckets, fillings, copies = manifest.buckets, manifest.fillings, manifest.copies
        for merge, bucket in merged:
            if _loses(merge, bucket, stores.get(bucket.store), readings):
                continue
            copies = compaction.replace(copies, merge, bucket)
            after = compaction.replace(buckets, merge, bucket) if may_merge(merge, fillings) else buckets
            if after != buckets:
                buckets, fillings = after, after_merge(fillings, merge, bucket)
        return with_changes(manifest, buckets=buckets, fillings=fillings, copies=copies)

    def close(self) -> None:
        """Wait for the round under way; its outcome is dropped."""
        self._pool.shutdown(wait=True)


def _loses(merge: Merge, merged: Bucket, store: Store | None, readings: Readings) -> bool:
    """Tell whether rows lack something that a store wants of them only since they are merged."""
    if store is None or not lacks(seen(merged, readings), store):
        return False
    return not all(lacks(seen(bucket, readings), store) for bucket in merge.buckets)
