"""What finished batches showed about the sources, as statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.stats.cycles import Series
from plait.stats.model import JoinSelectivity, Side, SourceStatistics, Statistics
from plait.stats.sketch import SKETCH_SIZE, estimate_distinct

_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Counts of one source, cumulated over all batches.

    `tau_min_us`/`tau_max_us`: smallest and largest event time, None for a table or before the first row.
    `sketches`: the KMV sketch per key name (`KeyColumn.name`). `kept`: the rows that satisfy it per ``Selection.sql``.
    """

    source: str
    rows: int
    tau_min_us: int | None = None
    tau_max_us: int | None = None
    sketches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kept: tuple[tuple[str, int], ...] = ()


_FEWEST_PAIRS = 10_000
_FEWEST_MATCHES = 30
"""An equality counts as measured from so many pairs on, or so many matches."""


def measured_statistics(
    measurements: Iterable[Measurement], joins: Iterable[Series] = (), k: int = SKETCH_SIZE
) -> Statistics:
    """Turn counts into statistics; a source without rows is left out, since nothing is known of it. `joins`: series of
    that kind, of which all that was ever counted is taken.
    """
    return Statistics(
        joins=_joins(joins),
        sources=tuple(
            _of_source(measurement, k)
            for measurement in sorted(measurements, key=lambda measurement: measurement.source)
            if measurement.rows > 0
        ),
    )


def _joins(counted: Iterable[Series]) -> tuple[JoinSelectivity, ...]:
    """Half a match is added, so that none among many pairs is rare, not impossible."""
    return tuple(
        JoinSelectivity(sides=sides_of(series), selectivity=min((matches + 0.5) / pairs, 1.0), pairs=float(pairs))
        for series in counted
        for pairs, matches in (series.totals,)
        if pairs >= _FEWEST_PAIRS or (matches >= _FEWEST_MATCHES and pairs >= matches)
    )


def sides_of(series: Series) -> tuple[Side, Side]:
    """Return what a series of kind `join` is about."""
    source, key, other, other_key = series.name
    return (source, key), (other, other_key)


def _of_source(measurement: Measurement, k: int) -> SourceStatistics:
    rows = measurement.rows
    return SourceStatistics(
        source=measurement.source,
        rate_rows_per_s=_rate(measurement),
        rows=float(rows),
        distinct=tuple(
            (name, estimate_distinct(sketch, k, rows)) for name, sketch in sorted(measurement.sketches) if sketch
        ),
        selectivity=tuple((sql, min(kept / rows, 1.0)) for sql, kept in sorted(measurement.kept)),
    )


def _rate(measurement: Measurement) -> float | None:
    """Return rows per second of event time; None while all rows share one instant."""
    if measurement.tau_min_us is None or measurement.tau_max_us is None:
        return None
    span_us = measurement.tau_max_us - measurement.tau_min_us
    # n rows span n - 1 gaps; dividing n by the span doubles the rate of a stream seen twice.
    return (measurement.rows - 1) * _US_PER_S / span_us if span_us > 0 else None
