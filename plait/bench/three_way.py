"""`plait bench three-way`: a windowed join of three streams, by Plait and by others, on the same data in the same run.

Each timed run has a process of its own and discards its results. In untimed runs the results are added up and
compared with what DuckDB finds in the same files. The order of the systems is reversed from one repetition to the
next, so that none always runs on a warmer or busier machine than the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from plait.bench import report
from plait.bench.checksum import Checksum
from plait.bench.data import Workload, prepare
from plait.bench.options import numbers, parser, positive
from plait.bench.question import THREE_WAY
from plait.bench.report import Check, Failure
from plait.bench.surroundings import surroundings
from plait.bench.systems.launch import ALL_SYSTEMS, SYSTEMS, Run, SystemFailedError, run_fresh
from plait.bench.systems.task import Task
from plait.errors import OptionError, PlaitError

_SPARKS = ("spark", "spark-defaults")
_CHECKED = ("plait", *_SPARKS)
_SPARK_BATCHES_FROM_ROWS = 10_000_000
Runner = Callable[[Task], Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run. `spark_batches`: how many batches Spark's own join gets at 10 M rows a stream and more; None for
    all.
    """

    sizes: tuple[int, ...]
    systems: tuple[str, ...]
    repeat: int
    check: bool
    spark_batches: int | None
    spark_memory: str
    directory: Path
    cores: int
    seed: int
    files: int
    conf: tuple[tuple[str, str], ...]

    def files_of(self, system: str, workload: Workload) -> int:
        """Return how many files of each stream, so batches, a system gets."""
        limit = self.spark_batches if workload.rows >= _SPARK_BATCHES_FROM_ROWS and system in _SPARKS else None
        return workload.files if limit is None else min(limit, workload.files)

    def task(self, system: str, workload: Workload, data: Path, *, check: bool = False) -> Task:
        """Return the task of one system at one size."""
        return Task(
            system=system,
            questions=THREE_WAY,
            data=str(data),
            files=self.files_of(system, workload),
            scratch=str(self.directory / "scratch"),
            check=check,
            cores=self.cores,
            memory=self.spark_memory if system in _SPARKS else None,
            options=() if system == "duckdb" else self.conf,
        )


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if every system ran and every result was right, else 1."""
    options = _arguments(arguments)
    plan = Plan(
        sizes=options.sizes,
        systems=options.systems,
        repeat=options.repeat,
        check=options.check,
        spark_batches=options.spark_batches or None,
        spark_memory=options.spark_memory,
        directory=options.dir.absolute(),
        cores=options.cores,
        seed=options.seed,
        files=options.files,
        conf=tuple(options.conf),
    )
    if (plan.check or "duckdb" in plan.systems) and find_spec("duckdb") is None:
        raise OptionError(
            "the benchmark compares with DuckDB, which is not installed: pip install duckdb (a development dependency "
            "of Plait), or leave it out with --no-check --systems plait,spark,handover"
        )
    console = Console()
    where = surroundings()
    runs, checks, failures = carry_out(plan, console)
    figures = report.summarize(runs, checks)
    if options.json is not None:
        report.write_json(options.json, _document(plan, where, (runs, checks, failures), figures))
    for table in report.tables(figures):
        console.print(table)
    for check in checks:
        if not check.is_equal:
            console.print(f"{check.system} at {check.rows:,} rows: {check.failure or _difference(check)}", markup=False)
    for failure in failures:
        console.print(f"{failure.system} at {failure.rows:,} rows: {failure.reason}", markup=False)
    return 0 if not failures and all(check.is_equal for check in checks) else 1


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("three-way", "A windowed join of three streams: Plait, Spark's own join, and limits to compare with.")
    made.add_argument("--sizes", type=numbers, default=(1_000_000,), metavar="N,...", help="rows a stream")
    made.add_argument("--systems", type=_systems, default=SYSTEMS, metavar="NAME,...", help=", ".join(ALL_SYSTEMS))
    made.add_argument("--repeat", type=positive, default=3, help="timed runs of each system")
    made.add_argument("--files", type=positive, default=20, help="files a stream, so batches")
    made.add_argument(
        "--spark-batches",
        type=int,
        default=10,
        metavar="N",
        help="from 10 million rows on, take Spark's rate from its first N batches; 0: from all",
    )
    made.add_argument("--spark-memory", default="8g", help="heap for Spark's own join, which keeps its state there")
    made.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True, help="compare results with DuckDB's, untimed"
    )
    return made.parse_args(arguments)


def _systems(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in ALL_SYSTEMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown system '{unknown[0]}'; expected some of {', '.join(ALL_SYSTEMS)}")
    return names


Results = tuple[list[tuple[int, Run]], list[Check], list[Failure]]


def carry_out(plan: Plan, console: Console, run: Runner = run_fresh) -> Results:
    """Run everything, size by size; return the timed runs, the checks, and the runs that failed."""
    runs: list[tuple[int, Run]] = []
    checks: list[Check] = []
    failures: list[Failure] = []
    for rows in plan.sizes:
        workload = Workload(rows=rows, seed=plan.seed, files=plan.files)
        console.print(f"{rows:,} rows a stream: preparing the data", highlight=False)
        data = prepare(workload, plan.directory)
        if plan.check:
            checks += _check(plan, workload, data, console, run)
        for system in order(plan.systems, plan.repeat):
            try:
                done = run(plan.task(system, workload, data))
            except SystemFailedError as error:
                failures.append(Failure(system=system, rows=rows, reason=str(error)))
                console.print(f"  {system}: failed", highlight=False)
                continue
            runs.append((rows, done))
            outcome = done.outcome
            console.print(
                f"  {system}: {outcome.rows_in / outcome.seconds:,.0f} rows/s, {outcome.seconds:.1f} s "
                f"after {outcome.startup_seconds:.1f} s of start-up",
                highlight=False,
            )
    return runs, checks, failures


def order(systems: Sequence[str], repeat: int) -> tuple[str, ...]:
    """Return who runs when: every system once a repetition, in reversed order every other time.

    >>> order(("a", "b"), 3)
    ('a', 'b', 'b', 'a', 'a', 'b')
    """
    return tuple(name for turn in range(repeat) for name in (systems if turn % 2 == 0 else systems[::-1]))


def _check(plan: Plan, workload: Workload, data: Path, console: Console, run: Runner) -> list[Check]:
    """Compare the results of the systems that join with the oracle's over the same files."""
    checks = []
    expected: dict[int, Checksum] = {}
    for system in (name for name in plan.systems if name in _CHECKED):
        task = plan.task(system, workload, data, check=True)
        if task.files not in expected:
            expected[task.files] = _oracle(plan, workload, data, task.files, run)
        found, failure = None, None
        try:
            found = run(task).outcome.checksum
        except SystemFailedError as error:
            failure = str(error)
        check = Check(
            system=system,
            rows=workload.rows,
            files=task.files,
            expected=expected[task.files],
            found=found,
            failure=failure,
        )
        checks.append(check)
        equal = "equal" if check.is_equal else "DIFFERENT"
        console.print(
            f"  {system}: results of {task.files} batches {equal}, {check.expected.rows:,} rows", highlight=False
        )
    return checks


def _oracle(plan: Plan, workload: Workload, data: Path, files: int, run: Runner) -> Checksum:
    task = plan.task("duckdb", workload, data, check=True)
    found = run(replace(task, files=files)).outcome.checksum
    if found is None:
        raise PlaitError("DuckDB returned no checksum of its results, so nothing can be compared")
    return found


def _difference(check: Check) -> str:
    return f"expected {check.expected}, found {check.found}"


def _document(
    plan: Plan, where: dict[str, Any], results: Results, figures: tuple[report.Figures, ...]
) -> dict[str, Any]:
    runs, checks, failures = results
    return {
        "benchmark": "three-way",
        **where,
        "settings": {
            "sizes": plan.sizes,
            "systems": plan.systems,
            "repeat": plan.repeat,
            "files": plan.files,
            "cores": plan.cores,
            "seed": plan.seed,
            "spark_batches": plan.spark_batches,
            "spark_memory": plan.spark_memory,
            "conf": dict(plan.conf),
        },
        "summary": [asdict(found) for found in figures],
        "checks": [report.check_json(check) for check in checks],
        "failures": [asdict(failure) for failure in failures],
        "runs": [report.run_json(rows, run) for rows, run in runs],
    }
