"""Bound what a batch reads: settle each stream's share when Spark's query starts, and see what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from plait.adapt.admission import Share, Waiting, level_rows
from plait.adapt.admitting import Watch
from plait.adapt.bounds import Bound, bounds_of, bounds_text
from plait.query.model import Stream
from plait.runtime.admission.survey import look, option_for
from plait.runtime.inputs.opening import OpenSource, reopened
from plait.state.model import Manifest, SourceProgress


@dataclass(slots=True)
class Admission:
    """The bounds in force. `batch_rows`: what a batch takes of all streams together, None for whatever there is.
    `watch` sees whether they still fit, None where Plait sets none; `opened`: the streams, opened with theirs.
    """

    spark: SparkSession
    checkpoint: str
    batch_rows: int | None
    watch: Watch | None = None
    opened: Mapping[str, OpenSource] = field(default_factory=dict)
    _streams: tuple[Stream, ...] = ()
    _waiting: tuple[Waiting, ...] = ()
    _shares: tuple[Share, ...] = ()

    def settle(self, streams: Sequence[Stream], opened: Mapping[str, OpenSource], manifest: Manifest | None) -> None:
        """Decide on the shares, by what waits now and what the checkpoint knows of the streams, and open these so."""
        self._streams = tuple(streams)
        self._waiting, self._shares = self.look(() if manifest is None else manifest.sources)
        self.watch = None
        if self.batch_rows is not None:
            self.watch = Watch(batch_rows=self.batch_rows, shares=self._shares, level_rows=level_rows(self._waiting))
        shares = {share.source: share for share in self._shares}
        self.opened = {
            name: reopened(self.spark, each, option_for(shares[name].unit), str(shares[name].value))
            if name in shares
            else each
            for name, each in opened.items()
        }

    def look(self, progress: Iterable[SourceProgress]) -> tuple[tuple[Waiting, ...], tuple[Share, ...]]:
        """Return what waits now, and what the shares would be."""
        return look(self._streams, self.checkpoint, self.batch_rows, progress)

    def bounds(self) -> tuple[Bound, ...]:
        """Return what bounds each stream."""
        return bounds_of(self._waiting, self._shares)

    @property
    def text(self) -> str:
        """What bounds a batch, in a sentence."""
        return bounds_text(self.batch_rows, self.bounds())
