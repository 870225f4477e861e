"""`plait explain --history --format mermaid`: a Gantt chart of the plans that were in force, one bar an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.runtime.checkpoint.plan_history import Entry

_SHORTEST_MS = 1_000
"""So long a bar is at least, lest it be too thin to see; also that of the epoch in force, whose end nobody knows."""

_APART = str.maketrans({":": " ", ";": " ", "#": " ", ",": " ", "\n": " "})
"""What ends a name in a Gantt chart."""


def history_mermaid(entries: Sequence[Entry]) -> str:
    """Return the epochs as a Gantt chart: those that a run began with as active, where a change was measured to save
    something as done, where it was taken back or costs more as critical.
    """
    lines = ["gantt", "  title Plans in force", "  dateFormat x", "  axisFormat %m-%d %H.%M.%S"]
    for place, entry in enumerate(entries):
        following = entries[place + 1 : place + 2]
        lines += _bar(entry, following[0].clock_ms if following else None)
    return "\n".join(lines) + "\n"


def _bar(entry: Entry, end_ms: int | None) -> Iterator[str]:
    last = max(end_ms or 0, entry.clock_ms + _SHORTEST_MS)
    yield f"  section epoch {entry.epoch}"
    yield f"    {_name(entry)} :{_colour(entry)}e{entry.epoch}, {entry.clock_ms}, {last}"


def _name(entry: Entry) -> str:
    words = [f"batch {entry.batch} {entry.strategy}"]
    if entry.change is None:
        words.append("a run began")
    else:
        words.append(str(entry.change["reason"]))
        words += [f"forecast {_gain(entry.change['gain'])}"] if entry.change["gain"] is not None else []
    if entry.outcome is not None and entry.outcome["gain"] is not None:
        words.append(f"measured {_gain(entry.outcome['gain'])}")
    return " – ".join(words).translate(_APART)


def _gain(gain: float) -> str:
    return f"saves {gain:.0%}" if gain >= 0 else f"costs {-gain:.0%} more"


def _colour(entry: Entry) -> str:
    if entry.change is None:
        return "active, "
    if entry.outcome is None:
        return ""
    return "crit, " if entry.outcome["taken_back"] or (entry.outcome["gain"] or 0.0) < 0 else "done, "


__all__ = ["history_mermaid"]
