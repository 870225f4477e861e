"""Windows of event time: which one a tuple belongs to, and when they are over.

Windows of one kind are as long as each other and begin a slide apart, so a tuple belongs to about size / slide of them.
A window holds its beginning and not its end. Sessions have no length of their own: rows with the same keys make one as
long as each comes soon enough after the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """The windows ``[start + n · slide, start + n · slide + size)`` of the event time of one relation, its `column`, in
    microseconds, ``0 < slide <= size``.

    `lag_us`: how much later than a tuple of that relation the newest member of its results may be. A window is over
    once the watermark has come to its end and that: what arrives from then on is in no result of a tuple in it.

    >>> hours = TimeWindow(relation="r", column="ts", size_us=60, slide_us=20, start_us=5, lag_us=0)
    >>> hours.first_end(30), hours.last_end(30)
    (45, 85)
    >>> hours.first_end(25), hours.last_end(24)
    (45, 65)
    """

    relation: str
    column: str
    size_us: int
    slide_us: int
    start_us: int
    lag_us: int

    def first_end(self, tau_us: int) -> int:
        """Return the end of the first window that holds this event time."""
        return self._begun(tau_us - self.size_us) + self.slide_us + self.size_us

    def last_end(self, tau_us: int) -> int:
        """Return the end of the last window that holds this event time."""
        return self._begun(tau_us) + self.size_us

    def over_until(self, watermark_us: int) -> int:
        """Return up to which end windows are over at a watermark."""
        return watermark_us - self.lag_us

    def _begun(self, tau_us: int) -> int:
        """Return the beginning of the last window that has begun by then."""
        return (tau_us - self.start_us) // self.slide_us * self.slide_us + self.start_us


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """Sessions of the event time of one relation, its `column`: rows that are alike in what else is grouped by, and of
    which none is more than `gap_us` later than the one before, in microseconds. A session ends a gap after its last
    row. `lag_us` as in `TimeWindow`.

    A row at the very end of a session still belongs to it and prolongs it, so that one is over once the watermark has
    **passed** its end and the lag.

    >>> visits = SessionWindow(relation="r", column="ts", gap_us=10, lag_us=3)
    >>> visits.first_end(25), visits.over_until(38), visits.over_until(39)
    (35, 34, 35)
    """

    relation: str
    column: str
    gap_us: int
    lag_us: int

    def first_end(self, tau_us: int) -> int:
        """Return the earliest end that a session with this event time can have."""
        return tau_us + self.gap_us

    def over_until(self, watermark_us: int) -> int:
        """Return up to which end sessions are over at a watermark."""
        return watermark_us - self.lag_us - 1


Window: TypeAlias = TimeWindow | SessionWindow


__all__ = ["SessionWindow", "TimeWindow", "Window"]
