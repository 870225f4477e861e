"""Read tables again that change, between two batches, as often as they are to be.

A table whose new rows cannot be had keeps those it has; that is tried again with the next batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import PlaitError, reason_of
from plait.operators.reports import IngestReport
from plait.operators.traversal.refreshing import Refreshed, refreshed
from plait.plan.model import Plan
from plait.query.model import Source, Table
from plait.runtime.inputs.loading import load_store
from plait.runtime.inputs.opening import OpenSource, opened_again
from plait.runtime.settings import Settings
from plait.state.model import Manifest
from plait.state.storage import Storage

_LOG = logging.getLogger(__name__)


class Refresher:
    """Knows when tables were read. `loaded`: those that were when the run started, at `now_ms`; of others it is not
    known, so they are read before the first batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: Settings,
        loaded: Iterable[IngestReport],
        now_ms: int,
    ) -> None:
        self._spark, self._storage, self._settings = spark, storage, settings
        self._read_ms = dict[str, int]()
        self.note(loaded, now_ms)

    def note(self, loaded: Iterable[IngestReport], now_ms: int) -> None:
        """Note that tables were read."""
        self._read_ms |= {report.source: now_ms for report in loaded}

    def refresh(
        self, sources: Mapping[str, OpenSource], plan: Plan, manifest: Manifest, now_ms: int
    ) -> Iterator[Refreshed]:
        """Read the tables that are due; yield what the next batch builds on after each."""
        for name in sorted({store.source for store in plan.stores if store.is_table and store.source is not None}):
            if not self._is_due(sources[name].source, now_ms):
                continue
            stores = [store for store in plan.stores if store.is_table and store.source == name]
            try:
                opened = opened_again(self._spark, sources[name])
                rows = [load_store(opened, store, self._storage, self._settings).buckets for store in stores]
            except (PySparkException, Py4JJavaError, PlaitError, OSError, pa.ArrowException) as error:
                _LOG.warning("table '%s' keeps the rows it has: it cannot be read again (%s)", name, reason_of(error))
                continue
            self._read_ms[name] = now_ms
            found = refreshed(plan, manifest, [store.id for store in stores], (each for part in rows for each in part))
            manifest = found.manifest
            yield found

    def _is_due(self, source: Source, now_ms: int) -> bool:
        every_us = source.refresh_us if isinstance(source, Table) else None
        read_ms = self._read_ms.get(source.name)
        return every_us is not None and (read_ms is None or now_ms - read_ms >= every_us // 1000)


__all__ = ["Refresher"]
