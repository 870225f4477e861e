"""What a finished batch adds to the series that forecasts are made of (`plait.stats.cycles`).

Every step tells how many of its tuples matched, and how often. What a predicate does by itself is how many pairs of
tuples were compared, and how many matched.

The distinct counts of two keys say little about their join when the keys grow with time, are skewed, or have few values
in common. The first step of a probe path compares arriving tuples with a store, so it measures the predicate itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plait.plan.conditions import Joining, in_order, joining, measured_name
from plait.plan.model import KeyColumn, Member, Plan, Probed, Selection, Step, Store, is_routed
from plait.plan.step_names import StepName, named_steps
from plait.state.model import Bucket, SourceProgress
from plait.stats.cycles import Count, Counts
from plait.stats.model import conjunction

_MOMENTS = 8
"""At how many moments of a batch the view of its tuples is taken."""


class Counted(Protocol):
    """What a task that probes tells of the edges of the plan: tuples sent along each, those that matched anything, and
    all their matches.
    """

    @property
    def probe_tuples(self) -> tuple[tuple[str, int], ...]:
        """Tuples by edge."""

    @property
    def matched(self) -> tuple[tuple[str, int], ...]:
        """Tuples that matched anything, by edge."""

    @property
    def matches(self) -> tuple[tuple[str, int], ...]:
        """Matches by edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished batch: the plan in force, buckets `stored` before it and those that `arrived`, what tasks that probed
    tell, and the progress of the sources `before` and `after` it.
    """

    plan: Plan
    stored: tuple[Bucket, ...]
    arrived: tuple[Bucket, ...]
    probed: tuple[Counted, ...]
    before: Mapping[str, SourceProgress]
    after: Mapping[str, SourceProgress]


def batch_counts(batch: Batch) -> tuple[Count, ...]:
    """Return what a batch adds to the series of its cycle."""
    return (*_source_counts(batch), *_step_counts(batch), *join_counts(batch))


def with_sample(counted: tuple[Count, ...], sample: Batch) -> tuple[Count, ...]:
    """Return what a batch has counted with what a sample of its tuples shows of other orders
    (`plait.adapt.other_orders`): of steps and predicates that the plan in force has counted, the few of the sample say
    nothing more.
    """
    known = {(count.kind, count.name) for count in counted}
    shown = (*_step_counts(sample), *join_counts(sample))
    return (*counted, *(count for count in shown if (count.kind, count.name) not in known))


def _source_counts(batch: Batch) -> Iterator[Count]:
    for name, after in sorted(batch.after.items()):
        before = batch.before.get(name, SourceProgress(source=name))
        rows = (after.rows - after.late - after.bad) - (before.rows - before.late - before.bad)
        advance = 0
        if before.tau_max is not None and after.tau_max is not None:
            advance = after.tau_max - before.tau_max
        elif after.tau_max is not None and after.tau_min is not None:
            # The first rows: n of them span n − 1 gaps.
            rows, advance = max(rows - 1, 0), after.tau_max - after.tau_min
        if rows or advance:
            yield Count(kind="source", name=(name,), counts=(rows, advance))


def _step_counts(batch: Batch) -> Iterator[Count]:
    """Yield what was counted on every edge, under the name of its step; steps that begin differently are added up."""
    sent, matched, matches = (
        _totals(counts)
        for counts in (
            (report.probe_tuples for report in batch.probed),
            (report.matched for report in batch.probed),
            (report.matches for report in batch.probed),
        )
    )
    added: dict[StepName, Counts] = {}
    names = dict(named_steps(batch.plan))
    for step in (step for tree in batch.plan.trees for step in tree.steps()):
        if sent.get(step.edge):
            # A tuple that is sent to every partition is one tuple, and may match in several.
            target = batch.plan.store(step.member.store)
            tuples = sent[step.edge] // (1 if is_routed(target, step) else target.parallelism)
            counted: Counts = (tuples, min(matched.get(step.edge, 0), tuples), matches.get(step.edge, 0))
            added[names[step.edge]] = _sum(added.get(names[step.edge]), counted)
    for name, counts in sorted(added.items()):
        yield Count(kind="step", name=tuple(name), counts=counts)


def join_counts(batch: Batch) -> tuple[Count, ...]:
    """Return how often the predicates between two sources held, where they are what a probe path begins with.

    The predicates of one step are measured together: of several it cannot be told which one a pair failed.
    """
    sight, shares = _Sight(batch.stored, batch.arrived), _Shares(batch.after)
    plan, summed = batch.plan, dict[tuple[str, ...], Counts]()
    sent = _totals(report.probe_tuples for report in batch.probed)
    matched = _totals(report.matches for report in batch.probed)
    for tree in plan.trees:
        source = plan.store(tree.start.store).source
        for step in tree.children:
            target = plan.store(step.member.store)
            if source is None or target.source is None or not sent.get(step.edge):
                continue
            joined = _joined(plan.store(tree.start.store), target, step)
            if not joined:
                continue
            copies = 1 if is_routed(target, step) else target.parallelism
            rows = sight.rows(tree.start, step.member, plan.rank(step.member) < plan.rank(tree.start))
            rows *= shares.of(step.member.selection, target)
            sides = conjunction(
                ((source, mine), (target.source, theirs)) for mine, theirs in map(measured_name, joined)
            )
            pairs = round(sent[step.edge] / copies * rows)
            name = tuple(part for side in sides for part in side)
            summed[name] = _sum(summed.get(name), (pairs, matched.get(step.edge, 0)))
    return tuple(Count(kind="join", name=name, counts=counts) for name, counts in sorted(summed.items()))


def _sum(before: Counts | None, added: Counts) -> Counts:
    return added if before is None else tuple(one + other for one, other in zip(before, added, strict=True))


def _joined(start: Store, target: Store, step: Step) -> Joining:
    """Return what the first step of a path requires."""

    def key(place: Probed) -> KeyColumn:
        return (target if place.at is None else start).key(place.name)

    return in_order(joining(predicate, 0, key) for predicate in step.predicates)


def _totals(counts: Iterable[tuple[tuple[str, int], ...]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for edge, count in each:
            total[edge] = total.get(edge, 0) + count
    return total


@dataclass(slots=True)
class _Sight:
    """How many stored tuples an arriving one could have met, each pair of stores and windows looked at once."""

    stored: tuple[Bucket, ...]
    arrived: tuple[Bucket, ...]
    known: dict[tuple[object, ...], float] = field(default_factory=dict)
    spreads: dict[tuple[str, bool], _Spread] = field(default_factory=dict)

    def rows(self, start: Member, target: Member, ranks_lower: bool) -> float:
        """Return the rows of the target's store within reach, averaged over the starting tuples of the batch.

        Event times are taken to be spread evenly over a bucket, and over the batch.
        """
        asked = (start.store, start.window_us, target.store, target.window_us, ranks_lower)
        if asked not in self.known:
            self.known[asked] = self._rows(start, target, ranks_lower)
        return self.known[asked]

    def _rows(self, start: Member, target: Member, ranks_lower: bool) -> float:
        starting = [bucket for bucket in self.arrived if bucket.store == start.store and bucket.tau_min is not None]
        if not starting:
            return 0.0
        first, last = min(each.tau_min or 0 for each in starting), max(each.tau_max or 0 for each in starting)
        moments = [first + (last - first) * (place + 0.5) / _MOMENTS for place in range(_MOMENTS)]
        reaches = [(_bound(moment, target, -1), _bound(moment, start, 1)) for moment in moments]
        return self._visible(target.store, ranks_lower).within(reaches) / _MOMENTS

    def _visible(self, store: str, ranks_lower: bool) -> _Spread:
        """Return the buckets of a store that are in sight, together with those of the batch or without them."""
        if (store, ranks_lower) not in self.spreads:
            buckets = (*self.stored, *self.arrived) if ranks_lower else self.stored
            self.spreads[store, ranks_lower] = _Spread.of([bucket for bucket in buckets if bucket.store == store])
        return self.spreads[store, ranks_lower]


@dataclass(frozen=True, slots=True)
class _Spread:
    """Rows of buckets and their event times, as if they were spread evenly between the first and the last: hundreds of
    steps look at the same buckets, each by the windows of its query. Of buckets without event times all `timeless`
    rows are within any reach.
    """

    rows: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    timeless: int

    @classmethod
    def of(cls, buckets: Sequence[Bucket]) -> _Spread:
        timed = [(each.rows, each.tau_min, each.tau_max) for each in buckets if each.tau_min is not None]
        rows, first, last = np.array(timed, np.float64).reshape(-1, 3).T
        return cls(rows, first, last, sum(each.rows for each in buckets if each.tau_min is None))

    def within(self, reaches: Sequence[tuple[float, float]]) -> float:
        """Return the rows within each reach, in all."""
        low, high = (np.array(bounds)[:, None] for bounds in zip(*reaches, strict=True))
        low, high = np.maximum(low, self.first), np.minimum(high, self.last)
        span = self.last - self.first
        shares = np.where(span == 0, 1.0, (high - low) / np.where(span == 0, 1.0, span))
        return float((np.where(high < low, 0.0, shares) * self.rows).sum()) + self.timeless * len(reaches)


def _bound(moment: float, member: Member, sign: int) -> float:
    return sign * float("inf") if member.window_us is None else moment + sign * member.window_us


@dataclass(slots=True)
class _Shares:
    """What share of a store's tuples satisfies a selection, by what was counted of its source; each store is looked at
    once, whatever the number of steps that probe it.
    """

    after: Mapping[str, SourceProgress]
    known: dict[str, tuple[Mapping[str, int], int]] = field(default_factory=dict)

    def of(self, selection: Selection, store: Store) -> float:
        """Return the share."""
        if store.id not in self.known:
            progress = None if store.source is None else self.after.get(store.source)
            kept = {} if progress is None else dict(progress.kept)
            selected = {need.selection.sql for need in store.requirements}
            everything = min(sum(kept.get(sql, 0) for sql in selected), 0 if progress is None else progress.rows)
            self.known[store.id] = kept, everything
        kept_rows, everything = self.known[store.id]
        wanted = sum(kept_rows.get(each.sql, 0) for each in selection.alternatives)
        return min(wanted / everything, 1.0) if everything else 1.0


__all__ = ["Batch", "Counted", "batch_counts", "join_counts", "with_sample"]
