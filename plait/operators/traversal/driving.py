"""Whether the driver probes for a batch itself, or lets tasks do it.

Tasks share the work, but to start a job of Python tasks costs as much as probing some ten thousand rows. Both ways run
the same traversal of the same files: results, counts and statistics do not tell which it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.plan.model import Plan, Step
from plait.query.predicates import by_kind

_JOB_SECONDS = 0.1
"""What a job of Python tasks takes beside the work of the tasks."""
_ROW_SECONDS = 4e-6
_PAIR_SECONDS = 1e-8
"""Of a starting row, and of a pair that no key rules out, as long as nothing has been measured: on the safe side."""
_PACE_ROWS = 10_000
"""For fewer starting rows the traversal of all edges and buckets takes longer than what is done for the rows."""
_MOST_BYTES = 1 << 30
"""The driver maps buckets that the workers have mapped already, and sums each up once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be probed. `rows`: starting ones; `scanned`: stored rows each may be compared with one by one;
    `bytes`: of the buckets that may be read; `calls_functions`: of the user's, which may end the process they run in.
    """

    rows: int
    scanned: int
    bytes: int
    calls_functions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What probing with `rows` starting rows took last time, in seconds of one processor."""

    rows: int
    seconds: float


def is_quicker_here(work: Work, pace: Pace | None, slots: int) -> bool:
    """Tell whether the driver should probe alone instead of `slots` tasks at a time. `pace`: of the same trees, None if
    it has not been measured.

    >>> work = Work(rows=30_000, scanned=0, bytes=1 << 20, calls_functions=False)
    >>> [is_quicker_here(work, Pace(rows=30_000, seconds=seconds), slots=2) for seconds in (0.03, 3.0)]
    [True, False]
    """
    if not may_run_here(work):
        return False
    alone = expected_seconds(work, pace)
    return alone <= _JOB_SECONDS + alone / slots


def may_run_here(work: Work) -> bool:
    """Tell whether the driver may probe at all."""
    return not work.calls_functions and work.bytes <= _MOST_BYTES


def expected_seconds(work: Work, pace: Pace | None) -> float:
    """Return how long one processor will take."""
    if pace is None:
        return work.rows * (_ROW_SECONDS + work.scanned * _PAIR_SECONDS)
    return pace.seconds * max(work.rows, _PACE_ROWS) / max(pace.rows, _PACE_ROWS)


def work_of(tasks: Iterable[ProbeTask], context: ProbeContext) -> Work:
    """Return what these tasks come to."""
    starts = [start for task in tasks for start in task.starts]
    steps = [step for number in {start[0] for start in starts} for step in context.plan.trees[number].steps()]
    scanned = {step.member.store for step in steps if _scans(step)}
    return Work(
        rows=sum(stop - start for _, _, start, stop in starts),
        scanned=sum(bucket.rows for store in scanned for bucket in context.buckets.get(store, ())),
        bytes=sum(bucket.bytes for buckets in context.buckets.values() for bucket in buckets),
        calls_functions=any(residual.is_function for step in steps for residual in by_kind(step.predicates).residuals),
    )


def _scans(step: Step) -> bool:
    kinds = by_kind(step.predicates)
    return not (kinds.equalities or kinds.bands)


def as_one(tasks: Iterable[ProbeTask]) -> ProbeTask:
    """Return all that the tasks start with as one task."""
    return ProbeTask(number=0, starts=tuple(start for task in tasks for start in task.starts))


class Paces:
    """What probing took last, by the trees that were traversed, for as long as the plan stays the same."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._paces: dict[frozenset[int], Pace] = {}

    def find(self, tasks: Iterable[ProbeTask], plan: Plan) -> Pace | None:
        """Return the pace of these trees, None if it is not known."""
        return self._paces.get(_trees(tasks)) if plan is self._plan else None

    def note(self, tasks: Iterable[ProbeTask], plan: Plan, rows: int, reports: Iterable[ProbeReport]) -> None:
        """Note what probing took."""
        if plan is not self._plan:
            self._plan, self._paces = plan, {}
        self._paces[_trees(tasks)] = Pace(rows=rows, seconds=sum(report.seconds for report in reports))


def _trees(tasks: Iterable[ProbeTask]) -> frozenset[int]:
    return frozenset(number for task in tasks for number, *_ in task.starts)


__all__ = ["Pace", "Paces", "Work", "as_one", "expected_seconds", "is_quicker_here", "may_run_here", "work_of"]
