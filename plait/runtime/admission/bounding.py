"""Bound what a batch reads: settle each stream's share when Spark's query starts, and see what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from plait.adapt.admission import Share, Waiting, level_rows
from plait.adapt.admitting import Watch
from plait.adapt.bounds import Bound, bounds_of, described
from plait.query.model import Connector, Stream
from plait.runtime.admission.survey import look, option_for
from plait.runtime.inputs.opening import OpenSource, open_source
from plait.sources import format_of
from plait.state.model import SourceProgress


@dataclass(slots=True)
class Admission:
    """The bounds in force. `batch_rows`: what a batch takes of all streams together, None for whatever there is."""

    spark: SparkSession
    checkpoint: str
    batch_rows: int | None
    _streams: tuple[Stream, ...] = ()
    _waiting: tuple[Waiting, ...] = ()
    _shares: Mapping[str, Share] = field(default_factory=dict)
    _watch: Watch | None = None

    def settle(self, streams: Iterable[Stream], progress: Iterable[SourceProgress]) -> None:
        """Decide on the shares, by what waits now and what the checkpoint knows of the streams."""
        self._streams = tuple(streams)
        self._waiting, shares = self._look(progress)
        self._shares = {share.source: share for share in shares}
        self._watch = None
        if self.batch_rows is not None:
            self._watch = Watch(batch_rows=self.batch_rows, shares=shares, level_rows=level_rows(self._waiting))

    def bounded(self, opened: OpenSource) -> OpenSource:
        """Return the source opened with its bound; as it is if Plait has none for it."""
        share, connector = self._shares.get(opened.source.name), opened.source.connector
        if share is None or connector is None:
            return opened
        bound = Connector(
            format=connector.format, options=(*connector.options, (option_for(share.unit), str(share.value)))
        )
        # What Spark has found out about the columns need not be found out again; some connectors take no columns.
        schema = opened.source.schema if format_of(connector.format).reads_files else None
        reopened = open_source(self.spark, replace(opened.source, connector=bound, schema=schema))
        return replace(opened, frame=reopened.frame)

    def batch_done(self, rows: Mapping[str, int], progress: Iterable[SourceProgress]) -> bool:
        """Tell whether the shares should be settled anew, which takes a restart of Spark's query, after a batch that
        took so many rows of each stream.
        """
        if self._watch is None or not self._watch.batch_done(rows):
            return False
        return self._watch.settled(*self._look(progress))

    def bounds(self) -> tuple[Bound, ...]:
        """Return what bounds each stream."""
        return bounds_of(self._waiting, self._shares.values())

    @property
    def text(self) -> str:
        """What bounds a batch, in a sentence."""
        return described(self.batch_rows, self.bounds())

    def _look(self, progress: Iterable[SourceProgress]) -> tuple[tuple[Waiting, ...], tuple[Share, ...]]:
        return look(self._streams, self.checkpoint, self.batch_rows, progress)
