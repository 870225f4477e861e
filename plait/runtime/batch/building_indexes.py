"""Build indexes that stored buckets lack beside the stream, before a plan begins that looks them up: to sort a large
bucket by another key takes longer than a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import PlaitError
from plait.plan.model import Plan
from plait.plan.traversals import probes
from plait.runtime.spark.tasks import REPORT, index_task, reports
from plait.state.model import Bucket
from plait.state.naming import index_path
from plait.state.storage import Storage

MOST_AT_ONCE: Final = 100_000
"""For so many rows a batch sorts them itself: about 30 ms."""

Unindexed: TypeAlias = tuple[Bucket, tuple[str, ...]]
"""A bucket and the keys that it has no index by."""

_LOG = logging.getLogger(__name__)


def unindexed(
    running: Plan, following: Iterable[Plan], buckets: Iterable[Bucket], storage: Storage
) -> Iterator[Unindexed]:
    """Yield the indexes that these plans look up, unlike the one that runs, and that buckets lack."""
    added: dict[str, set[tuple[str, ...]]] = {}
    for plan in following:
        for _, step in probes(plan):
            added.setdefault(step.member.store, set()).add(step.index)
    for _, step in probes(running):
        added.get(step.member.store, set()).discard(step.index)
    for bucket in buckets:
        for keys in sorted(added.get(bucket.store, ())):
            is_sorted = not keys or keys == bucket.sort_key or not set(keys) <= set(bucket.layout.keys)
            if not is_sorted and not storage.exists(index_path(bucket.path, keys)):
                yield bucket, keys


class Indexer:
    """Builds what it was given last, as a Spark job of its own in a background thread."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-indexing")
        self._running: Future[None] | None = None

    def start(self, work: tuple[Unindexed, ...]) -> None:
        """Begin to build these indexes, after those that are being built."""
        self._running = self._pool.submit(self._build, work)

    @property
    def is_done(self) -> bool:
        """Whether all is built, as far as that was possible."""
        return self._running is None or self._running.done()

    def _build(self, work: tuple[Unindexed, ...]) -> None:
        try:
            numbers = self._spark.range(0, len(work), 1, len(work))
            reports(numbers.mapInArrow(index_task(work, self._storage), REPORT).collect())
        except (PySparkException, PlaitError) as error:
            # A bucket may have been merged and deleted meanwhile. What is missing then is built by whoever looks it up.
            _LOG.warning("indexes could not be built beside the stream: %s", error)

    def close(self) -> None:
        """Wait for what is being built."""
        self._pool.shutdown(wait=True, cancel_futures=True)


__all__ = ["MOST_AT_ONCE", "Indexer", "unindexed"]
