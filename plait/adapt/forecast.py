"""What the next batches will be like, judging by those that are done.

Today the forecast is the average of all that has been counted, beside what the user declared.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.query.model import Source
from plait.state.model import SourceProgress
from plait.stats.combine import combine
from plait.stats.declared import declared_statistics
from plait.stats.measured import Measurement, measured_statistics
from plait.stats.model import Statistics


def forecast(sources: Iterable[Source], progress: Iterable[SourceProgress]) -> Statistics:
    """Return the statistics to plan with: what is declared about the sources, and what finished batches showed."""
    measured = measured_statistics(
        Measurement(
            source=found.source,
            rows=found.rows,
            tau_min_us=found.tau_min,
            tau_max_us=found.tau_max,
            sketches=found.sketch,
            kept=found.kept,
            joins=tuple((*seen.equality, seen.pairs, seen.matches) for seen in found.joins),
        )
        for found in progress
    )
    return combine(declared_statistics(sources), measured)


__all__ = ["forecast"]
