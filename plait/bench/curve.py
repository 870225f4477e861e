"""How the total time grows with the number of queries over the same three streams.

A larger workload asks everything a smaller one does. Results are compared with DuckDB's as multisets up to
`CHECKED_QUERIES` queries; beyond, where handing every query's results over would take longer than finding them, the
number of results of each query is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from plait.bench.data import Workload
from plait.bench.multi_report import Comparison, Failure, label
from plait.bench.multi_run import Case, Plan, Results, Runner, ask_oracle, carry_out, differences
from plait.bench.report import count, shown
from plait.bench.systems.launch import Run, run_fresh
from plait.errors import OptionError
from plait.workloads.joins import QuerySet
from plait.workloads.triples_random import STREAMS, draw_triples

CHECKED_QUERIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A system with so many queries: medians over its runs. `seconds`: from when the queries could start to the last
    result; `seconds_later`: those of a median batch after the first.
    """

    system: str
    queries: int
    runs: int
    seconds: float
    batch_seconds: float | None
    probe_tuples: int | None
    peak_stored_tuples: int | None
    results: int | None


def curve_case(workload: Workload, data: Path, queries: int, seed: int) -> Case:
    """Return the workload of the first so many queries of this seed."""
    drawn = tuple(islice(draw_triples(seed), queries))
    return Case(
        name=f"{queries} {'query' if queries == 1 else 'queries'}",
        questions=QuerySet.over(STREAMS, drawn),
        data=data,
        files=workload.files,
    )


def follow(plan: Plan, cases: Iterable[Case], limit_s: float, console: Console, run: Runner = run_fresh) -> Results:
    """Run one case after the other; a system whose run took longer than `limit_s`, or failed, is not asked again."""
    runs: list[tuple[str, Run]] = []
    comparisons: list[Comparison] = []
    failures: list[Failure] = []
    systems = plan.systems
    for case in cases:
        if not systems:
            break
        whole = plan.check and len(case.questions.queries) <= CHECKED_QUERIES
        done, compared, failed = carry_out(replace(plan, systems=systems, check=whole), (case,), console, run)
        if plan.check and not whole:
            compared = _compare_counts(plan, case, done, run)
        runs, comparisons, failures = runs + done, comparisons + compared, failures + failed
        slow = {label(found.task) for _, found in done if found.outcome.seconds > limit_s}
        over = slow | {failure.system for failure in failed}
        for system in (name for name in systems if name in over):
            console.print(f"  {system} is not asked for more queries", highlight=False)
        systems = tuple(name for name in systems if name not in over)
    return runs, comparisons, failures


def _compare_counts(plan: Plan, case: Case, runs: Sequence[tuple[str, Run]], run: Runner) -> list[Comparison]:
    """Compare the numbers of results of runs that counted them with the oracle's."""
    expected = tuple(replace(answer, checksum=None) for answer in ask_oracle(plan, case, run))
    found = {label(done.task): done.outcome.answers for _, done in runs}
    return [
        Comparison(workload=case.name, system=system, expected=expected, wrong=differences(expected, answers))
        for system, answers in found.items()
        if answers
    ]


def points(cases: Sequence[Case], runs: Sequence[tuple[str, Run]]) -> tuple[Point, ...]:
    """Return a point for every system and case that ran."""
    queries = {case.name: len(case.questions.queries) for case in cases}
    groups: dict[tuple[str, int], list[Run]] = {}
    for name, run in runs:
        groups.setdefault((label(run.task), queries[name]), []).append(run)
    return tuple(_point(system, number, group) for (system, number), group in groups.items())


def _point(system: str, queries: int, runs: Sequence[Run]) -> Point:
    last = runs[-1].outcome
    later = [seconds for run in runs for seconds in run.outcome.batch_seconds[1:]]
    return Point(
        system=system,
        queries=queries,
        runs=len(runs),
        seconds=median(run.outcome.seconds for run in runs),
        batch_seconds=median(later) if later else None,
        probe_tuples=last.probe_tuples,
        peak_stored_tuples=last.peak_stored_tuples,
        results=last.results,
    )


def tables(found: Sequence[Point]) -> tuple[Table, ...]:
    """Return tables for people, a line a number of queries: per system the time and how often it is that of the fewest
    queries; and probe tuples.
    """
    fewest = {point.system: point.seconds for point in reversed(found)}
    return (
        _table(
            "Total time", found, lambda point: f"{point.seconds:.1f} s  {point.seconds / fewest[point.system]:.2f}x"
        ),
        _table("Probe tuples", found, lambda point: shown(point.probe_tuples, count)),
    )


def _table(title: str, found: Sequence[Point], write: Callable[[Point], str]) -> Table:
    made = Table(title=title)
    made.add_column("queries", justify="right")
    systems = tuple(dict.fromkeys(point.system for point in found))
    for system in systems:
        made.add_column(system, justify="right")
    by_place = {(point.system, point.queries): point for point in found}
    for queries in sorted({point.queries for point in found}):
        made.add_row(str(queries), *(shown(by_place.get((system, queries)), write) for system in systems))
    return made


def draw(found: Sequence[Point], path: Path) -> None:
    """Draw the time of every system by the number of queries, and what it would be if each query cost the same."""
    pyplot = require_pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for system in dict.fromkeys(point.system for point in found):
        line = [point for point in found if point.system == system]
        axes.plot([point.queries for point in line], [point.seconds for point in line], marker="o", label=system)
    first = min(found, key=lambda point: (point.queries, point.seconds))
    counts = sorted({point.queries for point in found})
    axes.plot(counts, [first.seconds * number / first.queries for number in counts], "k:", label="in proportion")
    axes.set(xscale="log", yscale="log", xlabel="queries", ylabel="seconds for the whole input")
    axes.set_xticks(counts, [str(number) for number in counts])
    axes.minorticks_off()
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def require_pyplot() -> Any:
    """Return matplotlib's pyplot, set to draw into files. Raises OptionError if it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise OptionError("a plot needs matplotlib, which is not installed: pip install 'plait[bench]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
