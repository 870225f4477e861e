"""The one streaming query under all of Plait's: all sources in, ingest reports out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import StreamingQuery

from plait.operators.projection import IngestSpec
from plait.runtime.failures import explained
from plait.runtime.loading import select_ingest
from plait.runtime.session import NAMED_SOURCES, has_named_sources
from plait.runtime.sources import OpenSource, attempt
from plait.runtime.tasks import REPORT, stream_ingest
from plait.state.storage import Storage


def ingest_frame(
    opened: OpenSource, spec: IngestSpec, storage: Storage, *, slots: int, shuffle: bool, chunk_rows: int
) -> DataFrame:
    """Return the reports of the tasks that take in one stream."""

    def build() -> DataFrame:
        frame = select_ingest(opened.frame, spec)
        store = spec.stores[0][0]
        if shuffle and store.partition_by:
            numbers = {name: f"c{number}" for number, (name, _) in enumerate(spec.projection)}
            repeated = dict(spec.aliases)
            keys = ", ".join(numbers[repeated.get(name, name)] for name in store.partition_by)
            place = f"CAST(pmod(xxhash64({keys}), {store.parallelism}) AS INT)"
            frame = frame.repartitionById(store.parallelism, expr(place))
        else:
            frame = frame.coalesce(slots)
        return frame.mapInArrow(stream_ingest(spec, storage, chunk_rows), REPORT)

    return attempt(opened.source, build)


def start_query(
    spark: SparkSession,
    frames: list[DataFrame],
    *,
    checkpoint: str,
    trigger: str | None,
    process: Callable[[DataFrame, int], object],
) -> StreamingQuery:
    """Start the streaming query over all sources. `trigger` None: all that is available now, then end."""
    frame = reduce(lambda united, frame: united.union(frame), frames)
    writer = frame.writeStream.queryName("plait").option("checkpointLocation", checkpoint)

    def carry_out(batch: DataFrame, number: int) -> None:
        process(batch, number)

    writer = writer.foreachBatch(carry_out)
    writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
    if has_named_sources(spark):
        for name, value in NAMED_SOURCES.items():
            spark.conf.set(name, value)
    return writer.start()


class Stopping(Exception):
    """Raised in the streaming query's call to keep a batch from beginning while the query is being stopped."""


class Run:
    """A running engine: a thread that keeps a streaming query going, across re-starts when the plan's input changes."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._query: StreamingQuery | None = None
        self._between = threading.RLock()
        self._ending = self._restarting = False
        self._begun = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._supervise, name="plait-run", daemon=True)

    def begin(self) -> None:
        """Start, and return once Spark runs the query or has refused to."""
        self._thread.start()
        self._begun.wait()

    def batch(self, carry_out: Callable[[], object]) -> None:
        """Run a batch so that `stop` and `restart` fall between batches."""
        with self._between:
            if self._ending or self._restarting:
                raise Stopping
            try:
                carry_out()
            except Exception as error:
                self.failure = error
                raise

    def _supervise(self) -> None:
        try:
            while True:
                self._query = self._start()
                self._begun.set()
                self._await()
                if self._ending or not self._restarting or self.failure is not None:
                    return
                self._restarting = False
        except Exception as error:
            self.failure = error
        finally:
            self._begun.set()

    def _await(self) -> None:
        if self._query is None:
            return
        try:
            self._query.awaitTermination()
        except PySparkException as error:
            if not (self._ending or self._restarting) and self.failure is None:
                self.failure = error

    def stop(self) -> None:
        """Finish the batch under way, then end. Returns when everything has ended."""
        with self._between:
            self._ending = True
        if self._query is not None:
            self._query.stop()
        self._thread.join()

    def restart(self) -> None:
        """Finish the batch under way, then start the streaming query anew on its own offset log."""
        with self._between:
            self._restarting = True
        if self._query is not None:
            self._query.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, by itself or by `stop`; tell whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def is_alive(self) -> bool:
        """Tell whether the run goes on."""
        return self._thread.is_alive()

    def raise_failure(self) -> None:
        """Raise what ended the run, if something did."""
        if self.failure is not None:
            raise explained(self.failure) from self.failure
