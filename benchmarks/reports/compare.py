"""`python -m benchmarks compare A B`: what changed between two reports, or directories of them, beyond the noise."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.reports.changes import REFERENCES, Change, Differences, Drift, differences
from benchmarks.reports.figures import figure
from benchmarks.reports.noise import ALPHA, LEAST
from benchmarks.reports.report import PACKED, Report, read_reports
from plait.errors import OptionError

_WIDTH = 120
"""Columns that tables need; a narrower terminal wraps their lines, but does not fold every word."""


def main(arguments: list[str], console: Console | None = None) -> int:
    """Compare; 1 if something got worse beyond the noise, else 0. Raises OptionError."""
    options = _arguments(arguments)
    sides = tuple(read_all(path) for path in (options.before, options.after))
    found = differences(*sides)
    show(found, sides, console or Console(width=max(Console().width, _WIDTH)))
    return 1 if found.is_worse else 0


def read_all(*paths: Path) -> tuple[Report, ...]:
    """Return the reports of files, and of the JSON files in directories, compressed or not. Raises OptionError."""
    files = [file for path in paths for file in (_reports_in(path) if path.is_dir() else (path,))]
    if not files:
        raise OptionError(
            f"no report in {', '.join(map(str, paths))}: expected files FILE.json of `python -m benchmarks`"
        )
    return tuple(report for file in files for report in read_reports(file))


def _reports_in(directory: Path) -> list[Path]:
    return sorted(file for ending in (".json", PACKED) for file in directory.glob(f"*{ending}"))


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks compare",
        description="Tell what changed between two runs of the suite beyond the noise of their runs. "
        f"A change is told if it is at least {LEAST:.0%}, and unlikely by chance: of {round(1 / ALPHA)} comparisons of "
        "files between which nothing changed, one at most tells of any. "
        "Exit status 1 if something got worse, 0 if not.",
    )
    made.add_argument("before", type=Path, metavar="A", help="a report, or a directory of reports")
    made.add_argument("after", type=Path, metavar="B", help="the same, to be compared with A")
    return made.parse_args(arguments)


def show(found: Differences, sides: Sequence[Sequence[Report]], console: Console) -> None:
    """Print what changed, what did not, and what cannot be told."""
    for name, reports in zip("AB", sides, strict=True):
        console.print(f"{name}: {_origin(reports)}", highlight=False, markup=False)
    for drift in found.drifts:
        console.print(_drift(drift), highlight=False, markup=False)
    for text in found.apart:
        console.print(f"differs: {text}", highlight=False, markup=False)
    changed = [change for change in found.changes if change.is_changed]
    for is_worse, title in ((True, "Worse"), (False, "Better, or other")):
        rows = [change for change in changed if change.is_worse == is_worse]
        if rows:
            console.print(_table(title, rows))
    for title, names in (
        ("broken", found.broken),
        ("right again", found.mended),
        ("only in A", found.only_before),
        ("only in B", found.only_after),
    ):
        for name in names:
            console.print(f"{title}: {name}", highlight=False, markup=False)
    console.print(_verdict(found, changed), highlight=False, markup=False)


def _origin(reports: Sequence[Report]) -> str:
    commits = sorted({report.commit or "unknown commit" for report in reports})
    dates = sorted({report.created for report in reports})
    between = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"{len(reports)} {'report' if len(reports) == 1 else 'reports'}, {between}, {', '.join(commits)}"


def _drift(drift: Drift) -> str:
    noise = "" if drift.spread is None else f", one run varying by {drift.spread:.1%}"
    return (
        f"drift: {drift.system}, which no change of Plait touches, took {1 / drift.ratio:.2f}x the time in B "
        f"({drift.cases} {'case' if drift.cases == 1 else 'cases'}{noise}). Figures below are as measured."
    )


def _table(title: str, rows: Sequence[Change]) -> Table:
    made = Table(title=f"{title} beyond the noise")
    for name in ("workload", "case", "system", "measure"):
        made.add_column(name, overflow="fold")
    for name in ("A, median", "B, median", "B / A", "runs"):
        made.add_column(name, justify="right")
    for change in sorted(rows, key=lambda row: -abs((row.ratio or 2.0) - 1)):
        place = change.place
        ratio = "-" if change.ratio is None else f"{change.ratio:.2f}x"
        middles = (figure(median(side), place.unit) for side in (change.before, change.after))
        where = map(escape, (place.workload, place.case, place.system, place.title))
        made.add_row(*where, *middles, ratio, f"{len(change.before)}, {len(change.after)}")
    return made


def _verdict(found: Differences, changed: Sequence[Change]) -> str:
    same = Counter(change.place.workload for change in found.changes if change.is_changed is False)
    unknown = sum(change.is_changed is None for change in found.changes)
    worse = sum(change.is_worse for change in changed)
    told = [f"{worse} worse, {len(changed) - worse} otherwise changed, {sum(same.values())} not beyond the noise"]
    if same:
        told.append(f"unchanged: {', '.join(f'{count} of {name}' for name, count in same.items())}")
    if unknown:
        told.append(f"{unknown} with too few runs to tell: run at least three times a side")
    if worse and all(change.place.system in REFERENCES for change in changed if change.is_worse):
        told.append("only systems that no change of Plait touches got worse: the machine is to blame")
    return "; ".join(told)
