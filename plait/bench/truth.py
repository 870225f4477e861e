"""How true a plan's estimates are: what was sent along its edges against what it expected to be sent.

The estimates compared are those the plan has when the optimizer knows the statistics of the whole run, so that what is
judged is its arithmetic and not its foresight. They hold for one content of the starting relation's window; a run is so
many of them. Of the full history there is one, and a path of j streams is reached by its share t^j, because the number
of its tuples grows with the j-th power of time.

A second figure, `expected`, is what would be sent if tuples of different streams agreed on their keys independently of
when they arrive, all keys of the side with more of them were equally likely, and those of the other side were among
them: the assumptions of every such estimate. Unlike the plan's it follows the windows as they fill. Where the plan's
estimate is wrong and this one right, the model of time is to blame; where both are wrong, the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from plait.optimizer.cardinality import Cardinality
from plait.optimizer.estimates import Flow, flows, with_estimates
from plait.plan.model import Plan, ProbeTree, Step
from plait.state.model import SourceProgress
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What the manifest says after a batch: the plan in force, the newest event time, and probe tuples so far."""

    plan: str
    tau_us: int
    probe_tuples: tuple[tuple[str, int], ...]
    sources: tuple[SourceProgress, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTruth:
    """An edge: probe tuples `measured`, those the plan's estimate comes to (`estimated`), and those `expected`.

    `joined`: streams joined before the edge. `span_us`: event time over which it is counted.
    """

    edge: str
    joined: int
    span_us: int
    measured: int
    estimated: float
    expected: float

    def __add__(self, other: EdgeTruth) -> EdgeTruth:
        """Return the same edge over both stretches of time."""
        return EdgeTruth(
            edge=self.edge,
            joined=self.joined,
            span_us=self.span_us + other.span_us,
            measured=self.measured + other.measured,
            estimated=self.estimated + other.estimated,
            expected=self.expected + other.expected,
        )

    @property
    def q_error(self) -> float:
        """How far off the estimate is, as a factor of at least one. Less than one tuple counts as one."""
        return q_error(self.measured, self.estimated)

    @property
    def expected_q_error(self) -> float:
        """How far off `expected` is."""
        return q_error(self.measured, self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The q-errors of a workload's edges. `above_two`: edges whose estimate is off by more than a factor of two;
    `data_above_two`: those of them where the data is to blame.
    """

    edges: int
    median: float
    worst: float
    worst_edge: str
    expected_median: float
    expected_worst: float
    above_two: int
    data_above_two: int


def q_error(measured: float, estimated: float) -> float:
    """Return max(measured / estimated, estimated / measured), nothing below one tuple.

    >>> q_error(50, 100), q_error(0, 0.2)
    (2.0, 1.0)
    """
    larger, smaller = max(measured, estimated, 1.0), max(min(measured, estimated), 1.0)
    return larger / smaller


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
        expected_median=median(edge.expected_q_error for edge in edges),
        expected_worst=max(edge.expected_q_error for edge in edges),
        above_two=len(wrong),
        data_above_two=sum(edge.expected_q_error > 2 for edge in wrong),
    )


def edge_truths(
    plans: Mapping[str, Plan], statistics: Statistics, glimpses: Sequence[Glimpse]
) -> tuple[EdgeTruth, ...]:
    """Return every edge of the plans (by name) that have been in force, each over the time it was part of one."""
    first_us = min((source.tau_min for source in glimpses[-1].sources if source.tau_min is not None), default=0)
    found: dict[str, EdgeTruth] = {}
    for reign in _reigns(glimpses, first_us):
        for tree, step, flow in _estimated(plans[reign.plan], statistics):
            truth = _truth(reign, tree, step, flow.streams_before)
            found[step.edge] = truth if step.edge not in found else found[step.edge] + truth
    return tuple(found[edge] for edge in sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reign:
    """A stretch of the run under one plan, and what was sent in it."""

    plan: str
    span: _Span
    sent: Mapping[str, int]


def _reigns(glimpses: Sequence[Glimpse], first_us: int) -> Iterator[_Reign]:
    start_us, base = 0, dict[str, int]()
    for plan, group in groupby(glimpses, key=lambda glimpse: glimpse.plan):
        *_, last = group
        end_us = last.tau_us - first_us
        sent = {edge: count - base.get(edge, 0) for edge, count in last.probe_tuples}
        yield _Reign(
            plan=plan, span=_Span(start_us=start_us, end_us=end_us, whole_us=glimpses[-1].tau_us - first_us), sent=sent
        )
        start_us, base = end_us, dict(last.probe_tuples)


def _truth(reign: _Reign, tree: ProbeTree, step: Step, joined: int) -> EdgeTruth:
    estimate, window_us = step.estimate.probe_tuples or 0.0, tree.start.window_us
    return EdgeTruth(
        edge=step.edge,
        joined=joined,
        span_us=reign.span.end_us - reign.span.start_us,
        measured=reign.sent.get(step.edge, 0),
        estimated=estimate * reign.span.units(window_us, joined),
        expected=estimate * reign.span.arrivals(window_us, joined),
    )


def _estimated(plan: Plan, statistics: Statistics) -> Iterator[tuple[ProbeTree, Step, Flow]]:
    found = flows(plan.trees, plan.stores, Cardinality(statistics=statistics))
    for tree in with_estimates(plan.trees, plan.stores, found):
        for _, step in tree.walk():
            yield tree, step, found[step.edge]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A stretch of event time, counted from the first tuple of all; the run has `whole_us`."""

    start_us: int
    end_us: int
    whole_us: int

    def units(self, window_us: int | None, joined: int) -> float:
        """Return how many window contents the stretch holds."""
        if window_us is None:
            return self._share(joined)
        return (self.end_us - self.start_us) / window_us

    def arrivals(self, window_us: int | None, joined: int) -> float:
        """Return how many times as many tuples of `joined` streams arrive as a plan estimates for one window content.

        When the newest member of a path arrives, every other member may be anywhere in its window, so a full window
        gives j times the |⋈ X| / j of the estimate. A window that is still filling holds its share t / W of each of
        the other j - 1. Windows are taken to be equally long.
        """
        if window_us is None:
            return self._share(joined)
        filling = [min(bound, window_us) / window_us for bound in (self.start_us, self.end_us)]
        full_us = max(self.end_us - max(self.start_us, window_us), 0)
        return filling[1] ** joined - filling[0] ** joined + joined * full_us / window_us

    def _share(self, joined: int) -> float:
        if self.whole_us <= 0:
            return 0.0
        return float((self.end_us / self.whole_us) ** joined - (self.start_us / self.whole_us) ** joined)


__all__ = ["EdgeTruth", "Glimpse", "Truth", "edge_truths", "q_error", "summarize"]
