"""From runs of several queries to figures, and from figures to tables. Figures of several runs are medians.

Ratios are within a workload: against `separate`, an engine of Plait for each query, and against `independent`, one
engine without shared stores. A row of a stream counts once, however many queries read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from plait.bench.edges import EdgeTruth
from plait.bench.report import count, median_or_none, ratio, shown, size
from plait.bench.systems.launch import Run
from plait.bench.systems.task import Answer, Task
from plait.bench.truth import Truth
from plait.bench.truth import summarize as summarize_edges

SEPARATE, INDEPENDENT = "separate", "independent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A query whose results differ; `found` None: the system gave none."""

    expected: Answer
    found: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An untimed run against the oracle. `failure`: why it gave nothing. `edges`: how true Plait's estimates were."""

    workload: str
    system: str
    expected: tuple[Answer, ...]
    wrong: tuple[Wrong, ...] = ()
    edges: tuple[EdgeTruth, ...] = ()
    failure: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether every query's results are the oracle's, as a multiset."""
        return self.failure is None and not self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A timed run that gave no outcome."""

    workload: str
    system: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One system on one workload. `times_*`: its throughput against that of the other; `rows_below_independent`,
    `bytes_below_independent`: how many times less it stores at its most.
    """

    workload: str
    system: str
    runs: int
    rows_in: int
    rows_per_s: float
    rows_per_s_with_startup: float
    rows_per_s_later: float | None
    times_separate: float | None
    times_independent: float | None
    startup_seconds: float
    first_batch_seconds: float | None
    batch_seconds: float | None
    results: int | None
    equal: bool | None
    late_rows: int | None
    probe_tuples: int | None
    stored_tuples: int | None
    stored_bytes: int | None
    peak_stored_tuples: int | None
    peak_stored_bytes: int | None
    rows_below_independent: float | None
    bytes_below_independent: float | None
    cpu_seconds: float | None
    resident_bytes: int | None
    truth: Truth | None


def label(task: Task) -> str:
    """Return what a task's system is called here: Plait goes by its strategy."""
    return task.mode or task.system


def summarize(runs: Sequence[tuple[str, Run]], comparisons: Sequence[Comparison]) -> tuple[Figures, ...]:
    """Return the figures of every (workload, system) in `runs`, in order of first appearance."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for workload, run in runs:
        groups.setdefault((workload, label(run.task)), []).append(run)
    found = {(comparison.workload, comparison.system): comparison for comparison in comparisons}
    return tuple(
        _figures(workload, system, group, _bases(groups, workload), found.get((workload, system)))
        for (workload, system), group in groups.items()
    )


def _bases(groups: dict[tuple[str, str], list[Run]], workload: str) -> dict[str, list[Run]]:
    return {name: groups[workload, name] for name in (SEPARATE, INDEPENDENT) if (workload, name) in groups}


def _figures(
    workload: str, system: str, runs: list[Run], bases: dict[str, list[Run]], comparison: Comparison | None
) -> Figures:
    last = runs[-1].outcome
    base = bases[INDEPENDENT][-1].outcome if INDEPENDENT in bases else None
    times = {name: ratio(_rate(runs), _rate(base_runs)) for name, base_runs in bases.items()}
    later = median_or_none(second for run in runs for second in run.outcome.batch_seconds[1:])
    uses = [run.use for run in runs if run.use is not None]
    return Figures(
        workload=workload,
        system=system,
        runs=len(runs),
        rows_in=last.rows_in,
        rows_per_s=_rate(runs),
        rows_per_s_with_startup=median(
            run.outcome.rows_in / (run.outcome.startup_seconds + run.outcome.seconds) for run in runs
        ),
        rows_per_s_later=ratio(last.rows_in / runs[-1].task.files, later),
        times_separate=times.get(SEPARATE),
        times_independent=times.get(INDEPENDENT),
        startup_seconds=median(run.outcome.startup_seconds for run in runs),
        first_batch_seconds=median_or_none(second for run in runs for second in run.outcome.batch_seconds[:1]),
        batch_seconds=later,
        results=_results(last.results, comparison),
        equal=None if comparison is None else comparison.is_equal and _counts_agree(runs, comparison),
        late_rows=last.late_rows,
        probe_tuples=last.probe_tuples,
        stored_tuples=last.stored_tuples,
        stored_bytes=last.stored_bytes,
        peak_stored_tuples=last.peak_stored_tuples,
        peak_stored_bytes=last.peak_stored_bytes,
        rows_below_independent=_times_less(last.peak_stored_tuples, None if base is None else base.peak_stored_tuples),
        bytes_below_independent=_times_less(last.peak_stored_bytes, None if base is None else base.peak_stored_bytes),
        cpu_seconds=median_or_none(use.cpu_seconds() for use in uses),
        resident_bytes=max((use.resident_bytes for use in uses), default=None),
        truth=None if comparison is None else summarize_edges(comparison.edges),
    )


def _rate(runs: Sequence[Run]) -> float:
    return median(run.outcome.rows_in / run.outcome.seconds for run in runs)


def _times_less(stored: int | None, by_baseline: int | None) -> float | None:
    return None if stored is None or by_baseline is None else ratio(by_baseline, stored)


def _results(counted: int | None, comparison: Comparison | None) -> int | None:
    if counted is not None or comparison is None or not comparison.is_equal:
        return counted
    return sum(answer.rows for answer in comparison.expected)


def _counts_agree(runs: Sequence[Run], comparison: Comparison) -> bool:
    """Tell whether the timed runs that count their results have as many as the oracle, query by query."""
    expected = {answer.query: answer.rows for answer in comparison.expected}
    counted = ({answer.query: answer.rows for answer in run.outcome.answers} for run in runs)
    return all(not counts or counts == expected for counts in counted)


def tables(figures: Sequence[Figures]) -> tuple[Table, ...]:
    """Return a table for people for each workload: a column a system, a line a figure."""
    return tuple(
        _table(workload, [found for found in figures if found.workload == workload])
        for workload in dict.fromkeys(found.workload for found in figures)
    )


def _table(workload: str, figures: list[Figures]) -> Table:
    made = Table(title=workload, caption="stored: at its most; q-error: estimated against measured probe tuples")
    made.add_column("")
    for found in figures:
        made.add_column(found.system, justify="right")
    for name, write in _LINES:
        made.add_row(name, *(write(found) for found in figures))
    return made


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _times(value: float) -> str:
    return f"{value:.2f}x"


def _of_truth(read: Callable[[Truth], str]) -> Callable[[Figures], str]:
    return lambda found: shown(found.truth, read)


_LINES: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("input rows a second", lambda found: count(round(found.rows_per_s))),
    ("of later batches", lambda found: shown(found.rows_per_s_later, lambda value: count(round(value)))),
    ("with start-up", lambda found: count(round(found.rows_per_s_with_startup))),
    ("times separate", lambda found: shown(found.times_separate, _times)),
    ("times independent", lambda found: shown(found.times_independent, _times)),
    ("first batch", lambda found: shown(found.first_batch_seconds, _seconds)),
    ("later batch, median", lambda found: shown(found.batch_seconds, _seconds)),
    ("processor time", lambda found: shown(found.cpu_seconds, _seconds)),
    ("results", lambda found: shown(found.results, count)),
    ("results right", lambda found: shown(found.equal, lambda value: "yes" if value else "NO")),
    ("probe tuples", lambda found: shown(found.probe_tuples, count)),
    ("stored tuples", lambda found: shown(found.peak_stored_tuples, count)),
    ("less than independent", lambda found: shown(found.rows_below_independent, _times)),
    ("stored bytes", lambda found: shown(found.peak_stored_bytes, size)),
    ("less than independent", lambda found: shown(found.bytes_below_independent, _times)),
    ("memory, all processes", lambda found: shown(found.resident_bytes, size)),
    ("edges", _of_truth(lambda truth: count(truth.edges))),
    ("q-error, median", _of_truth(lambda truth: f"{truth.median:.2f}")),
    ("q-error, worst", _of_truth(lambda truth: f"{truth.worst:.2f}")),
    ("edges above 2", _of_truth(lambda truth: count(truth.above_two))),
    ("because of the data", _of_truth(lambda truth: count(truth.data_above_two))),
)


def complaints(comparisons: Sequence[Comparison], failures: Sequence[Failure]) -> Iterator[str]:
    """Yield a line for everything that went wrong."""
    for comparison in comparisons:
        where = f"{comparison.system}, {comparison.workload}"
        if comparison.failure is not None:
            yield f"{where}: {comparison.failure}"
        for wrong in comparison.wrong:
            yield f"{where}, {wrong.expected.query}: expected {wrong.expected}, found {wrong.found}"
    for failure in failures:
        yield f"{failure.system}, {failure.workload}: {failure.reason}"


def document(
    runs: Sequence[tuple[str, Run]],
    comparisons: Sequence[Comparison],
    failures: Sequence[Failure],
    figures: Sequence[Figures],
) -> dict[str, Any]:
    """Return everything as plain values."""
    return {
        "summary": [asdict(found) for found in figures],
        "comparisons": [_comparison_json(comparison) for comparison in comparisons],
        "failures": [asdict(failure) for failure in failures],
        "runs": [_run_json(workload, run) for workload, run in runs],
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    edges = [
        {**asdict(edge), "q_error": edge.q_error, "filling_q_error": edge.filling_q_error}
        for edge in sorted(comparison.edges, key=lambda edge: -edge.q_error)
    ]
    return {**asdict(comparison), "equal": comparison.is_equal, "edges": edges}


def _run_json(workload: str, run: Run) -> dict[str, Any]:
    return {
        "workload": workload,
        "system": label(run.task),
        "outcome": {**asdict(run.outcome), "results": run.outcome.results},
        "use": None if run.use is None else asdict(run.use),
    }
