"""Run the cases of a workload on several systems: first compare results with the oracle's, then take the time.

Every run is a process of its own, and the order of the systems is reversed from one repetition to the next, so that
none always finds a warmer or busier machine than the others. Only a system whose results are the oracle's is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console

from benchmarks.reports.report import CaseRecord, Check, RunRecord, Wrong
from benchmarks.suite.live_streams import Live
from benchmarks.suite.plan import CaseRun, Findings, Grow, Plan, Runner, order
from benchmarks.systems.known import Choice
from benchmarks.systems.launch import Run, run_fresh
from benchmarks.systems.task import Answer
from benchmarks.workloads.case import Case


def _forget(found: Findings) -> None:
    """Keep nothing."""


def carry_out(
    plan: Plan,
    cases: Iterable[Case],
    console: Console,
    run: Runner = run_fresh,
    keep: Callable[[Findings], None] = _forget,
    grow: Grow | None = None,
) -> Findings:
    """Run everything, case by case; `keep` takes what was found so far after each. `grow` as in `CaseRun`."""
    found = Findings()
    too_slow: dict[str, tuple[float, str]] = {}
    for case in cases:
        console.print(case.name, highlight=False, markup=False)
        _carry_out_case(CaseRun(plan=plan, case=case, console=console, run=run, found=found, grow=grow), too_slow)
        keep(found)
    return found


def _carry_out_case(each: CaseRun, too_slow: dict[str, tuple[float, str]]) -> None:
    slow = {label: reason for label, (size, reason) in too_slow.items() if each.case.size > size}
    for choice in each.plan.choices:
        if choice.label in slow:
            each.miss(choice, slow[choice.label], unable=False, asked=False)
    asked = tuple(choice for choice in each.plan.choices if choice.label not in slow)
    oracle = each.ask_oracle(each.case)
    each.found.cases.append(_record(each.case, oracle))
    expected = oracle.outcome.answers
    if each.plan.check:
        asked = tuple(choice for choice in asked if not choice.system.joins or _is_right(each, choice, expected))
    ended: set[str] = set()
    spent: dict[str, list[float]] = {}
    for turn, choice in order(asked, each.plan.repeat):
        if choice.label in ended or each.plan.is_enough(spent.get(choice.label, ())):
            continue
        done = each.attempt(choice, check=False)
        if done is None or not _counts_right(each, choice, done, expected):
            ended.add(choice.label)
            _forget_times(each, choice)
            continue
        _note_time(each, choice, turn, done, expected)
        spent.setdefault(choice.label, []).append(done.outcome.startup_seconds + done.outcome.seconds)
        if each.plan.limit_s is not None and done.outcome.seconds > each.plan.limit_s:
            reason = f"it took {done.outcome.seconds:,.0f} s for '{each.case.name}'"
            too_slow.setdefault(choice.label, (each.case.size, reason))
    timed = tuple(choice for choice in asked if choice.label not in ended and choice.system.joins)
    if each.case.size == each.found.cases[0].size:
        following = tuple(choice for choice in timed if each.plan.follows(choice))
        Live(each=each, oracle=oracle.outcome).run_all(following)


def _forget_times(each: CaseRun, choice: Choice) -> None:
    """Drop the times of a system that went wrong later: what it did before counts no more than that."""
    found = each.found.runs
    found[:] = [run for run in found if (run.case, run.system) != (each.case.name, choice.label)]


def _note_time(each: CaseRun, choice: Choice, turn: int, done: Run, expected: tuple[Answer, ...]) -> None:
    outcome = done.outcome
    is_checked = each.plan.check and choice.system.joins
    record = RunRecord(
        case=each.case.name,
        system=choice.label,
        turn=turn,
        outcome=outcome,
        use=done.use,
        results=sum(answer.rows for answer in expected) if is_checked else outcome.results,
    )
    each.found.runs.append(record)
    each.say(
        f"{choice.label}: {outcome.rows_in / outcome.seconds:,.0f} rows/s, {outcome.seconds:.1f} s "
        f"after {outcome.startup_seconds:.1f} s of start-up"
    )


def _is_right(each: CaseRun, choice: Choice, expected: tuple[Answer, ...]) -> bool:
    """Compare a system's results with the oracle's, query by query; tell whether they are equal."""
    done = each.attempt(choice, check=True)
    if done is None:
        return False
    check = Check(
        case=each.case.name,
        system=choice.label,
        expected_rows=sum(answer.rows for answer in expected),
        wrong=differences(expected, done.outcome.answers),
        edges=done.outcome.edges,
    )
    each.found.checks.append(check)
    each.say(f"{choice.label}: results {'equal' if check.is_equal else 'DIFFERENT'}, {check.expected_rows:,} rows")
    for wrong in check.wrong:
        each.say(f"  {wrong.expected.query}: expected {wrong.expected}, found {wrong.found}")
    return check.is_equal


def differences(expected: tuple[Answer, ...], found: tuple[Answer, ...]) -> tuple[Wrong, ...]:
    """Return the queries whose results are not the oracle's."""
    by_query = {answer.query: answer for answer in found}
    return tuple(
        Wrong(expected=answer, found=by_query.get(answer.query))
        for answer in expected
        if by_query.get(answer.query) != answer
    )


def _counts_right(each: CaseRun, choice: Choice, done: Run, expected: tuple[Answer, ...]) -> bool:
    """Tell whether a timed run that counts its results has as many as the oracle, query by query."""
    counted = {answer.query: answer.rows for answer in done.outcome.answers}
    if not each.plan.check or not counted or counted == {answer.query: answer.rows for answer in expected}:
        return True
    each.miss(choice, f"a timed run found other numbers of results than DuckDB: {counted}", unable=False)
    return False


def _record(case: Case, oracle: Run) -> CaseRecord:
    return CaseRecord(
        name=case.name,
        size=case.size,
        files=case.files,
        rows_in=oracle.outcome.rows_in,
        queries=tuple((query.name, query.batch_sql(case.questions.times())) for query in case.questions.queries),
    )
