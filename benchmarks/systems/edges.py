"""An edge of a plan: what was sent along it against what was expected. Light, so that any system may load it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTruth:
    """An edge: probe tuples `measured`, those the plan's estimate comes to (`estimated`), and with
    windows that have to fill first (`filling`).

    `joined`: streams joined before the edge. `span_us`: event time over which it is counted.
    """

    edge: str
    joined: int
    span_us: int
    measured: int
    estimated: float
    filling: float

    def __add__(self, other: EdgeTruth) -> EdgeTruth:
        """Return the same edge over both stretches of time."""
        return EdgeTruth(
            edge=self.edge,
            joined=self.joined,
            span_us=self.span_us + other.span_us,
            measured=self.measured + other.measured,
            estimated=self.estimated + other.estimated,
            filling=self.filling + other.filling,
        )

    @property
    def q_error(self) -> float:
        """How far off the estimate is, as a factor of at least one. Less than one tuple counts as one."""
        return q_error(self.measured, self.estimated)

    @property
    def filling_q_error(self) -> float:
        """How far off `filling` is."""
        return q_error(self.measured, self.filling)


def q_error(measured: float, estimated: float) -> float:
    """Return max(measured / estimated, estimated / measured), nothing below one tuple.

    >>> q_error(50, 100), q_error(0, 0.2)
    (2.0, 1.0)
    """
    larger, smaller = max(measured, estimated, 1.0), max(min(measured, estimated), 1.0)
    return larger / smaller
