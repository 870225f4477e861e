"""`python -m benchmarks state`: what a small batch costs against a large store and against a small one,
and what the workers hold.

The same batches find the same rows in both stores, so whatever the larger one costs more is due to its size alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import parser, positive
from benchmarks.components.state_run import StateOutcome, StateTask
from benchmarks.components.stored_data import StoredWorkload, prepare_stored, stored_workloads
from benchmarks.figures import count, ratio, shown, size, write_json
from benchmarks.measure import Use
from benchmarks.surroundings import surroundings
from benchmarks.systems.launch import launch
from plait.errors import OptionError

MOST_RATIO = 3.0
MOST_PRIVATE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The larger store against the smaller: medians, their ratio, and the most private memory of any worker at any
    time.

    `complete`: every probe found its one row.
    """

    batch_ratio: float | None
    inside_ratio: float | None
    worker_private_bytes: int | None
    worker_anonymous_bytes: int | None
    complete: bool

    @property
    def is_within_limits(self) -> bool:
        """Whether time and memory are what they have to be; memory that cannot be seen does not count."""
        return (
            self.complete
            and self.batch_ratio is not None
            and self.batch_ratio <= MOST_RATIO
            and (self.worker_private_bytes or 0) <= MOST_PRIVATE_BYTES
        )


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if time and memory are within their limits, else 1."""
    options = _arguments(arguments)
    if options.against > options.rows:
        raise OptionError(f"--against {options.against} must not be more than --rows {options.rows}")
    console = Console()
    directory = options.dir.absolute()
    where = surroundings()
    workloads = stored_workloads((options.against, options.rows), options.load_rows, options.seed)
    outcomes = [_run(workload, workloads[0], options, directory, console) for workload in workloads]
    found = verdict(outcomes[0], outcomes[1], options.batch_rows * (options.batches + 1))
    if options.json is not None:
        write_json(options.json, _document(options, where, outcomes, found))
    console.print(_table(outcomes))
    console.print(_sentence(found), highlight=False)
    return 0 if found.is_within_limits else 1


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("state", "Time and memory of small batches that probe a large store.")
    made.add_argument("--rows", type=positive, default=50_000_000, help="rows in the larger store")
    made.add_argument("--against", type=positive, default=1_000_000, help="rows in the smaller store")
    made.add_argument("--batch-rows", type=positive, default=10_000, help="rows of a probing batch")
    made.add_argument("--batches", type=positive, default=9, help="probing batches to take the median of")
    made.add_argument("--load-rows", type=positive, default=2_000_000, help="rows of a storing batch")
    return made.parse_args(arguments)


def _run(
    workload: StoredWorkload,
    smallest: StoredWorkload,
    options: argparse.Namespace,
    directory: Path,
    console: Console,
) -> StateOutcome:
    console.print(f"{workload.rows:,} stored rows: preparing the data", highlight=False)
    data = prepare_stored(workload, directory)
    (directory / "scratch").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="state-", dir=directory / "scratch", ignore_cleanup_errors=True) as scratch:
        task = StateTask(
            data=str(data),
            smallest=smallest,
            batch_rows=options.batch_rows,
            batches=options.batches,
            seed=options.seed,
            cores=options.cores,
            scratch=scratch,
            conf=tuple(options.conf),
        )
        text, _ = launch("benchmarks.components.state_run", "plait", task.as_json(), Path(scratch))
    outcome = StateOutcome.from_json(text)
    console.print(
        f"  stored in {outcome.load_seconds:.1f} s; batches of {options.batch_rows:,} rows: "
        f"{median(outcome.batch_seconds):.2f} s",
        highlight=False,
    )
    return outcome


def verdict(smaller: StateOutcome, larger: StateOutcome, expected_results: int) -> Verdict:
    """Compare the two runs."""
    uses = [use for outcome in (smaller, larger) for use in (outcome.load_use, outcome.probe_use) if use is not None]
    return Verdict(
        batch_ratio=ratio(median(larger.batch_seconds), median(smaller.batch_seconds)),
        inside_ratio=ratio(median(larger.inside_seconds), median(smaller.inside_seconds)),
        worker_private_bytes=max((use.worker_private_bytes() or 0 for use in uses), default=0) or None,
        worker_anonymous_bytes=max((use.worker_anonymous_bytes() or 0 for use in uses), default=0) or None,
        complete=smaller.results == larger.results == expected_results,
    )


def _table(outcomes: list[StateOutcome]) -> Table:
    made = Table(title="Small batches against stored rows", caption="memory: the most of any Python worker")
    made.add_column("stored rows")
    for outcome in outcomes:
        made.add_column(count(outcome.stored_tuples), justify="right")
    for label, write in _LINES:
        made.add_row(label, *(write(outcome) for outcome in outcomes))
    return made


_LINES: tuple[tuple[str, Callable[[StateOutcome], str]], ...] = (
    ("stored bytes", lambda found: size(found.stored_bytes)),
    ("storing", lambda found: f"{found.load_seconds:.1f} s"),
    ("batch, median", lambda found: f"{median(found.batch_seconds):.3f} s"),
    ("in Plait", lambda found: f"{median(found.inside_seconds):.3f} s"),
    ("private, while storing", lambda found: _held(found.load_use, Use.worker_private_bytes)),
    ("private, while probing", lambda found: _held(found.probe_use, Use.worker_private_bytes)),
    ("anonymous, while storing", lambda found: _held(found.load_use, Use.worker_anonymous_bytes)),
    ("anonymous, while probing", lambda found: _held(found.probe_use, Use.worker_anonymous_bytes)),
)


def _held(use: Use | None, read: Callable[[Use], int | None]) -> str:
    return shown(None if use is None else read(use), size)


def _sentence(found: Verdict) -> str:
    held = shown(found.worker_private_bytes, size)
    whole, inside = (shown(value, lambda value: f"{value:.2f}") for value in (found.batch_ratio, found.inside_ratio))
    complete = "every probe found its row" if found.complete else "PROBES DID NOT FIND THEIR ROWS"
    within = "within limits" if found.is_within_limits else "NOT within limits"
    return (
        f"A batch takes {whole} times as long (limit {MOST_RATIO:g}), its work in Plait {inside} times; "
        f"a worker held at most {held} (limit {size(MOST_PRIVATE_BYTES)}); {complete}: {within}."
    )


def _document(
    options: argparse.Namespace, where: dict[str, Any], outcomes: list[StateOutcome], found: Verdict
) -> dict[str, Any]:
    return {
        "benchmark": "state",
        **where,
        "settings": {
            "rows": options.rows,
            "against": options.against,
            "batch_rows": options.batch_rows,
            "batches": options.batches,
            "load_rows": options.load_rows,
            "cores": options.cores,
            "seed": options.seed,
            "conf": dict(options.conf),
        },
        "verdict": {**asdict(found), "within_limits": found.is_within_limits},
        "runs": [asdict(outcome) for outcome in outcomes],
    }
