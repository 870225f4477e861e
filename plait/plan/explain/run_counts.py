"""What a run has counted, in the units of the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_US_PER_S = 1_000_000
NOTABLE = 2.0
"""Estimates that are off by at most this factor are as good as can be hoped for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCount:
    """Probe tuples sent along an edge, while `span_us` of event time arrived on the starting stream (None: no time)."""

    edge: str
    probe_tuples: int
    span_us: int | None

    @property
    def per_s(self) -> float | None:
        """Return the probe tuples per second of event time."""
        return self.probe_tuples * _US_PER_S / self.span_us if self.span_us else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCount:
    """What a store keeps."""

    store: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Counts up to batch `batch`: on edges over the last `batches` batches, all of them under the plan explained.
    `sampled`: the probe tuples that samples of other orders took in these batches, which are on none of the edges.
    """

    batch: int
    batches: int
    edges: tuple[EdgeCount, ...] = ()
    stores: tuple[StoreCount, ...] = ()
    sampled: int = 0

    @property
    def sampled_share(self) -> float | None:
        """Return the probe tuples of samples against those of the plan; None if there are none."""
        counted = sum(count.probe_tuples for count in self.edges)
        return self.sampled / counted if self.sampled and counted else None

    @property
    def by_edge(self) -> Mapping[str, float]:
        """Return the probe tuples per second of event time by edge, where time has passed."""
        return {count.edge: count.per_s for count in self.edges if count.per_s is not None}

    @property
    def by_store(self) -> Mapping[str, StoreCount]:
        """Return the counts by store."""
        return {count.store: count for count in self.stores}

    @property
    def probe_tuples_per_s(self) -> float | None:
        """Return the probe tuples of all edges per second of event time; None before any time has passed."""
        rates = self.by_edge
        return sum(rates.values()) if rates else None

    @property
    def span_us(self) -> int | None:
        """Return the longest event time that any edge was counted over."""
        return max((count.span_us for count in self.edges if count.span_us), default=None)


def off_by(measured: float, expected: float | None) -> float | None:
    """Return measured / expected where that is off by more than `NOTABLE`; None where it is not, or cannot be said."""
    if not expected or not measured:
        return None
    ratio = measured / expected
    return ratio if max(ratio, 1 / ratio) > NOTABLE else None
