"""Run workloads of several queries on several systems, and compare their results with the oracle's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from plait.bench.multi_report import Comparison, Failure, Wrong
from plait.bench.systems.launch import Run, SystemFailedError, run_fresh
from plait.bench.systems.task import Answer, Task
from plait.bench.three_way import order
from plait.workloads.joins import JoinQuery, QuerySet

SPARK = "spark"
SEPARATE = "separate"
OTHERS = (SPARK, SEPARATE)
"""Systems that are no strategy of Plait's."""

_ORACLE = "duckdb"

Runner = Callable[..., Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload to run: its name, its questions and where their data is, in `files` files a stream."""

    name: str
    questions: QuerySet
    data: Path
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to run: `systems` are strategies, an engine for each query, or Spark's own joins. `sample`: batches after
    which Plait plans anew.
    """

    systems: tuple[str, ...]
    repeat: int
    check: bool
    directory: Path
    cores: int
    spark_memory: str
    sample: int
    timeout_s: float | None
    conf: tuple[tuple[str, str], ...]

    def task(self, system: str, case: Case, *, check: bool = False) -> Task:
        """Return the task of one system."""
        engine = system if system in {*OTHERS, _ORACLE} else "plait"
        return Task(
            system=engine,
            mode=system if engine == "plait" else None,
            sample=min(self.sample, case.files) if engine in {"plait", SEPARATE} else 0,
            questions=case.questions,
            data=str(case.data),
            files=case.files,
            scratch=str(self.directory / "scratch"),
            check=check,
            cores=self.cores,
            memory=self.spark_memory if engine == SPARK else None,
            options=() if engine == _ORACLE else self.conf,
        )


Results = tuple[list[tuple[str, Run]], list[Comparison], list[Failure]]


def carry_out(plan: Plan, cases: tuple[Case, ...], console: Console, run: Runner = run_fresh) -> Results:
    """Run everything, workload by workload; return the timed runs, the comparisons, and the runs that failed."""
    runs: list[tuple[str, Run]] = []
    comparisons: list[Comparison] = []
    failures: list[Failure] = []
    for case in cases:
        console.print(case.name, highlight=False)
        if plan.check:
            comparisons += compare(plan, case, console, run)
        for system in order(plan.systems, plan.repeat):
            try:
                done = run(plan.task(system, case), timeout_s=plan.timeout_s)
            except SystemFailedError as error:
                failures.append(Failure(workload=case.name, system=system, reason=str(error)))
                console.print(f"  {system}: failed", highlight=False)
                continue
            runs.append((case.name, done))
            outcome = done.outcome
            console.print(
                f"  {system}: {outcome.rows_in / outcome.seconds:,.0f} rows/s, {outcome.seconds:.1f} s "
                f"after {outcome.startup_seconds:.1f} s of start-up",
                highlight=False,
            )
    return runs, comparisons, failures


def compare(plan: Plan, case: Case, console: Console, run: Runner) -> list[Comparison]:
    """Compare every system's results with the oracle's, query by query."""
    expected = ask_oracle(plan, case, run)
    found = []
    for system in plan.systems:
        comparison = Comparison(workload=case.name, system=system, expected=expected)
        try:
            outcome = run(plan.task(system, case, check=True), timeout_s=plan.timeout_s).outcome
        except SystemFailedError as error:
            comparison = replace(comparison, failure=str(error))
        else:
            comparison = replace(comparison, wrong=differences(expected, outcome.answers), edges=outcome.edges)
        found.append(comparison)
        equal = "equal" if comparison.is_equal else "DIFFERENT"
        rows = sum(answer.rows for answer in expected)
        console.print(f"  {system}: results {equal}, {rows:,} rows", highlight=False)
    return found


def ask_oracle(plan: Plan, case: Case, run: Runner = run_fresh) -> tuple[Answer, ...]:
    """Return what DuckDB finds."""
    return run(plan.task(_ORACLE, case, check=True)).outcome.answers


def differences(expected: tuple[Answer, ...], found: tuple[Answer, ...]) -> tuple[Wrong, ...]:
    """Return the queries whose results are not the oracle's."""
    by_query = {answer.query: answer for answer in found}
    return tuple(
        Wrong(expected=answer, found=by_query.get(answer.query))
        for answer in expected
        if by_query.get(answer.query) != answer
    )


def case_json(case: Case) -> dict[str, Any]:
    """Return a workload as plain values."""
    return {
        "name": case.name,
        "streams": [asdict(stream) for stream in case.questions.streams],
        "queries": [_query_json(query) for query in case.questions.queries],
    }


def _query_json(query: JoinQuery) -> dict[str, Any]:
    return {
        "name": query.name,
        "relations": query.relations,
        "joins": [join.sql for join in query.joins],
        "selections": [condition for _, condition in query.selections],
        "window_s": query.window_s,
    }
