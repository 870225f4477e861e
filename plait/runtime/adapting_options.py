"""How plans follow the data, as options of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plait.adapt.adapter import Habits
from plait.adapt.forecast import Outlook
from plait.adapt.reconsidering import Policy
from plait.sql.lexis.durations import parse_duration_us
from plait.sql.script.set_options import batches_of
from plait.stats.cycles import TEN_SECONDS, CycleLength

ADAPTING: Final = frozenset({"adapt", "cycle", "history", "forecast"})
"""Options, ``plait.<option>``."""


def habits(options: Mapping[str, str]) -> Habits:
    """Return how plans follow the data. `options`: values that `checked_option` let pass, by option."""
    return Habits(
        adapts=options.get("adapt", "auto") != "off",
        policy=Policy(outlook=Outlook(trends=options.get("forecast", "trends") != "last")),
        cycle=_cycle(options["cycle"]) if "cycle" in options else TEN_SECONDS,
    )


def _cycle(value: str) -> CycleLength:
    batches = batches_of(value)
    if batches is not None:
        return CycleLength(batches=batches)
    return CycleLength(seconds=(parse_duration_us(value) or 0) / 1_000_000)


__all__ = ["ADAPTING", "habits"]
