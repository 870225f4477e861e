"""Let the streams of a case arrive at fixed rates: the latency at a rate, and the highest rate that is kept up with.

At every rate the streams last equally long, so at a higher one more rows are asked for, of the same kind and over the
same event time. Where a workload's rows do not depend on its size, the streams are those of the case, and rates at
which they would be over too soon to see a backlog grow are not tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median

from benchmarks.suite.pacing import at_least, judge, rate, run_paced
from benchmarks.suite.plan import CaseRun, order
from benchmarks.systems.known import Choice
from benchmarks.systems.task import Outcome
from benchmarks.workloads.case import Case
from plait.errors import PlaitError

FILES = 40
"""Of each stream, where a workload grows: one every half second."""
_STREAMS_S = 20.0
_LEAST_S = 10.0
_SEARCHES = 10
_STRIDE = 3
"""So many rates further is twice the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Streams:
    """The case whose files arrive at a rate; its rows, and the results there are."""

    case: Case
    rows: int
    results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Runs the systems on the streams of a case. `oracle`: what DuckDB came to in it."""

    each: CaseRun
    oracle: Outcome
    _known: dict[float, _Streams] = field(default_factory=dict)

    def run_all(self, choices: tuple[Choice, ...]) -> None:
        """Run the systems at each rate, in alternating order, then look for the highest rate of each."""
        plan = self.each.plan
        for pace in plan.paces:
            spent: dict[str, list[float]] = {}
            for turn, choice in order(choices, plan.repeat):
                if not plan.is_enough(spent.get(choice.label, ())) and self._run(choice, turn, pace) is not None:
                    spent.setdefault(choice.label, []).append(_STREAMS_S)
        for choice in choices if plan.sustain else ():
            self._search(choice)

    def _run(self, choice: Choice, turn: int, pace: float) -> bool | None:
        """Run one system; tell whether it kept up, None if it gave nothing."""
        each = self.each
        try:
            streams = self._streams(pace)
            feed, outcome = run_paced(
                each.plan.task(choice, streams.case),
                rows=streams.rows,
                rows_per_s=pace,
                expected=streams.results,
                timeout_s=each.plan.timeout_s,
                run=each.run,
            )
        except PlaitError as error:
            each.miss(choice, str(error), unable=False)
            return None
        if outcome.unable is not None:
            each.miss(choice, outcome.unable, unable=True)
            return None
        paced = judge(streams.case.name, choice.label, turn, feed, outcome, streams.results)
        each.found.paced.append(paced)
        latency = "no results" if paced.p50_s is None else f"latency {paced.p50_s:.2f} s, p99 {paced.p99_s or 0:.2f} s"
        each.say(
            f"{choice.label} at {pace:,.0f} rows/s: {latency}, {'kept up' if paced.is_sustained else 'fell behind'}"
        )
        return paced.is_sustained

    def _search(self, choice: Choice) -> None:
        """Look for the highest rate that a system keeps up with: from what it drained twice as much each time, or half
        as much, until it lies between two rates, then between these.
        """
        drained = median(
            run.outcome.rows_in / run.outcome.seconds
            for run in self.each.found.runs
            if (run.case, run.system) == (self.each.case.name, choice.label)
        )
        step, kept, lost = at_least(drained) - 1, None, None
        for turn in range(_SEARCHES):
            kept_up = self._run(choice, turn, rate(step)) if self._is_long_enough(rate(step)) else None
            if kept_up is None:
                return
            kept, lost = (step, lost) if kept_up else (kept, step)
            if kept is None:
                step -= _STRIDE
            elif lost is None:
                step += _STRIDE
            elif lost - kept == 1:
                return
            else:
                step = (kept + lost) // 2

    def _is_long_enough(self, pace: float) -> bool:
        return self.each.grow is not None or self.oracle.rows_in >= _LEAST_S * pace

    def _streams(self, pace: float) -> _Streams:
        """Return what arrives at a rate. Raises PlaitError where it would be over too soon."""
        if pace not in self._known:
            self._known[pace] = self._made(pace)
        return self._known[pace]

    def _made(self, pace: float) -> _Streams:
        case, oracle = self.each.case, self.oracle
        if self.each.grow is not None:
            grown = self.each.grow(case, _STREAMS_S * pace / oracle.rows_in)
            case = replace(grown, name=case.live_name)
            oracle = self.each.ask_oracle(case).outcome
        elif not self._is_long_enough(pace):
            lasts = f"{oracle.rows_in / pace:.1f} s at {pace:,.0f} rows/s"
            raise PlaitError(f"the streams of '{case.name}' last {lasts}; expected {_LEAST_S:g} s: use a lower --pace")
        return _Streams(case=case, rows=oracle.rows_in, results=oracle.results or 0)
