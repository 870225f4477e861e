"""What is told of the batches of a run: each in an event, and all of them in sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from plait.errors import PlaitError
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.totals import Totals
from plait.runtime.checkpoint.arrivals import Arrivals
from plait.runtime.checkpoint.partition_offsets import goes_on_without, passed_over
from plait.runtime.inputs.opening import OpenSource
from plait.runtime.losses.counts import SourceCounts
from plait.runtime.losses.malformed import Explainer
from plait.runtime.losses.times import implausible_times
from plait.sources import spark_name
from plait.stats.latency import LatencyWindow


@dataclass(slots=True, kw_only=True)
class Telling:
    """Completes the events of one run, adds them up and hands them to the `listener`. `sources`: what is registered."""

    explainer: Explainer
    sources: Mapping[str, OpenSource]
    arrivals: Arrivals
    latencies: LatencyWindow
    listener: Callable[[BatchEvent], None] | None
    totals: Totals = field(default_factory=Totals)

    def hear(self, event: BatchEvent) -> None:
        """Take up a batch: say why rows are bad and how long they have waited, and what nobody has been told yet."""
        counted = (self._with_gone(counts, event.spark_batch) for counts in event.sources)
        sources = tuple(self.explainer.explained(counts, self.sources[counts.source]) for counts in counted)
        self.totals.warn(implausible_times(sources, self.totals.warned_of("event times")))
        rows = {counts.source: counts.rows for counts in sources}
        arrived, unknown = self.arrivals.of_batch(event.spark_batch, rows) if rows else ([], frozenset())
        self.latencies.add(arrived, event.published_ms, unknown)
        latency = self.latencies.latency()
        event = replace(event, sources=sources, warnings=self.totals.untold(), latency=latency)
        self.totals.add(event)
        if self.listener is not None:
            self.listener(event)

    def _with_gone(self, counts: SourceCounts, batch: int) -> SourceCounts:
        """Return the counts with how many offsets of the batch held no record."""
        source = self.sources[counts.source].source
        if not goes_on_without(source):
            return counts
        try:
            before, now = self.arrivals.offsets(batch)
        except (PlaitError, OSError, ValueError):
            return counts
        name = spark_name(source.name)
        return replace(counts, gone=passed_over(counts.rows, before.get(name), now.get(name)))


__all__ = ["Telling"]
