"""Where a run stands: what decides whether something can still come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plait.operators.close.certain import mark_of_query
from plait.operators.close.watermark import laggard
from plait.query.model import Query, Stream
from plait.state.model import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`spark_batch`: the last batch that Spark read something for and that is done, −1 if none is; `bars`: by stream,
    before which event time nothing comes in time any more; `mark_us`: the smallest of those of the query's streams;
    `holder`: the stream that holds the watermark back. `set_aside`: why the query is; `undelivered`: why its sink does
    not take results; `since`: the first batch that answers it, if that is known; `ended`: nothing more will come.
    """

    spark_batch: int = -1
    bars: Mapping[str, int | None]
    mark_us: int | None = None
    holder: str | None = None
    set_aside: str | None = None
    undelivered: str | None = None
    since: int | None = None
    ended: bool = False

    def is_over(self, closes_us: int) -> bool:
        """Tell whether the watermark has passed an event time for all streams of the query."""
        return self.ended or (self.mark_us is not None and closes_us < self.mark_us)

    def may_come(self, source: str, until_us: int) -> bool:
        """Tell whether a row of a stream with such an event time can still come in time."""
        bar = self.bars.get(source)
        return not self.ended and (bar is None or bar <= until_us)


def standing_of(
    query: Query,
    streams: Iterable[Stream],
    manifest: Manifest | None,
    clock_ms: int,
    *,
    set_aside: str | None = None,
    since: int | None = None,
) -> Standing:
    """Return where a run stands by its last manifest. `streams`: those that take part."""
    if manifest is None:
        return Standing(bars={}, set_aside=set_aside, since=since)
    reasons = [each.reason for each in manifest.undelivered if each.query == query.name]
    return Standing(
        spark_batch=manifest.spark_batch,
        bars={each.source: each.late_before_us for each in manifest.sources},
        mark_us=mark_of_query(query, manifest.sources),
        holder=laggard(streams, manifest.sources, clock_ms),
        set_aside=set_aside,
        undelivered=reasons[0] if reasons else None,
        since=since,
        ended=manifest.ended,
    )


__all__ = ["Standing", "standing_of"]
