"""The unit of time in which rates are easy to read: streams bring a row a day or a million a second."""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.explain import wording


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A unit of event time by name."""

    name: str
    seconds: int

    def count(self, per_s: float | None) -> str:
        """Return a number per unit, without the unit."""
        return wording.count(None if per_s is None else per_s * self.seconds)

    def rate(self, per_s: float | None, noun: str) -> str:
        """Return a number per unit: ``40 probe tuples/h``."""
        return f"{self.count(per_s)} {noun}/{self.name}"


PACES = (
    Pace(name="s", seconds=1),
    Pace(name="min", seconds=60),
    Pace(name="h", seconds=3_600),
    Pace(name="day", seconds=86_400),
)


def pace_for(per_s: float | None) -> Pace:
    """Return the smallest unit in which this rate is at least ten."""
    if not per_s:
        return PACES[0]
    return next((pace for pace in PACES if per_s * pace.seconds >= 10), PACES[-1])
