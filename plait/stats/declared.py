"""What the user declared about the sources, as statistics."""

from __future__ import annotations

from collections.abc import Iterable

from plait.query.model import Source
from plait.stats.model import SourceStatistics, Statistics


def declared_statistics(sources: Iterable[Source]) -> Statistics:
    """Turn the declarations of all sources into statistics; a silent source is left out."""
    return Statistics(
        sources=tuple(
            SourceStatistics(
                source=source.name,
                rate_rows_per_s=source.declared.rate_rows_per_s,
                rows=source.declared.rows,
                distinct=tuple(sorted(source.declared.distinct)),
            )
            for source in sorted(sources, key=lambda source: source.name)
            if source.declared.rate_rows_per_s is not None
            or source.declared.rows is not None
            or source.declared.distinct
        )
    )
