"""What the next cycle will be like, judging by those that are done (paper 003, section 4.3).

Rates, the values κ of a key that a store holds, and the matches μ that a matching tuple finds, go on along their trend;
the share γ that matches, and the selectivities of predicates, along one that dies down. Where no cycle has shown
anything of late, the average of all that was ever counted stands in; what the user declared comes before everything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from plait.adapt.smoothing import Floats, Method, forecast_series, last_of
from plait.plan.model import Selection
from plait.plan.relations import source_of
from plait.query.model import Source, Table
from plait.state.model import Bucket, Manifest, SourceProgress
from plait.stats.combine import with_measured
from plait.stats.cycles import COUNTED, HISTORY, Cycles, Series, SeriesKind
from plait.stats.declared import declared_statistics
from plait.stats.live_keys import LiveKeys
from plait.stats.measured import Measurement, measured_statistics, sides_of
from plait.stats.model import JoinSelectivity, KeyStatistics, SourceStatistics, Statistics, StepStatistics

_US_PER_S = 1_000_000

FEWEST_PROBES: Final = 30
"""Of a step that fewer tuples took in a cycle, the cycle says nothing; nor does it of a predicate that was expected to
hold for fewer pairs.
"""

_FADING = 0.6
"""What was counted a cycle ago weighs this much against what is new, where both tell the size of one join. So of some
hundred matches that a sample counted five cycles ago still tell more than a guess; were they forgotten sooner, a plan
would be left for one that is guessed to be cheaper again as soon as it is not measured any more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How to forecast: whether `trends` go on (else the last cycle counts), and how many cycles `ahead`."""

    trends: bool = True
    ahead: int = 1

    def linear(self, values: Floats) -> Floats:
        """Return where rates and counts will be."""
        return forecast_series(values, "linear" if self.trends else "last", steps=self.ahead)

    def damped(self, values: Floats) -> Floats:
        """Return where shares will be."""
        method: Method = "damped" if self.trends else "last"
        return forecast_series(values, method, steps=self.ahead, high=1.0)


NEXT_CYCLE: Final = Outlook()


def forecast(sources: Iterable[Source], manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE) -> Statistics:
    """Return the statistics to plan with: what is declared about the sources, and what finished batches showed."""
    known = tuple(sources)
    declared = declared_statistics(known)
    if manifest is None:
        return declared
    shown = measured_and_forecast(manifest.sources, manifest.cycles, outlook, manifest.live_keys)
    tables = measured_statistics(_read_tables(known, manifest.buckets))
    return with_measured(declared, replace(shown, sources=shown.sources + tables.sources))


def _read_tables(sources: Iterable[Source], buckets: Iterable[Bucket]) -> Iterator[Measurement]:
    """Yield how many rows were read of the tables that some query wants whole: of others only the selected ones are
    stored, which do not tell.
    """
    tables = {source.name for source in sources if isinstance(source, Table)}
    rows: dict[str, Counter[str]] = {}
    for bucket in buckets:
        table = source_of(bucket.store)
        if table in tables and Selection().sql in bucket.layout.selections:
            rows.setdefault(table, Counter())[bucket.store] += bucket.rows
    for table, by_store in rows.items():
        yield Measurement(source=table, rows=max(by_store.values()))


def measured_and_forecast(
    progress: Iterable[SourceProgress], cycles: Cycles, outlook: Outlook, live: Iterable[LiveKeys] = ()
) -> Statistics:
    """Return what finished batches showed, the series among it as they are forecast.

    Planning, weighing and sampling ask for the same after one batch: that is known again by being the very same, since
    to compare or to hash all that was counted takes about as long as to forecast it.
    """
    asked = tuple(progress), cycles, tuple(live)
    for known, their_outlook, shown in tuple(_RECENT):  # another thread may ask meanwhile
        if their_outlook == outlook and all(map(is_, known, asked)):
            return shown
    shown = _shown(*asked, outlook)
    _RECENT.append((asked, outlook, shown))
    return shown


_Asked: TypeAlias = tuple[tuple[SourceProgress, ...], Cycles, tuple[LiveKeys, ...]]

_RECENT: Final[deque[tuple[_Asked, Outlook, Statistics]]] = deque(maxlen=2)
"""What was asked last, and what was shown for it."""


def _shown(
    progress: tuple[SourceProgress, ...], cycles: Cycles, live: tuple[LiveKeys, ...], outlook: Outlook
) -> Statistics:
    averages = measured_statistics(
        (
            Measurement(
                source=known.source,
                rows=known.rows,
                tau_min_us=known.tau_min,
                tau_max_us=known.tau_max,
                sketches=known.sketch,
                kept=known.kept,
            )
            for known in progress
        ),
        cycles.of("join"),
    )
    return replace(
        averages,
        sources=_with_rates(averages.sources, cycles, outlook),
        joins=_with_selectivities(averages.joins, cycles, outlook),
        steps=_steps(cycles, outlook),
        keys=_keys(cycles, live, outlook),
        batch_s=_batch_s(cycles),
    )


def _batch_s(cycles: Cycles) -> float | None:
    """Return by how much event time moves on in a batch, in the stream that came farthest; None if nobody knows."""
    advance_us = max((sum(series.counts[1]) for series in cycles.of("source")), default=0)
    return advance_us / _US_PER_S / sum(cycles.batches) if advance_us > 0 and cycles.batches else None


def _with_rates(
    sources: tuple[SourceStatistics, ...], cycles: Cycles, outlook: Outlook
) -> tuple[SourceStatistics, ...]:
    series = cycles.of("source")
    rows, advance_us = _columns("source", series, cycles)
    rates = outlook.linear(_ratio(rows * _US_PER_S, advance_us, advance_us > 0))
    ahead = {each.name[0]: float(rate) for each, rate in zip(series, rates, strict=True) if not np.isnan(rate)}
    return tuple(
        replace(each, rate_rows_per_s=ahead[each.source])
        if each.source in ahead and each.rate_rows_per_s is not None
        else each
        for each in sources
    )


def _with_selectivities(
    joins: tuple[JoinSelectivity, ...], cycles: Cycles, outlook: Outlook
) -> tuple[JoinSelectivity, ...]:
    """A predicate that does not count as measured stays unknown, whatever its last cycle says. Of one that seldom holds
    neighbouring cycles are put together until so many matches could be expected of them that a rate can be told.
    """
    series = cycles.of("join")
    pairs, matches = _columns("join", series, cycles)
    usual = np.array([[(matched + 0.5) / max(compared, 1)] for compared, matched in (each.totals for each in series)])
    (expected, matches, pairs), _ = pooled((pairs * usual.reshape(-1, 1), matches, pairs), FEWEST_PROBES)
    says = (expected >= FEWEST_PROBES) & (pairs >= matches)
    shares = outlook.damped(_ratio(matches, pairs, says))
    # As in the average, half a match more than none: rare, not impossible.
    least = 0.5 / np.maximum(pairs.sum(axis=1), 1.0)
    ahead = {
        sides_of(each): float(np.clip(share, low, 1.0))
        for each, share, low in zip(series, shares, least, strict=True)
        if not np.isnan(share)
    }
    return tuple(replace(each, selectivity=ahead.get(each.sides, each.selectivity)) for each in joins)


def _steps(cycles: Cycles, outlook: Outlook) -> tuple[StepStatistics, ...]:
    series = cycles.of("step")
    probes, matched, matches = _columns("step", series, cycles)
    (probes, matched, matches), ages = pooled((probes, matched, matches), FEWEST_PROBES)
    says = probes >= FEWEST_PROBES
    gammas = outlook.damped(_ratio(matched, probes, says))
    mus = outlook.linear(_ratio(matches, matched, says & (matched > 0)))
    # As with predicates: none among many is rare, not impossible.
    least = 0.5 / np.maximum(probes.sum(axis=1), 1.0)
    latest = last_of(np.where(says, matches, np.nan))
    return tuple(
        StepStatistics(
            before=each.name[0],
            after=each.name[1],
            matching=float(total_matched / total if np.isnan(gamma) else min(max(gamma, low), 1.0)),
            matches=max(float(total_matches / max(total_matched, 1) if np.isnan(mu) else mu), 1.0),
            weight=float((np.nan_to_num(seen) + 1.0) * _FADING ** min(age, HISTORY)),
        )
        for each, gamma, mu, low, seen, age in zip(series, gammas, mus, least, latest, ages, strict=True)
        for total, total_matched, total_matches in (each.totals,)
        if total >= FEWEST_PROBES
    )


def _keys(cycles: Cycles, live: Iterable[LiveKeys], outlook: Outlook) -> tuple[KeyStatistics, ...]:
    """κ was what it is now less what came since, and what went (equation 11)."""
    now = {(each.store, each.key): each.count for each in live}
    series = [each for each in cycles.of("keys") if each.name in now]
    added, expired = _columns("keys", series, cycles)
    since = np.cumsum((added - expired)[:, ::-1], axis=1)[:, ::-1] - (added - expired)
    kept = np.array([now[each.name[0], each.name[1]] for each in series], dtype=np.float64)
    ahead = outlook.linear(np.maximum(kept[:, None] - since, 0.0))
    return tuple(
        KeyStatistics(store=each.name[0], key=each.name[1], kept=float(kept))
        for each, kept in zip(series, ahead, strict=True)
        if not np.isnan(kept)
    )


def pooled(counts: tuple[Floats, ...], fewest: int) -> tuple[tuple[Floats, ...], Floats]:
    """Return counts by cycle, neighbouring cycles put together, from the last one back, until there are `fewest` of
    the first of them: a little of each of many cycles says as much as a lot of one. And how many cycles ago the last of
    them were counted, on average: a lot of long ago does not become new by a little of today.

    >>> series = (np.array([[40.0, 0.0, 10.0, 25.0, 0.0]]), np.array([[20.0, 0.0, 4.0, 10.0, 0.0]]))
    >>> (probes, matched), ages = pooled(series, 30)
    >>> probes.tolist(), matched.tolist(), ages.round(1).tolist()
    ([[40.0, 0.0, 0.0, 35.0, 0.0]], [[20.0, 0.0, 0.0, 14.0, 0.0]], [1.3])
    """
    first = counts[0]
    rows, cycles = first.shape
    together = tuple(np.zeros_like(count) for count in counts)
    sums = np.zeros((len(counts), rows))
    newest = np.full(rows, -1)
    ages, elapsed = np.full(rows, float(HISTORY)), np.zeros(rows)
    every = np.arange(rows)
    for cycle in range(cycles - 1, -1, -1):
        begins = (newest < 0) & (first[:, cycle] > 0)
        newest[begins] = cycle
        sums += np.stack([count[:, cycle] for count in counts])
        elapsed += first[:, cycle] * (cycles - 1 - cycle)
        full = (newest >= 0) & (sums[0] >= fewest)
        for place, count in enumerate(together):
            count[every[full], newest[full]] = sums[place, full]
        ages[full] = np.minimum(ages[full], elapsed[full] / sums[0, full])
        sums[:, full], elapsed[full], newest[full] = 0.0, 0.0, -1
    return together, ages


def _columns(kind: SeriesKind, series: Sequence[Series], cycles: Cycles) -> tuple[Floats, ...]:
    """Return what was counted as float64[series, cycles], by what it is; 0 before a series began."""
    columns = []
    for place in range(len(COUNTED[kind])):
        column = np.zeros((len(series), len(cycles.batches)))
        for row, each in zip(column, series, strict=True):
            counts = each.counts[place]
            if counts:
                row[-len(counts) :] = counts
        columns.append(column)
    return tuple(columns)


def _ratio(above: Floats, below: Floats, says: npt.NDArray[np.bool_]) -> Floats:
    """Return above / below where it says something, else NaN."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=says)


__all__ = ["FEWEST_PROBES", "NEXT_CYCLE", "Outlook", "forecast", "measured_and_forecast", "pooled"]
