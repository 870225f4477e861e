"""From runs to figures, and from figures to tables. Rates are medians over the runs of one system at one size.

Two rates are given: without start-up (from when the query could start to its last result) and with it (from the start
of the process). What a system does not count is None in JSON and a dash in the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from plait.bench.checksum import Checksum
from plait.bench.systems.launch import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An untimed run whose results were added up, and what the oracle says of the same files. `failure`: why it has
    none.
    """

    system: str
    rows: int
    files: int
    expected: Checksum
    found: Checksum | None
    failure: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether the system's results are the oracle's, as a multiset."""
        return self.found == self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A timed run that gave no outcome."""

    system: str
    rows: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One system at one size. `rows`: per stream. `equal`: its results against the oracle's; None if nobody looked."""

    rows: int
    system: str
    runs: int
    rows_in: int
    rows_per_s: float
    rows_per_s_with_startup: float
    of_spark: float | None
    of_handover: float | None
    startup_seconds: float
    batch_seconds: float | None
    first_batch_seconds: float | None
    results: int | None
    equal: bool | None
    late_rows: int | None
    probe_tuples: int | None
    stored_tuples: int | None
    stored_bytes: int | None
    cpu_seconds: float | None
    resident_bytes: int | None
    worker_private_bytes: int | None


def summarize(runs: Sequence[tuple[int, Run]], checks: Sequence[Check]) -> tuple[Figures, ...]:
    """Return the figures of every (size, system) in `runs`, in order of first appearance. `runs`: (rows, run) pairs."""
    groups: dict[tuple[int, str], list[Run]] = {}
    for rows, run in runs:
        groups.setdefault((rows, run.task.system), []).append(run)
    rates = {key: median(_rate(run) for run in group) for key, group in groups.items()}
    return tuple(_figures(rows, system, group, rates, checks) for (rows, system), group in groups.items())


def _figures(
    rows: int,
    system: str,
    runs: list[Run],
    rates: dict[tuple[int, str], float],
    checks: Sequence[Check],
) -> Figures:
    last = runs[-1].outcome
    equal = [check for check in checks if (check.rows, check.system) == (rows, system)]
    return Figures(
        rows=rows,
        system=system,
        runs=len(runs),
        rows_in=last.rows_in,
        rows_per_s=rates[rows, system],
        rows_per_s_with_startup=median(
            run.outcome.rows_in / (run.outcome.startup_seconds + run.outcome.seconds) for run in runs
        ),
        of_spark=ratio(rates[rows, system], rates.get((rows, "spark"))),
        of_handover=ratio(rates[rows, system], rates.get((rows, "handover"))),
        startup_seconds=median(run.outcome.startup_seconds for run in runs),
        batch_seconds=median_or_none(second for run in runs for second in run.outcome.batch_seconds[1:]),
        first_batch_seconds=median_or_none(second for run in runs for second in run.outcome.batch_seconds[:1]),
        results=next((run.outcome.results for run in runs if run.outcome.results is not None), None)
        or next((check.found.rows for check in equal if check.found is not None), None),
        equal=all(check.is_equal for check in equal) if equal else None,
        late_rows=last.late_rows,
        probe_tuples=last.probe_tuples,
        stored_tuples=last.stored_tuples,
        stored_bytes=last.stored_bytes,
        cpu_seconds=median_or_none(run.use.cpu_seconds() for run in runs if run.use is not None),
        resident_bytes=_most(run.use.resident_bytes for run in runs if run.use is not None),
        worker_private_bytes=_most(run.use.worker_private_bytes() for run in runs if run.use is not None),
    )


def _rate(run: Run) -> float:
    return run.outcome.rows_in / run.outcome.seconds


def ratio(value: float, base: float | None) -> float | None:
    """Return value / base, None without a base to compare with."""
    return value / base if base else None


def median_or_none(values: Iterable[float]) -> float | None:
    """Return the median, None of nothing."""
    found = list(values)
    return median(found) if found else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def tables(figures: Sequence[Figures]) -> tuple[Table, ...]:
    """Return a table for people for each size: a column a system, a line a figure."""
    return tuple(
        _table(rows, [found for found in figures if found.rows == rows])
        for rows in dict.fromkeys(found.rows for found in figures)
    )


def _table(rows: int, figures: list[Figures]) -> Table:
    made = Table(title=f"Three-way join, {count(rows)} rows a stream")
    made.add_column("")
    for found in figures:
        made.add_column(found.system, justify="right")
    for label, write in _LINES:
        made.add_row(label, *(write(found) for found in figures))
    return made


_LINES: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("input rows a second", lambda found: count(round(found.rows_per_s))),
    ("with start-up", lambda found: count(round(found.rows_per_s_with_startup))),
    ("against Spark's join", lambda found: shown(found.of_spark, lambda value: f"{value:.1f}x")),
    ("against hand-over", lambda found: shown(found.of_handover, lambda value: f"{value:.0%}")),
    ("first batch", lambda found: shown(found.first_batch_seconds, _seconds)),
    ("later batch, median", lambda found: shown(found.batch_seconds, _seconds)),
    ("start-up", lambda found: _seconds(found.startup_seconds)),
    ("processor time", lambda found: shown(found.cpu_seconds, _seconds)),
    ("results", lambda found: shown(found.results, count)),
    ("results right", lambda found: shown(found.equal, lambda value: "yes" if value else "NO")),
    ("probe tuples", lambda found: shown(found.probe_tuples, count)),
    ("stored tuples", lambda found: shown(found.stored_tuples, count)),
    ("stored bytes", lambda found: shown(found.stored_bytes, size)),
    ("memory, all processes", lambda found: shown(found.resident_bytes, size)),
    ("private, largest worker", lambda found: shown(found.worker_private_bytes, size)),
)


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def shown(value: Any, write: Callable[[Any], str]) -> str:
    """Return the value as text, a dash for None."""
    return "-" if value is None else write(value)


def count(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def size(value: int) -> str:
    """Return bytes in the unit that suits them."""
    for unit, bytes_each in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if value >= bytes_each:
            return f"{value / bytes_each:.1f} {unit}"
    return f"{value} B"


def run_json(rows: int, run: Run) -> dict[str, Any]:
    """Return one run as plain values."""
    task, outcome = run.task, run.outcome
    return {
        "rows": rows,
        "system": task.system,
        "files": task.files,
        "outcome": {**asdict(outcome), "results": outcome.results},
        "use": None if run.use is None else asdict(run.use),
    }


def check_json(check: Check) -> dict[str, Any]:
    """Return one check as plain values."""
    return {**asdict(check), "equal": check.is_equal}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the whole report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
