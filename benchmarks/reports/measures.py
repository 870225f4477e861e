"""What is measured of a run: the figures of a report, by name, with their units and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Use
from benchmarks.reports.report import Paced, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure of one run. `more_is_better` None: neither is. `read` returns None where the system does not count it.

    `is_timed`: it varies from run to run, as times do; else it is a count, the same in every run.
    """

    name: str
    title: str
    unit: str
    more_is_better: bool | None
    is_timed: bool
    read: Callable[[RunRecord], float | None]


def _rate(count: int | None, seconds: float) -> float | None:
    return None if count is None or seconds <= 0 else count / seconds


def _used(read: Callable[[Use], float | None]) -> Callable[[RunRecord], float | None]:
    """Return how to read a figure of what a run used; None where nobody watched."""
    return lambda run: None if run.use is None else read(run.use)


def _private(use: Use) -> float | None:
    return max((moment.private_bytes for moment in use.moments), default=None)


MEASURES = (
    Measure(
        name="rows_per_s",
        title="input rows a second",
        unit="rows/s",
        more_is_better=True,
        is_timed=True,
        read=lambda run: _rate(run.outcome.rows_in, run.outcome.seconds),
    ),
    Measure(
        name="seconds",
        title="time to drain",
        unit="s",
        more_is_better=False,
        is_timed=True,
        read=lambda run: run.outcome.seconds,
    ),
    Measure(
        name="startup_seconds",
        title="start-up",
        unit="s",
        more_is_better=False,
        is_timed=True,
        read=lambda run: run.outcome.startup_seconds,
    ),
    Measure(
        name="results_per_s",
        title="results a second",
        unit="rows/s",
        more_is_better=True,
        is_timed=True,
        read=lambda run: _rate(run.results, run.outcome.seconds),
    ),
    Measure(
        name="cpu_seconds",
        title="processor time",
        unit="s",
        more_is_better=False,
        is_timed=True,
        read=_used(lambda use: use.cpu_seconds()),
    ),
    Measure(
        name="resident_bytes",
        title="resident memory, peak",
        unit="bytes",
        more_is_better=False,
        is_timed=True,
        read=_used(lambda use: use.resident_bytes),
    ),
    Measure(
        name="private_bytes",
        title="private memory, peak",
        unit="bytes",
        more_is_better=False,
        is_timed=True,
        read=_used(_private),
    ),
    Measure(
        name="probe_tuples",
        title="probe tuples",
        unit="tuples",
        more_is_better=False,
        is_timed=False,
        read=lambda run: run.outcome.probe_tuples,
    ),
    Measure(
        name="stored_tuples",
        title="stored rows, peak",
        unit="rows",
        more_is_better=False,
        is_timed=False,
        read=lambda run: run.outcome.peak_stored_tuples,
    ),
    Measure(
        name="stored_bytes",
        title="stored bytes, peak",
        unit="bytes",
        more_is_better=False,
        is_timed=False,
        read=lambda run: run.outcome.peak_stored_bytes,
    ),
    Measure(
        name="shuffled_bytes",
        title="bytes shuffled",
        unit="bytes",
        more_is_better=False,
        is_timed=True,
        read=lambda run: run.outcome.shuffled_bytes,
    ),
    Measure(
        name="read_bytes",
        title="bytes read",
        unit="bytes",
        more_is_better=False,
        is_timed=True,
        read=_used(lambda use: use.read_bytes()),
    ),
    Measure(
        name="written_bytes",
        title="bytes written",
        unit="bytes",
        more_is_better=False,
        is_timed=True,
        read=_used(lambda use: use.written_bytes()),
    ),
)

LATENCIES: tuple[tuple[str, Callable[[Paced], float | None]], ...] = (
    ("p50", lambda paced: paced.p50_s),
    ("p95", lambda paced: paced.p95_s),
    ("p99", lambda paced: paced.p99_s),
)
"""The percentiles of latency, in seconds, of a run on live streams."""
