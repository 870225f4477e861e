"""A report as tables for a terminal: one for each case, a column a system, a line a figure; medians over the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from rich.table import Table

from plait.bench.suite.document import Check, Report, RunRecord
from plait.bench.suite.measures import MEASURES, Measure
from plait.bench.text import count, shown, size
from plait.bench.truth import Truth, summarize

_WRITERS: dict[str, Callable[[float], str]] = {
    "s": lambda value: f"{value:.2f} s",
    "bytes": lambda value: size(round(value)),
}


def console_tables(report: Report) -> Iterator[Table]:
    """Yield a table for each case that anybody has a time for, and one of what is missing."""
    for case in report.cases:
        runs = [run for run in report.runs if run.case == case.name]
        if runs:
            title = f"{report.workload}: {case.name}, {case.rows_in:,} rows in, {len(case.queries)} queries"
            yield _table(title, runs, [check for check in report.checks if check.case == case.name])
    if report.absences:
        yield _missing(report)


def _table(title: str, runs: list[RunRecord], checks: list[Check]) -> Table:
    made = Table(
        title=title, caption="Medians. Processor time, memory and bytes read and written: all processes together."
    )
    made.add_column("")
    systems = list(dict.fromkeys(run.system for run in runs))
    for system in systems:
        made.add_column(system, justify="right")
    for measure in MEASURES:
        cells = [_cell(measure, [run for run in runs if run.system == system]) for system in systems]
        if set(cells) != {"-"}:
            made.add_row(measure.title, *cells)
    by_system = {check.system: check for check in checks}
    if by_system:
        right = (_verdict(by_system.get(system)) for system in systems)
        made.add_row("results right", *right)
    truths = {system: summarize(check.edges) for system, check in by_system.items()}
    if any(truths.values()):
        for name, write in _TRUTH:
            made.add_row(name, *(shown(truths.get(system), write) for system in systems))
    return made


_TRUTH: tuple[tuple[str, Callable[[Truth], str]], ...] = (
    ("edges", lambda truth: count(truth.edges)),
    ("q-error of estimates, median", lambda truth: f"{truth.median:.2f}"),
    ("q-error of estimates, worst", lambda truth: f"{truth.worst:.2f}"),
)


def _cell(measure: Measure, runs: list[RunRecord]) -> str:
    values = [value for value in map(measure.read, runs) if value is not None]
    if not values:
        return "-"
    value = median(values)
    return _WRITERS[measure.unit](value) if measure.unit in _WRITERS else count(round(value))


def _missing(report: Report) -> Table:
    made = Table(title="Without a time")
    for name in ("case", "system", "", "why"):
        made.add_column(name)
    for absence in report.absences:
        reason = absence.reason.splitlines()
        made.add_row(absence.case, absence.system, "cannot" if absence.unable else "FAILED", "\n".join(reason[-4:]))
    return made


def _verdict(check: Check | None) -> str:
    return shown(check, lambda found: "yes" if found.is_equal else "NO")
