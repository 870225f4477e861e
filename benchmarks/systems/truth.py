"""How true a plan's estimates are: what was sent along its edges against what it expected to be sent.

The estimates compared are those the plan has when the optimizer knows the statistics of the whole run, so that what is
judged is its arithmetic and not its foresight. They are rates for full windows; streams that are kept for ever have the
average of the whole run. So an edge is expected to carry the rate times the event time, and if it is only part of the
plan for some of the run, with k - 1 such streams on its path, the share of that stretch in the k-th power of time.

A second figure, `filling`, also follows the windows as they fill in the beginning. Where the estimate is wrong and this
one right, the beginning is to blame. Where both are wrong, it is the data: keys that depend on the time of arrival,
some keys much more frequent than others, or values on one side of an equality that the other side lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

import numpy as np

from benchmarks.systems.edges import EdgeTruth, q_error
from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.model import Member, Plan, Step
from plait.plan.traversals import probes
from plait.state.model import SourceProgress
from plait.stats.cycles import NOTHING_COUNTED, Cycles
from plait.stats.model import Statistics

_PIECES = 2_000
"""Pieces of a stretch of time that windows are filled by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What the manifest says after a batch: the plan in force, the newest event time, and probe tuples so far."""

    plan: str
    tau_us: int
    probe_tuples: tuple[tuple[str, int], ...]
    sources: tuple[SourceProgress, ...] = ()
    cycles: Cycles = NOTHING_COUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The q-errors of a workload's edges. `above_two`: edges whose estimate is off by more than a factor of two;
    `data_above_two`: those of them where the data is to blame.
    """

    edges: int
    median: float
    worst: float
    worst_edge: str
    filling_median: float
    filling_worst: float
    above_two: int
    data_above_two: int


def summarize(edges: Sequence[EdgeTruth]) -> Truth | None:
    """Return the q-errors of a workload; None without edges."""
    if not edges:
        return None
    worst = max(edges, key=lambda edge: edge.q_error)
    wrong = [edge for edge in edges if edge.q_error > 2]
    return Truth(
        edges=len(edges),
        median=median(edge.q_error for edge in edges),
        worst=worst.q_error,
        worst_edge=worst.edge,
        filling_median=median(edge.filling_q_error for edge in edges),
        filling_worst=max(edge.filling_q_error for edge in edges),
        above_two=len(wrong),
        data_above_two=sum(edge.filling_q_error > 2 for edge in wrong),
    )


def edge_truths(
    plans: Mapping[str, Plan], statistics: Statistics, glimpses: Sequence[Glimpse]
) -> tuple[EdgeTruth, ...]:
    """Return every edge of the plans (by name) that have been in force, each over the time it was part of one."""
    cardinality = Cardinality(statistics=statistics)
    first_us = min((source.tau_min for source in glimpses[-1].sources if source.tau_min is not None), default=0)
    whole_us = max(glimpses[-1].tau_us - first_us, 1)
    found: dict[str, EdgeTruth] = {}
    for reign in _reigns(glimpses, first_us):
        plan = reestimated(plans[reign.plan], cardinality)
        for joined, step in probes(plan):
            truth = _truth(reign, step, _Path.of(plan, joined), whole_us)
            found[step.edge] = truth if step.edge not in found else found[step.edge] + truth
    return tuple(found[edge] for edge in sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reign:
    """A stretch of the run under one plan, in event time since the first tuple, and what was sent in it."""

    plan: str
    start_us: int
    end_us: int
    sent: Mapping[str, int]


def _reigns(glimpses: Sequence[Glimpse], first_us: int) -> Iterator[_Reign]:
    start_us, base = 0, dict[str, int]()
    for plan, group in groupby(glimpses, key=lambda glimpse: glimpse.plan):
        *_, last = group
        end_us = last.tau_us - first_us
        sent = {edge: count - base.get(edge, 0) for edge, count in last.probe_tuples}
        yield _Reign(plan=plan, start_us=start_us, end_us=end_us, sent=sent)
        start_us, base = end_us, dict(last.probe_tuples)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The streams that a starting tuple has met before an edge: how many are kept for ever, and others' windows."""

    endless: int
    windows_us: tuple[int, ...]

    @classmethod
    def of(cls, plan: Plan, joined: Sequence[Member]) -> _Path:
        """Return the path over these members, the first of which starts it."""
        windows = [member.window_us for member in joined[1:] if not plan.store(member.store).is_table]
        bounded = tuple(window for window in windows if window is not None)
        return cls(endless=len(windows) - len(bounded), windows_us=bounded)

    def seconds(self, start_us: int, end_us: int, whole_us: int) -> float:
        """Return how long an edge would carry its rate to carry what it does in this stretch."""
        power = self.endless + 1
        return ((end_us / whole_us) ** power - (start_us / whole_us) ** power) * whole_us / 1e6

    def filling_seconds(self, start_us: int, end_us: int, whole_us: int) -> float:
        """Return the same, with windows that hold at time t what has arrived by then."""
        bounds = np.linspace(start_us, end_us, _PIECES + 1)
        middles = (bounds[1:] + bounds[:-1]) / 2
        rates = (self.endless + 1) * (middles / whole_us) ** self.endless
        for window_us in self.windows_us:
            rates = rates * np.minimum(middles / max(window_us, 1), 1.0)
        return float((rates * np.diff(bounds)).sum() / 1e6)


def _truth(reign: _Reign, step: Step, path: _Path, whole_us: int) -> EdgeTruth:
    rate = step.estimate.probe_tuples_per_s or 0.0
    return EdgeTruth(
        edge=step.edge,
        joined=1 + path.endless + len(path.windows_us),
        span_us=reign.end_us - reign.start_us,
        measured=reign.sent.get(step.edge, 0),
        estimated=rate * path.seconds(reign.start_us, reign.end_us, whole_us),
        filling=rate * path.filling_seconds(reign.start_us, reign.end_us, whole_us),
    )


__all__ = ["EdgeTruth", "Glimpse", "Truth", "edge_truths", "q_error", "summarize"]
