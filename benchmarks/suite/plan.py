"""What is to be run and what was found so far: what checked, timed and live runs of a case have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.reports.report import Absence, CaseRecord, Check, Paced, RunRecord
from benchmarks.systems.known import Choice, choose
from benchmarks.systems.launch import NotPreparedError, Run
from benchmarks.systems.task import Task
from benchmarks.workloads.case import Case
from plait.errors import PlaitError

_ORACLE = "duckdb"
_FEWEST = 2
_PLAIT = "plait"

Runner = Callable[..., Run]
Grow = Callable[[Case, float], Case]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """One case being run. `grow` gives its questions over so many times as many rows, for live streams; None: its rows
    do not depend on its size.
    """

    plan: Plan
    case: Case
    console: Console
    run: Runner
    found: Findings
    grow: Grow | None = None

    def attempt(self, choice: Choice, *, check: bool) -> Run | None:
        """Run one system; None if it gave nothing, which is noted."""
        try:
            done = self.run(self.plan.task(choice, self.case, check=check), timeout_s=self.plan.timeout_s)
        except NotPreparedError as error:
            self.miss(choice, str(error), unable=True)
            return None
        except PlaitError as error:
            self.miss(choice, str(error), unable=False)
            return None
        if done.outcome.unable is not None:
            self.miss(choice, done.outcome.unable, unable=True)
            return None
        return done

    def miss(self, choice: Choice, reason: str, *, unable: bool, asked: bool = True) -> None:
        """Note that a system has no time for this case."""
        absence = Absence(case=self.case.name, system=choice.label, reason=reason, unable=unable, asked=asked)
        self.found.absences.append(absence)
        self.say(f"{choice.label}: {absence.verdict}: {reason.splitlines()[0]}")

    def say(self, text: str) -> None:
        """Tell the user."""
        self.console.print(f"  {text}", highlight=False, markup=False)

    def ask_oracle(self, case: Case) -> Run:
        """Return DuckDB's checked run. Without it nothing can be compared, so its failure ends the benchmark."""
        done = self.run(self.plan.task(choose(_ORACLE), case, check=True))
        if any(answer.checksum is None for answer in done.outcome.answers):
            raise PlaitError("DuckDB returned no checksum of its results, so nothing can be compared")
        return done


def order(labels: Sequence[Choice], repeat: int) -> Iterator[tuple[int, Choice]]:
    """Yield who runs when: every system once a repetition, in reversed order every other time.

    >>> [name for _, name in order(("a", "b"), 3)]
    ['a', 'b', 'b', 'a', 'a', 'b']
    """
    for turn in range(repeat):
        for choice in labels if turn % 2 == 0 else labels[::-1]:
            yield turn, choice
