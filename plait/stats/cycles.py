"""What was counted, cycle by cycle: the series that forecasts are made of (paper 003, section 4.3).

A **cycle** is a stretch of batches. Of every series the last cycles are kept one by one and what is older as one sum,
so that a step which has not been in force for long is not forgotten. All that is counted adds up:

- `source`: rows that arrived, and by how much the largest event time moved on; together the rate. Named (source,).
- `keys`: distinct values of a key that came into a store and that went (eq. 11). Named (store, key).
- `step`: tuples that probed, however many partitions they were sent to; how many of them matched anything; all matches
  they had. So γ = matched / probes (eq. 9), and μ = matches / matched (eq. 10). Named (joined before, joined after), as
  `plait.plan.step_names` says.
- `join`: pairs of an arriving and a stored tuple that were within reach of each other, and how many of them matched:
  the selectivity of the predicates between two sources. Named (source, key, source, key), sides in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

SeriesKind: TypeAlias = Literal["source", "keys", "step", "join"]
Counts: TypeAlias = tuple[int, ...]

COUNTED: Final[Mapping[SeriesKind, tuple[str, ...]]] = MappingProxyType(
    {
        "source": ("rows", "advance_us"),
        "keys": ("added", "expired"),
        "step": ("probes", "matched", "matches"),
        "join": ("pairs", "matches"),
    }
)
"""What is counted, by kind: the rows of `Series.counts`. The first says how much the others are worth."""

HISTORY: Final = 60
"""So many cycles are kept one by one: paper 003 finds that more of them change nothing."""

MOST_SERIES: Final = 256
"""So many series of a kind are kept; those go that have counted least in the cycles kept, and then ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts by cycle, one tuple for each of ``COUNTED[kind]``, the last cycle's last; a series that began after the
    first cycle kept is shorter. `earlier`: their sums over all cycles before those.
    """

    kind: SeriesKind
    name: tuple[str, ...]
    counts: tuple[Counts, ...]
    earlier: Counts

    @property
    def totals(self) -> Counts:
        """All that was ever counted."""
        return tuple(before + sum(counts) for before, counts in zip(self.earlier, self.counts, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one batch adds to a series."""

    kind: SeriesKind
    name: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """All series, ordered by kind and name. `number`: cycles so far; `batches` and `seconds` (by the clock, which stood
    at `until_ms` after the last batch) of each cycle kept. The last one is open: batches are added to it until it is as
    long as it should be.
    """

    number: int = 0
    batches: Counts = ()
    seconds: tuple[float, ...] = ()
    until_ms: int | None = None
    series: tuple[Series, ...] = ()

    def of(self, kind: SeriesKind) -> tuple[Series, ...]:
        """Return the series of one kind."""
        return tuple(series for series in self.series if series.kind == kind)

    def latest(self, cycles: int) -> Cycles:
        """Return what is left if no more than so many cycles are kept one by one."""
        kept = self.batches[-cycles:]
        return Cycles(
            number=self.number,
            batches=kept,
            seconds=self.seconds[-cycles:],
            until_ms=self.until_ms,
            series=tuple(_cut(series, len(kept)) for series in self.series),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleLength:
    """When a cycle is over: after so many seconds by the clock, or batches if that is given."""

    seconds: float = 10.0
    batches: int | None = None

    def is_over(self, cycles: Cycles) -> bool:
        """Tell whether the last cycle is as long as it should be; so too if there is none."""
        if not cycles.batches:
            return True
        if self.batches is not None:
            return cycles.batches[-1] >= self.batches
        return cycles.seconds[-1] >= self.seconds


NOTHING_COUNTED: Final = Cycles()
TEN_SECONDS: Final = CycleLength()


def with_batch(
    cycles: Cycles, clock_ms: int, counts: Iterable[Count], length: CycleLength, history: int = HISTORY
) -> Cycles:
    """Return the series with a batch added that ends at `clock_ms`, to a cycle that it begins if the last one is over.

    At most `history` cycles are kept one by one, and `MOST_SERIES` series of each kind: what this batch has counted
    before what was counted lately, so that what is new is learned also where there is much that was busy once.
    """
    begun = _with_cycle(cycles).latest(history) if length.is_over(cycles) else cycles
    known = {(series.kind, series.name): series for series in begun.series}
    fresh = set[tuple[str, tuple[str, ...]]]()
    for count in counts:
        key = count.kind, count.name
        known[key] = _added(known.get(key) or _empty(count.kind, count.name), count.counts)
        fresh |= {key} if any(count.counts) else set()
    seconds = 0.0 if cycles.until_ms is None else max(clock_ms - cycles.until_ms, 0) / 1000
    return Cycles(
        number=begun.number,
        batches=(*begun.batches[:-1], begun.batches[-1] + 1),
        seconds=(*begun.seconds[:-1], begun.seconds[-1] + seconds),
        until_ms=clock_ms,
        series=_most_useful(known.values(), fresh),
    )


def from_totals(kind: SeriesKind, name: tuple[str, ...], totals: Counts) -> Series:
    """Return a series of which only sums are known."""
    return Series(kind=kind, name=name, counts=tuple(() for _ in totals), earlier=totals)


def _with_cycle(cycles: Cycles) -> Cycles:
    """Return the series with a cycle begun in which nothing has been counted yet."""
    return Cycles(
        number=cycles.number + 1,
        batches=(*cycles.batches, 0),
        seconds=(*cycles.seconds, 0.0),
        until_ms=cycles.until_ms,
        series=tuple(map(_begun, cycles.series)),
    )


def _empty(kind: SeriesKind, name: tuple[str, ...]) -> Series:
    fields = COUNTED[kind]
    return Series(kind=kind, name=name, counts=tuple((0,) for _ in fields), earlier=tuple(0 for _ in fields))


def _begun(series: Series) -> Series:
    """Return the series with a cycle more; one that has counted nothing in those kept does not grow."""
    if not any(map(any, series.counts)):
        return from_totals(series.kind, series.name, series.earlier)
    return Series(
        kind=series.kind,
        name=series.name,
        counts=tuple((*counts, 0) for counts in series.counts),
        earlier=series.earlier,
    )


def _added(series: Series, counts: Counts) -> Series:
    grown = tuple(
        (*before[:-1], (before[-1] if before else 0) + count)
        for before, count in zip(series.counts, counts, strict=True)
    )
    return Series(kind=series.kind, name=series.name, counts=grown, earlier=series.earlier)


def _cut(series: Series, cycles: int) -> Series:
    """Return the series with at most so many cycles, the others added to what was earlier."""
    if len(series.counts[0]) <= cycles:
        return series
    return Series(
        kind=series.kind,
        name=series.name,
        counts=tuple(counts[-cycles:] for counts in series.counts),
        earlier=tuple(
            before + sum(counts[:-cycles]) for before, counts in zip(series.earlier, series.counts, strict=True)
        ),
    )


def _most_useful(counted: Iterable[Series], fresh: Collection[tuple[str, tuple[str, ...]]]) -> tuple[Series, ...]:
    """Return the series to keep, by kind and name. `fresh`: those that the last batch has counted."""

    def rank(series: Series) -> tuple[bool, int, int, int, tuple[str, ...]]:
        counts = series.counts[0]
        silent = next((ago for ago, count in enumerate(reversed(counts)) if count), len(counts) or HISTORY)
        return ((series.kind, series.name) not in fresh, silent, -sum(counts), -series.earlier[0], series.name)

    by_kind: dict[SeriesKind, list[Series]] = {}
    for series in counted:
        by_kind.setdefault(series.kind, []).append(series)
    kept: list[Series] = []
    for kind in sorted(by_kind):
        kept += sorted(sorted(by_kind[kind], key=rank)[:MOST_SERIES], key=lambda each: each.name)
    return tuple(kept)


__all__ = [
    "COUNTED",
    "HISTORY",
    "MOST_SERIES",
    "NOTHING_COUNTED",
    "TEN_SECONDS",
    "Count",
    "Counts",
    "CycleLength",
    "Cycles",
    "Series",
    "SeriesKind",
    "from_totals",
    "with_batch",
]
