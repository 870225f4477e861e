"""Where Plait is behind a peer, and how all systems stand against Plait.

Plait is taken in its usual way, ``plait``, where that was run, so that no strategy is picked after the fact; else in
the best of its ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.reports.measures import LATENCIES, MEASURES, Measure
from benchmarks.reports.sections import FLOOR, PLAIT, Section, Series, Spread, spread

_BY_NAME = {measure.name: measure for measure in MEASURES}
_RATE = _BY_NAME["rows_per_s"]
_COSTS = tuple(_BY_NAME[name] for name in ("cpu_seconds", "resident_bytes", "private_bytes", "startup_seconds"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A figure of which a peer's is better than Plait's. `factor`: how many times, above 1; None if Plait has none,
    and `reason` says why. `is_apart`: the runs of both do not overlap.
    """

    workload: str
    case: str
    measure: str
    unit: str
    plait: str
    peer: str
    ours: Spread | None
    theirs: Spread
    factor: float | None
    is_apart: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A system in a workload. `factor`: rates of Plait by its own, geometric mean over `cases`, the cases both
    have a time for; None without any. `right`, `checked`: cases.
    """

    workload: str
    system: str
    cases: int
    factor: float | None
    least: float | None
    most: float | None
    right: int
    checked: int


def slower(sections: Sequence[Section]) -> tuple[Behind, ...]:
    """Return every case of every workload where a peer is faster, or answers sooner, or only a peer has a time."""
    found = [each for section in sections for each in _of_speed(section)]
    return _ordered(found)


def above_floor(sections: Sequence[Section]) -> tuple[Behind, ...]:
    """Return every case where the batch engine is faster, which has all rows before it starts."""
    return _ordered(
        [each for section in sections for each in _of_measure(section, _RATE, lambda of: of.system == FLOOR)]
    )


def _of_speed(section: Section) -> Iterator[Behind]:
    yield from _of_measure(section, _RATE)
    yield from _of_latency(section)
    yield from _of_sustained(section)


def dearer(sections: Sequence[Section]) -> tuple[Behind, ...]:
    """Return every case where a peer needs less processor time, memory, or time to start."""
    found = [each for section in sections for measure in _COSTS for each in _of_measure(section, measure)]
    return _ordered([each for each in found if each.factor is not None])


def _ordered(found: Sequence[Behind]) -> tuple[Behind, ...]:
    return tuple(sorted(found, key=lambda each: -math.inf if each.factor is None else -each.factor))


def _side_by_side(section: Section) -> Iterator[list[Series]]:
    """Yield the systems of each report: only those of one run are compared."""
    for tag in dict.fromkeys(series.tag for series in section.series):
        yield [series for series in section.series if series.tag == tag]


def _of_measure(
    section: Section, measure: Measure, is_peer: Callable[[Series], bool] = lambda series: series.is_peer
) -> Iterator[Behind]:
    for beside in _side_by_side(section):
        for case in section.cases:
            figures = {series.title: series.spread(case.name, measure) for series in beside}
            ours = _ours([series for series in beside if series.is_plait], figures, measure.more_is_better is True)
            for peer in filter(is_peer, beside):
                theirs = figures[peer.title]
                if ours is not None and theirs is not None:
                    yield from _compare(section, case.name, (measure.title, measure.unit), (ours, peer), figures)


def _compare(
    section: Section, case: str, what: tuple[str, str], who: tuple[Series, Series], figures: dict[str, Spread | None]
) -> Iterator[Behind]:
    """Yield what the peer is better at. Less is better except for rates."""
    plait, peer = who
    ours, theirs = figures[plait.title], figures[peer.title]
    if theirs is None:
        return
    is_rate = what[1] == _RATE.unit
    ratio = None
    if ours is not None:
        more, less = (theirs.middle, ours.middle) if is_rate else (ours.middle, theirs.middle)
        ratio = more / less if less > 0 else None
        if more <= less:
            return
    apart = ours is None or (theirs.low > ours.high if is_rate else theirs.high < ours.low)
    yield Behind(
        workload=section.workload,
        case=case,
        measure=what[0],
        unit=what[1],
        plait=plait.title,
        peer=peer.title,
        ours=ours,
        theirs=theirs,
        factor=ratio,
        is_apart=apart,
        reason="" if ours is not None else why_without(plait, case),
    )


def _ours(ways: Sequence[Series], figures: dict[str, Spread | None], is_more_better: bool) -> Series | None:
    """Return the way of Plait to compare with: its usual one, else the best; None if it was not asked."""
    usual = next((series for series in ways if series.system == PLAIT), None)
    if usual is not None or not ways:
        return usual
    sign = -1 if is_more_better else 1

    def rank(series: Series) -> float:
        found = figures[series.title]
        return math.inf if found is None else sign * found.middle

    return min(ways, key=rank)


def why_without(series: Series, case: str) -> str:
    """Return why a system has no time for a case."""
    absence, check = series.absence(case), series.check(case)
    if absence is not None:
        return absence.reason
    if check is not None and not check.is_equal:
        return check.failure or "its results are wrong"
    return "not run"


def _of_latency(section: Section) -> Iterator[Behind]:
    for beside in _side_by_side(section):
        paced = {series.title: series.paced() for series in beside}
        for case, rate in dict.fromkeys(place for runs in paced.values() for place in runs):
            for title, read in LATENCIES:
                figures = {name: spread(map(read, runs.get((case, rate), ()))) for name, runs in paced.items()}
                ours = _ours([series for series in beside if series.is_plait], figures, False)
                for peer in (series for series in beside if series.is_peer and ours is not None):
                    what = (f"latency, {title}, at {rate:,.0f} rows/s", "s")
                    if ours is not None and figures[ours.title] is not None:
                        yield from _compare(section, case, what, (ours, peer), figures)


def _of_sustained(section: Section) -> Iterator[Behind]:
    """Yield where a peer kept up with a rate at which Plait fell behind."""
    for beside in _side_by_side(section):
        found = {series.title: series.sustained() for series in beside}
        for case in dict.fromkeys(case for rates in found.values() for case in rates):
            kept = {title: spread([rates[case].kept]) for title, rates in found.items() if case in rates}
            ours = _ours([series for series in beside if series.is_plait and series.title in kept], kept, True)
            for peer in (series for series in beside if series.is_peer and series.title in kept):
                theirs = kept[peer.title]
                lost = None if ours is None else found[ours.title][case].lost
                if ours is not None and theirs is not None and lost is not None and theirs.middle >= lost:
                    yield from _compare(section, case, ("sustained rate", _RATE.unit), (ours, peer), kept)


def standings(sections: Sequence[Section]) -> tuple[Standing, ...]:
    """Return every system of every workload against Plait in the same report."""
    return tuple(_standing(section, series) for section in sections for series in section.series)


def _standing(section: Section, series: Series) -> Standing:
    ways = [each for each in section.series if each.is_plait and each.tag == series.tag]
    factors = []
    for case in section.cases:
        figures = {way.title: way.spread(case.name, _RATE) for way in ways}
        chosen = _ours(ways, figures, True)
        ours = None if chosen is None else figures[chosen.title]
        own = series.spread(case.name, _RATE)
        if ours is not None and own is not None:
            factors.append(ours.middle / own.middle)
    checks = [check for check in series.report.checks if check.system == series.system]
    return Standing(
        workload=section.workload,
        system=series.title,
        cases=len(factors),
        factor=math.exp(sum(map(math.log, factors)) / len(factors)) if factors else None,
        least=min(factors, default=None),
        most=max(factors, default=None),
        right=sum(check.is_equal for check in checks),
        checked=len(checks),
    )
