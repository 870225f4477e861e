"""Statistics the optimizer plans with.

|R| (rows in the window) is rate times window for a stream with a window, the rows seen so far for a table or an
unbounded stream. The selectivity of an equality is 1 / max(distinct left, distinct right). Unknown is None; the
optimizer, not this module, decides what to assume then.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatistics:
    """One source. `rate_rows_per_s` per second of event time; `rows` in total; `distinct` by canonical key
    (`KeyColumn.name`, or a bare column name where declared); `selectivity` by ``Selection.sql``: share of rows kept.
    """

    source: str
    rate_rows_per_s: float | None = None
    rows: float | None = None
    distinct: tuple[tuple[str, float], ...] = ()
    selectivity: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """All sources, ordered by name."""

    sources: tuple[SourceStatistics, ...] = ()

    def of(self, source: str) -> SourceStatistics:
        """Return what is known about this source; all unknown if it was never seen."""
        return next((found for found in self.sources if found.source == source), SourceStatistics(source=source))
