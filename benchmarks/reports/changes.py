"""What differs between two sets of reports: every figure before and after, and whether it changed beyond the noise.

Figures that vary from run to run are judged by `benchmarks.reports.noise`; counts that are the same in every run are
compared exactly. Figures of the same case on other data are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.reports.measures import LATENCIES, MEASURES
from benchmarks.reports.noise import Pair, judge, spread
from benchmarks.reports.report import CaseRecord, Paced, Report
from benchmarks.reports.sections import Sustained, sustained

SEARCH_STEP = 1.25
"""From one rate that is tried to the next, at least: `benchmarks.suite.pacing`."""

REFERENCES = ("duckdb", "handover")
"""Systems that a change of Plait does not touch: if they changed, the machine did."""

_RESTATED = frozenset({"seconds", "results_per_s"})
"""Measures that say again what rows_per_s says, of the same rows and results: judged once, not three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a figure belongs."""

    workload: str
    case: str
    system: str
    measure: str
    title: str
    unit: str
    more_is_better: bool | None
    is_timed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure before and after. `is_changed` None: too few runs to tell."""

    place: Place
    before: tuple[float, ...]
    after: tuple[float, ...]
    is_changed: bool | None

    @property
    def ratio(self) -> float | None:
        """The median after, by the median before; None if that is 0."""
        middle = median(self.before)
        return median(self.after) / middle if middle else None

    @property
    def is_worse(self) -> bool:
        """Whether it changed, and not for the better."""
        if not self.is_changed or self.place.more_is_better is None:
            return False
        is_less = median(self.after) < median(self.before)
        return is_less == self.place.more_is_better


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How fast a reference system became: the geometric mean of its rates' ratios over cases. `spread`: standard
    deviation of one run's logarithm; None with one run a side.
    """

    system: str
    cases: int
    ratio: float
    spread: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Two sets of reports compared. `only_before`, `only_after`: workloads, cases and systems that one side lacks.

    `broken`: what was right before and is wrong or fails after; `mended`: the reverse. `apart`: why figures are not
    comparable, or with what caution.
    """

    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    broken: tuple[str, ...]
    mended: tuple[str, ...]
    apart: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether anything got worse beyond the noise, or broke."""
        return bool(self.broken) or any(change.is_worse for change in self.changes)


_Figures = dict[Place, tuple[float, ...]]


def differences(before: Sequence[Report], after: Sequence[Report]) -> Differences:
    """Compare reports. Several of one workload on one side count as more runs of it."""
    other_data = _other_data(before, after)
    figures = tuple(_figures(reports, other_data) for reports in (before, after))
    places = [place for place in figures[0] if place in figures[1]]
    changes = (*_changes(places, *figures), *_sustained_changes(before, after, other_data))
    known = tuple(_names(reports) for reports in (before, after))
    failing = tuple(_failing(reports) for reports in (before, after))
    return Differences(
        changes=changes,
        drifts=_drifts(changes),
        only_before=_lacking(known[0], known[1]),
        only_after=_lacking(known[1], known[0]),
        broken=tuple(
            f"{', '.join(name)}: {why}" for name, why in failing[1].items() if name in known[0] - failing[0].keys()
        ),
        mended=tuple(", ".join(name) for name in failing[0] if name in known[1] - failing[1].keys()),
        apart=(*_apart(before, after), *(f"{name}: not compared, for its rows are others" for name in other_data)),
    )


def _changes(places: Sequence[Place], before: _Figures, after: _Figures) -> tuple[Change, ...]:
    judged: dict[Place, bool | None] = {}
    noisy: dict[Place, Pair] = {}
    for place in places:
        pair = Pair(family=f"{place.measure} of {place.system}", before=before[place], after=after[place])
        if _is_exact(place, pair):
            judged[place] = pair.before[0] != pair.after[0]
        elif place.measure not in _RESTATED and min(*pair.before, *pair.after) > 0:
            noisy[place] = pair
    judged.update(zip(noisy, judge(tuple(noisy.values())), strict=True))
    return tuple(
        Change(place=place, before=before[place], after=after[place], is_changed=judged[place])
        for place in places
        if place in judged
    )


def _sustained_changes(
    before: Sequence[Report], after: Sequence[Report], other_data: Sequence[str]
) -> Iterator[Change]:
    """Yield the rates that were kept up with. A search tells them only to a step, so one changed if what was kept up
    with on one side is more than a step above what was too fast on the other.
    """
    rates = tuple(_sustained(reports, other_data) for reports in (before, after))
    for place in rates[0].keys() & rates[1].keys():
        was, now = rates[0][place], rates[1][place]
        if was.kept is not None and now.kept is not None:
            is_changed = any(
                high.kept is not None and low.lost is not None and high.kept >= SEARCH_STEP * low.lost
                for high, low in ((was, now), (now, was))
            )
            yield Change(place=place, before=(was.kept,), after=(now.kept,), is_changed=is_changed)


def _sustained(reports: Iterable[Report], other_data: Sequence[str]) -> dict[Place, Sustained]:
    runs: dict[tuple[str, str], list[Paced]] = {}
    for report in reports:
        for paced in report.paced:
            if _case_name(report.workload, paced.case) not in other_data:
                runs.setdefault((report.workload, paced.system), []).append(paced)
    return {
        Place(
            workload=workload,
            case=case,
            system=system,
            measure="sustained",
            title="sustained rate",
            unit="rows/s",
            more_is_better=True,
            is_timed=True,
        ): found
        for (workload, system), entries in runs.items()
        for case, found in sustained(entries).items()
    }


def _is_exact(place: Place, pair: Pair) -> bool:
    """Return whether a count is one: some systems' bytes vary from run to run, and are judged like a time."""
    return not place.is_timed and len(set(pair.before)) == len(set(pair.after)) == 1


def _figures(reports: Iterable[Report], other_data: Sequence[str]) -> _Figures:
    found: dict[Place, list[float]] = {}
    for report in reports:
        for place, value in (*_of_runs(report), *_of_paced(report)):
            if value is not None and _case_name(place.workload, place.case) not in other_data:
                found.setdefault(place, []).append(value)
    return {place: tuple(values) for place, values in found.items()}


def _of_runs(report: Report) -> Iterable[tuple[Place, float | None]]:
    for run in report.runs:
        for measure in MEASURES:
            place = Place(
                workload=report.workload,
                case=run.case,
                system=run.system,
                measure=measure.name,
                title=measure.title,
                unit=measure.unit,
                more_is_better=measure.more_is_better,
                is_timed=measure.is_timed,
            )
            yield place, measure.read(run)


def _of_paced(report: Report) -> Iterable[tuple[Place, float | None]]:
    for paced in report.paced:
        for title, read in LATENCIES:
            place = Place(
                workload=report.workload,
                case=paced.case,
                system=paced.system,
                measure=title,
                title=f"latency, {title}, at {paced.rows_per_s:,.0f} rows/s",
                unit="s",
                more_is_better=False,
                is_timed=True,
            )
            yield place, read(paced)


def _drifts(changes: Sequence[Change]) -> tuple[Drift, ...]:
    found = []
    for system in REFERENCES:
        own = [change for change in changes if change.place.system == system and change.place.measure == "rows_per_s"]
        if own:
            pairs = [Pair(family=system, before=change.before, after=change.after) for change in own]
            ratio = math.exp(sum(math.log(pair.ratio) for pair in pairs) / len(pairs))
            found.append(Drift(system=system, cases=len(own), ratio=ratio, spread=spread(pairs)))
    return tuple(found)


def _case_name(workload: str, case: str) -> str:
    return f"{workload}, {case}"


def _names(reports: Iterable[Report]) -> frozenset[tuple[str, ...]]:
    """Return the workloads, cases and systems that were asked for: (workload,), (workload, case), ..."""
    found: set[tuple[str, ...]] = set()
    for report in reports:
        found.add((report.workload,))
        found |= {(report.workload, case.name) for case in report.cases}
        for records in (report.runs, report.checks, report.absences):
            found |= {(report.workload, record.case, record.system) for record in records}
    return frozenset(found)


def _lacking(names: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what the other side lacks; of a workload or case it lacks, not each part."""
    return tuple(", ".join(name) for name in sorted(names - other) if len(name) == 1 or name[:-1] in other)


def _failing(reports: Iterable[Report]) -> dict[tuple[str, ...], str]:
    """Return why results are wrong or missing, by (workload, case, system)."""
    found: dict[tuple[str, ...], str] = {}
    for report in reports:
        for check in report.checks:
            if not check.is_equal:
                count = len(check.wrong)
                wrong = f"wrong results in {count} {'query' if count == 1 else 'queries'}"
                found[report.workload, check.case, check.system] = check.failure or wrong
        for absence in report.absences:
            if absence.asked:
                found[report.workload, absence.case, absence.system] = absence.reason
    return found


def _other_data(before: Iterable[Report], after: Iterable[Report]) -> tuple[str, ...]:
    """Return the cases whose data or questions differ."""
    asked = tuple(
        {(report.workload, case.name): _asked(case) for report in side for case in report.cases}
        for side in (before, after)
    )
    return tuple(_case_name(*name) for name in asked[0] if name in asked[1] and asked[0][name] != asked[1][name])


def _asked(case: CaseRecord) -> tuple[object, ...]:
    return (case.rows_in, case.files, case.queries)


_HARMLESS = frozenset(
    {"repeat", "systems", "sizes", "pace", "check", "timeout", "limit", "enough", "cases", "live", "sustain"}
)
"""Settings that say what was run and how often, not how."""


def _apart(before: Sequence[Report], after: Sequence[Report]) -> tuple[str, ...]:
    found = []
    for name in ("machine", "versions", "settings"):
        left, right = (
            {
                f"{key} {value}"
                for report in side
                for key, value in getattr(report, name).items()
                if name != "settings" or key not in _HARMLESS
            }
            for side in (before, after)
        )
        if left != right:
            found.append(f"{name}: before {_listed(left - right)}; after {_listed(right - left)}")
    return tuple(found)


def _listed(values: set[str]) -> str:
    return ", ".join(sorted(values)) or "-"
