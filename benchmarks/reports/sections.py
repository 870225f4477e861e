"""Reports put together by workload: which figures stand side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.reports.measures import Measure
from benchmarks.reports.report import Absence, CaseRecord, Check, Paced, Report, RunRecord

PLAIT = "plait"
LIMIT = "handover"
"""The system that only takes the rows and joins nothing: a limit to see, not to be slower than."""
FLOOR = "duckdb"
"""The system that has all rows before it starts, and keeps nothing for later: what joins cost without a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure over the runs: the median, the least and the most."""

    middle: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """The highest rate a system kept up with in all runs, and the lowest it did not; None if none was so."""

    kept: float | None
    lost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A system in one report. `title`: its label, and the report's tag if there are several."""

    title: str
    system: str
    tag: str
    report: Report

    @property
    def is_plait(self) -> bool:
        """Whether it is Plait, in whichever way."""
        return self.system.partition(":")[0] == PLAIT

    @property
    def is_peer(self) -> bool:
        """Whether it is a system to compare Plait with: it follows streams, and joins."""
        return not self.is_plait and self.system not in (LIMIT, FLOOR)

    def runs(self, case: str) -> tuple[RunRecord, ...]:
        """Return its timed runs of a case."""
        return tuple(run for run in self.report.runs if run.case == case and run.system == self.system)

    def spread(self, case: str, measure: Measure) -> Spread | None:
        """Return a figure of a case; None if no run has it."""
        return spread(measure.read(run) for run in self.runs(case))

    def check(self, case: str) -> Check | None:
        """Return what became of its results; None if nobody looked."""
        found = (check for check in self.report.checks if check.case == case and check.system == self.system)
        return next(found, None)

    def absence(self, case: str) -> Absence | None:
        """Return why it has no time for a case; None if nobody says."""
        found = (entry for entry in self.report.absences if entry.case == case and entry.system == self.system)
        return next(found, None)

    def paced(self) -> dict[tuple[str, float], list[Paced]]:
        """Return its runs at fixed rates, by case and rate, the lowest rate of a case first."""
        mine = [entry for entry in self.report.paced if entry.system == self.system]
        cases = list(dict.fromkeys(entry.case for entry in mine))
        found: dict[tuple[str, float], list[Paced]] = {}
        for entry in sorted(mine, key=lambda entry: (cases.index(entry.case), entry.rows_per_s)):
            found.setdefault((entry.case, entry.rows_per_s), []).append(entry)
        return found

    def sustained(self) -> dict[str, Sustained]:
        """Return what it kept up with in each case that was tried at any rate."""
        return sustained(entry for entry in self.report.paced if entry.system == self.system)


def sustained(runs: Iterable[Paced]) -> dict[str, Sustained]:
    """Return which rates were kept up with, by case."""
    rates: dict[str, dict[float, bool]] = {}
    for run in runs:
        tried = rates.setdefault(run.case, {})
        tried[run.rows_per_s] = tried.get(run.rows_per_s, True) and run.is_sustained
    return {
        case: Sustained(
            kept=max((rate for rate, is_kept in tried.items() if is_kept), default=None),
            lost=min((rate for rate, is_kept in tried.items() if not is_kept), default=None),
        )
        for case, tried in rates.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """All reports of one workload, oldest first, and their systems. `cases`: of all reports, the newest's questions."""

    workload: str
    summary: str
    unit: str
    reports: tuple[Report, ...]
    series: tuple[Series, ...]
    cases: tuple[CaseRecord, ...]

    @property
    def counts_queries(self) -> bool:
        """Whether the sizes of its cases are numbers of queries."""
        return "queries" in self.unit.split()

    @property
    def slug(self) -> str:
        """Its name in addresses and names of files."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.workload.lower())


def sections(reports: Sequence[Report]) -> tuple[Section, ...]:
    """Return reports by workload, in the order in which workloads come first."""
    return tuple(
        _section([report for report in reports if report.workload == name])
        for name in dict.fromkeys(report.workload for report in reports)
    )


def _section(reports: Sequence[Report]) -> Section:
    ordered = tuple(sorted(reports, key=lambda report: report.created))
    tags = _tags(ordered)
    labels = dict.fromkeys(system.label for report in ordered for system in report.systems)
    last = ordered[-1]
    return Section(
        workload=last.workload,
        summary=last.summary,
        unit=last.unit,
        reports=ordered,
        series=tuple(
            Series(title=f"{label} ({tag})" if len(ordered) > 1 else label, system=label, tag=tag, report=report)
            for label in labels
            for report, tag in zip(ordered, tags, strict=True)
            if any(system.label == label for system in report.systems)
        ),
        cases=_cases(ordered),
    )


def _cases(reports: Sequence[Report]) -> tuple[CaseRecord, ...]:
    found: dict[str, CaseRecord] = {}
    for report in reports:
        found.update({case.name: case for case in report.cases})
    return tuple(found.values())


def _tags(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return a short name for each report: its commit, and when it was made if two have the same."""
    commits = [short_commit(report) for report in reports]
    return tuple(
        f"{commit}, {report.created}" if commits.count(commit) > 1 else commit
        for commit, report in zip(commits, reports, strict=True)
    )


def short_commit(report: Report) -> str:
    """Return the commit of a report in a few letters, marked if the source differed from it."""
    if report.commit is None:
        return "unknown commit"
    commit, comma, rest = report.commit.partition(",")
    return f"{commit[:9]}{comma}{rest}"


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(middle=median(known), low=min(known), high=max(known), runs=len(known))


def cases_asked(section: Section) -> tuple[str, ...]:
    """Return the names of all its cases, those with live streams as well."""
    live = (paced.case for report in section.reports for paced in report.paced)
    return tuple(dict.fromkeys((*(case.name for case in section.cases), *live)))
