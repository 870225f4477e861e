"""Run the cases of a workload on several systems: first compare results with the oracle's, then take the time.

Every run is a process of its own, and the order of the systems is reversed from one repetition to the next, so that
none always finds a warmer or busier machine than the others. Only a system whose results are the oracle's is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console

from plait.bench.suite.document import Absence, CaseRecord, Check, Paced, RunRecord, Wrong
from plait.bench.suite.pacing import SEARCH_STEP, judge, run_paced
from plait.bench.systems.catalog import Choice, choose
from plait.bench.systems.launch import NotPreparedError, Run, SystemFailedError, run_fresh
from plait.bench.systems.task import Answer, Task
from plait.bench.workloads.model import Case
from plait.errors import PlaitError

_ORACLE = "duckdb"
_SEARCHES = 8
_FEWEST = 2
_PLAIT = "plait"

Runner = Callable[..., Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to run. `sample`: batches after which Plait is started anew with what it has measured, 0 for never.
    `timeout_s`: ends a run. `limit_s`: a system that took longer is not asked for larger cases. `enough_s`: a system
    whose timed runs of a case took this long together, two at least, is not run again. `paces`: rows a second at which
    streams also arrive live, for systems that can follow them, in the first cases: those of the smallest size.
    `sustain`: look for the highest rate that each of these keeps up with. `live`: the labels of those asked to follow,
    all that can for none.
    """

    choices: tuple[Choice, ...]
    repeat: int
    check: bool
    directory: Path
    cores: int
    sample: int = 0
    timeout_s: float | None = None
    limit_s: float | None = None
    enough_s: float | None = None
    paces: tuple[float, ...] = ()
    sustain: bool = False
    live: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()

    def task(self, choice: Choice, case: Case, *, check: bool = False) -> Task:
        """Return the task of one system."""
        name = choice.system.name
        return Task(
            system=name,
            mode=choice.mode,
            sample=min(self.sample, case.files) if name == _PLAIT else 0,
            questions=case.questions,
            data=str(case.data),
            files=case.files,
            scratch=str(self.directory / "scratch"),
            slice_us=round(case.span_s * 1_000_000 / case.files),
            check=check,
            cores=self.cores,
            options=self.conf,
        )

    def follows(self, choice: Choice) -> bool:
        """Tell whether a system is to follow live streams."""
        return choice.system.is_live and (not self.live or choice.label in self.live)

    def is_enough(self, spent: Sequence[float]) -> bool:
        """Tell whether a system that took these seconds for its runs of a case need not be run again."""
        return self.enough_s is not None and len(spent) >= _FEWEST and sum(spent) >= self.enough_s


@dataclass(slots=True)
class Findings:
    """What was found so far."""

    cases: list[CaseRecord] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    paced: list[Paced] = field(default_factory=list)


def _forget(found: Findings) -> None:
    """Keep nothing."""


def carry_out(
    plan: Plan,
    cases: Iterable[Case],
    console: Console,
    run: Runner = run_fresh,
    keep: Callable[[Findings], None] = _forget,
) -> Findings:
    """Run everything, case by case; `keep` takes what was found so far after each."""
    found = Findings()
    too_slow: dict[str, tuple[float, str]] = {}
    for case in cases:
        console.print(case.name, highlight=False, markup=False)
        _carry_out_case(_CaseRun(plan=plan, case=case, console=console, run=run, found=found), too_slow)
        keep(found)
    return found


def order(labels: Sequence[Choice], repeat: int) -> Iterator[tuple[int, Choice]]:
    """Yield who runs when: every system once a repetition, in reversed order every other time.

    >>> [name for _, name in order(("a", "b"), 3)]
    ['a', 'b', 'b', 'a', 'a', 'b']
    """
    for turn in range(repeat):
        for choice in labels if turn % 2 == 0 else labels[::-1]:
            yield turn, choice


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaseRun:
    """One case being run."""

    plan: Plan
    case: Case
    console: Console
    run: Runner
    found: Findings

    def attempt(self, choice: Choice, *, check: bool) -> Run | None:
        """Run one system; None if it gave nothing, which is noted."""
        try:
            done = self.run(self.plan.task(choice, self.case, check=check), timeout_s=self.plan.timeout_s)
        except NotPreparedError as error:
            self.miss(choice, str(error), unable=True)
            return None
        except SystemFailedError as error:
            self.miss(choice, str(error), unable=False)
            return None
        if done.outcome.unable is not None:
            self.miss(choice, done.outcome.unable, unable=True)
            return None
        return done

    def miss(self, choice: Choice, reason: str, *, unable: bool) -> None:
        """Note that a system has no time for this case."""
        absence = Absence(case=self.case.name, system=choice.label, reason=reason, unable=unable)
        self.found.absences.append(absence)
        self.say(f"{choice.label}: {'cannot' if unable else 'FAILED'}: {reason.splitlines()[0]}")

    def say(self, text: str) -> None:
        """Tell the user."""
        self.console.print(f"  {text}", highlight=False, markup=False)


def _carry_out_case(each: _CaseRun, too_slow: dict[str, tuple[float, str]]) -> None:
    slow = {label: reason for label, (size, reason) in too_slow.items() if each.case.size > size}
    for choice in each.plan.choices:
        if choice.label in slow:
            each.miss(choice, slow[choice.label], unable=True)
    asked = tuple(choice for choice in each.plan.choices if choice.label not in slow)
    oracle = _ask_oracle(each)
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
            continue
        _note_time(each, choice, turn, done)
        spent.setdefault(choice.label, []).append(done.outcome.startup_seconds + done.outcome.seconds)
        if each.plan.limit_s is not None and done.outcome.seconds > each.plan.limit_s:
            reason = f"not asked: it took {done.outcome.seconds:,.0f} s for '{each.case.name}'"
            too_slow.setdefault(choice.label, (each.case.size, reason))
    rows = sum(answer.rows for answer in expected)
    timed = tuple(choice for choice in asked if choice.label not in ended and choice.system.joins)
    if each.case.size == each.found.cases[0].size:
        following = tuple(choice for choice in timed if each.plan.follows(choice))
        _Live(each=each, rows_in=oracle.outcome.rows_in, expected=rows).run_all(following)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """Lets the streams of a case arrive at a fixed rate."""

    each: _CaseRun
    rows_in: int
    expected: int

    def run_all(self, choices: tuple[Choice, ...]) -> None:
        """Run the systems at each rate, in alternating order, then look for the highest rate of each."""
        plan = self.each.plan
        for pace in plan.paces:
            for turn, choice in order(choices, plan.repeat):
                self.run(choice, turn, pace)
        for choice in choices if plan.sustain else ():
            self.search(choice)

    def run(self, choice: Choice, turn: int, pace: float) -> bool | None:
        """Run one system; tell whether it kept up, None if it gave nothing."""
        each = self.each
        try:
            feed, outcome = run_paced(
                each.plan.task(choice, each.case),
                rows=self.rows_in,
                rows_per_s=pace,
                expected=self.expected,
                timeout_s=each.plan.timeout_s,
                run=each.run,
            )
        except PlaitError as error:
            each.miss(choice, str(error), unable=False)
            return None
        if outcome.unable is not None:
            each.miss(choice, outcome.unable, unable=True)
            return None
        paced = judge(each.case.name, choice.label, turn, feed, outcome, self.expected)
        each.found.paced.append(paced)
        latency = "no results" if paced.p50_s is None else f"latency {paced.p50_s:.2f} s, p99 {paced.p99_s or 0:.2f} s"
        each.say(
            f"{choice.label} at {pace:,.0f} rows/s: {latency}, {'kept up' if paced.is_sustained else 'fell behind'}"
        )
        return paced.is_sustained

    def search(self, choice: Choice) -> None:
        """Look for the highest rate that a system keeps up with: from half of what it drained twice as much each time,
        or half as much, until it lies between two rates, then between these up to a step.
        """
        drained = median(
            run.outcome.rows_in / run.outcome.seconds
            for run in self.each.found.runs
            if (run.case, run.system) == (self.each.case.name, choice.label)
        )
        pace, kept, lost = drained / 2, 0.0, math.inf
        for turn in range(_SEARCHES):
            kept_up = self.run(choice, turn, pace)
            if kept_up is None:
                return
            kept, lost = (pace, lost) if kept_up else (kept, pace)
            if lost <= SEARCH_STEP * kept:
                return
            pace = math.sqrt(kept * lost) if kept and lost < math.inf else 2 * pace if kept_up else pace / 2


def _note_time(each: _CaseRun, choice: Choice, turn: int, done: Run) -> None:
    outcome = done.outcome
    record = RunRecord(case=each.case.name, system=choice.label, turn=turn, outcome=outcome, use=done.use)
    each.found.runs.append(record)
    each.say(
        f"{choice.label}: {outcome.rows_in / outcome.seconds:,.0f} rows/s, {outcome.seconds:.1f} s "
        f"after {outcome.startup_seconds:.1f} s of start-up"
    )


def _ask_oracle(each: _CaseRun) -> Run:
    """Return DuckDB's checked run. Without it nothing can be compared, so its failure ends the benchmark."""
    done = each.run(each.plan.task(choose(_ORACLE), each.case, check=True))
    if any(answer.checksum is None for answer in done.outcome.answers):
        raise PlaitError("DuckDB returned no checksum of its results, so nothing can be compared")
    return done


def _is_right(each: _CaseRun, choice: Choice, expected: tuple[Answer, ...]) -> bool:
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


def _counts_right(each: _CaseRun, choice: Choice, done: Run, expected: tuple[Answer, ...]) -> bool:
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
