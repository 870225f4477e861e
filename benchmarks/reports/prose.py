"""What a page says besides its tables, whatever it is written as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.reports.behind import Behind, above_floor, dearer, slower
from benchmarks.reports.figures import DASH, factor, figure
from benchmarks.reports.grid import Cell, Grid, row
from benchmarks.reports.report import Report
from benchmarks.reports.sections import FLOOR, LIMIT, Section, cases_asked, short_commit
from benchmarks.reports.tables import behind_grid, why_wrong

TITLE = "Plait: benchmarks"
BEHIND = "Where Plait is slower than a peer"
DEARER = "Where Plait needs more processor time, memory, or time to start than a peer"
RUNS = "Where this was measured"
SUMMARY = "How all systems stand against Plait"
PEERS = (
    "Plait is taken in its usual way where that was run, so that no strategy is picked after the fact; else in the "
    f"best of its ways. All figures are medians. {FLOOR} is a batch engine: it has all rows before it starts, and "
    f"keeps nothing between batches, so it is a floor and no peer. {LIMIT} only takes the rows and joins nothing: "
    "what it needs is Spark's part of Plait's work."
)
METHOD = (
    "A rate counts from when the queries could start to the last result; start-up is told apart, and falls into "
    "processor time. Plait's workers load their compiled code during start-up; what a JVM compiles counts in the rate, "
    "in Plait too. How much memory a JVM takes also depends on how much it may: the heap is 8 GiB for Spark and Flink, "
    "which keep state in it, and 1 GiB for Plait, whose workers keep it outside. Flink takes a checkpoint every ten "
    "seconds, so a shorter run takes none; Pathway takes none at all; Spark and Plait take one a batch."
)


def wrong_results(found: Sequence[Section]) -> tuple[str, ...]:
    """Return every wrong result there is, with what is wrong."""
    return tuple(
        f"{section.workload}, {check.case}, {series.title}: {why_wrong(series, check.case)}"
        for section in found
        for series in section.series
        for check in series.report.checks
        if check.system == series.system and not check.is_equal
    )


def behind_grids(found: Sequence[Section]) -> tuple[tuple[str, str, Grid | None], ...]:
    """Return (heading, what to say first, table) of where Plait is behind; no table if it is nowhere."""
    return (
        _behind(BEHIND, slower(found), "slower than a peer", found, _floor(found)),
        _behind(DEARER, dearer(found), "dearer than a peer", found),
    )


def _behind(
    heading: str, rows: Sequence[Behind], what: str, found: Sequence[Section], more: str = ""
) -> tuple[str, str, Grid | None]:
    if not any(series.is_peer for section in found for series in section.series):
        return heading, "These reports have no peer to compare Plait with.", None
    if not rows:
        return heading, f"Nowhere in these reports is Plait {what}.{more}", None
    asked = sum(len(cases_asked(section)) for section in found)
    places = len({(each.workload, each.case) for each in rows})
    where = f"In {places} of {asked} {'case' if asked == 1 else 'cases'} Plait is {what}"
    return heading, f"{where}, the largest difference first.{more}", behind_grid(rows, heading)


def _floor(found: Sequence[Section]) -> str:
    """Return where the batch engine is faster, in a sentence; nothing if it is nowhere."""
    factors = [each.factor for each in above_floor(found) if each.factor is not None]
    if not factors:
        return ""
    least, most = factor(min(factors)), factor(max(factors))
    return f" The batch engine, {FLOOR}, is faster in {len(factors)} cases, by {least} to {most}."


def runs_grid(found: Sequence[Section]) -> Grid:
    """Return where every report comes from."""
    return Grid(
        caption="Runs",
        columns=("workload", "created", "commit", "settings"),
        rows=tuple(
            row(section.workload, _moment(report.created), short_commit(report), _settings(report.settings))
            for section in found
            for report in section.reports
        ),
        texts=frozenset(range(4)),
    )


def _moment(created: str) -> str:
    return created.replace("T", " ").replace("+00:00", " UTC")


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items() if value not in (None, {}, []))


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(_value, value))
    if isinstance(value, dict):
        return " ".join(f"{name}={each}" for name, each in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def surroundings_grid(found: Sequence[Section]) -> Grid:
    """Return machine and versions: a line each, every value that occurs."""
    reports = [report for section in found for report in section.reports]
    rows = [
        *_occurring("machine", [report.machine for report in reports]),
        *_occurring("version of", [report.versions for report in reports]),
    ]
    return Grid(caption="Machine and versions", columns=("", "found"), rows=tuple(rows), texts=frozenset({0, 1}))


def _occurring(kind: str, maps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Cell, ...]]:
    for name in dict.fromkeys(name for each in maps for name in each):
        values = dict.fromkeys(_surrounding(name, each.get(name)) for each in maps)
        title = f"{kind} {name}" if kind != "machine" else name.removesuffix("_bytes")
        yield row(title, "; ".join(values))


def _surrounding(name: str, value: Any) -> str:
    if value is None:
        return DASH
    return figure(value, "bytes") if name.endswith("_bytes") else _value(value)


def questions(section: Section) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield (title, queries by name) of each case; what an earlier one asked in the same words is not repeated."""
    told: set[tuple[str, str]] = set()
    for case in section.cases:
        fresh = tuple(query for query in case.queries if query not in told)
        told.update(fresh)
        if fresh:
            again = len(case.queries) - len(fresh)
            more = f", besides {again} of the cases before" if again else ""
            yield f"{case.name}: {len(fresh)} {'query' if len(fresh) == 1 else 'queries'}{more}", fresh


def anchor(report: Report) -> str:
    """Return the commit and the time of a report."""
    return f"{short_commit(report)}, {_moment(report.created)}"
