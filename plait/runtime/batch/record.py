"""A micro-batch as it goes from phase to phase, each of which adds what it has done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from plait.operators.close.closing import Closed
from plait.operators.close.levels import have_ended
from plait.operators.reports import IngestReport, ProbeReport, Sample
from plait.operators.traversal.slicing import Taken
from plait.runtime.checkpoint.epoch import Epoch
from plait.sinks.staging import Publication, Unpublished
from plait.state.model import Manifest, Undelivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch and what its phases have done so far.

    `before`: the manifest it builds on. `clock_ms`: when it closes, for streams that are idle. `ingested`: what the
    tasks that took rows in have stored; `probed`: what those that probed have found; `sample`: what a few tuples have
    found on other orders; `taken`: of the rows from before to fill intermediate stores that come; `past_tuples`: the
    probe tuples for queries that get the results of before they came; `closed`: what has become final;
    `publications` and `undelivered`: results that can be shown once it is committed, and those that no sink has taken,
    which become fewer by those of sinks that take them after the commit;
    `manifest`: the state after it; `dropped`: intermediate stores it left behind to hold the storage budget;
    `unpublished`: what the manifest names and could not be shown; `published_ms`: when the rest could be seen.

    `is_fed`: Spark reads what has arrived; else nothing has, and only the watermark may have moved. `is_end`: nothing
    will arrive any more.
    """

    number: int
    epoch: Epoch
    before: Manifest | None
    clock_ms: int
    ingested: tuple[IngestReport, ...] = ()
    probed: tuple[ProbeReport, ...] = ()
    sample: Sample | None = None
    taken: Taken | None = None
    past_tuples: int = 0
    closed: Closed | None = None
    publications: tuple[Publication, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    manifest: Manifest | None = None
    dropped: frozenset[str] = frozenset()
    unpublished: tuple[Unpublished, ...] = ()
    published_ms: int | None = None
    is_fed: bool = True
    is_end: bool = False

    @property
    def found(self) -> tuple[ProbeReport, ...]:
        """All that has results: what arrivals completed, and what became final."""
        return self.probed if self.closed is None else (*self.probed, *self.closed.found)

    @property
    def rows(self) -> Counter[str]:
        """How many rows arrived, by stream; groups of queries do not arrive."""
        rows, derived = Counter[str](), {stream.name for stream in self.epoch.derived}
        for report in self.ingested:
            if report.source not in derived:
                rows[report.source] += report.rows
        return rows

    def has_joins(self) -> bool:
        """Tell whether rows may lack a partner."""
        return any(binding.query.joins for binding in self.epoch.bindings.values())

    def has_groups(self) -> bool:
        """Tell whether something waits for windows of time, or may."""
        waits = self.before is not None and bool(self.before.groups)
        return waits or any(binding.grouping is not None for binding in self.epoch.bindings.values())

    @property
    def is_over(self) -> bool:
        """Whether all that waited is decided, because nothing will arrive any more: of queries over groups, too."""
        derived = (stream.name for stream in self.epoch.derived)
        return self.is_end and self.closed is not None and have_ended(derived, self.closed.sources)

    @property
    def after(self) -> Manifest | None:
        """What the next batch builds on: the state before this one until it is committed, then what follows it. What
        cannot be published now, or a sink has not taken, is tried again with the next batch.
        """
        if self.manifest is None or self.published_ms is None:
            return self.manifest or self.before
        publications = tuple(each.publication for each in self.unpublished)
        return replace(self.manifest, publications=publications, undelivered=self.undelivered)

    @property
    def settled(self) -> Manifest:
        """The state after the batch. Raises RuntimeError before it is committed."""
        if self.manifest is None:
            raise RuntimeError(f"batch {self.number} is not committed yet")
        return self.manifest


__all__ = ["Batch"]
