"""Let partial results meet the stored rows of a store in ranges, where nobody asks for pairs (`Output.counts`).

What a range holds is exactly what `plait.operators.probe.probing` would pair its partial result with: the bounds of τ
are closed intervals, and the rows of a key stand in order of τ, so matches lie side by side. Values behind hashes are
compared once for a range, as all rows of it have the same; where a bucket holds hashes that collide, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from plait.kernels.compiled import Int64s
from plait.operators.probe.exact_sums import Mask
from plait.operators.probe.lookups import EqualKeys, equal_keys
from plait.operators.probe.partials import Partials, Rows
from plait.operators.probe.probing import Matched, ProbeContext, serving_rows, visible_buckets
from plait.operators.probe.ranges import Ranges, Spans
from plait.operators.probe.selections import answers
from plait.operators.probe.verifying import Verifier
from plait.plan.model import ProbeTree, Step
from plait.state.buckets import OpenBucket

Panes: TypeAlias = tuple[int, int] | None
"""The length of panes and where one begins, where the stored rows say which pane a result belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Partial result ``rows[i]`` has met ``weights[i]`` stored rows, at least one: those of [begin, end) of `ranges`
    that are selected.
    """

    partials: Partials
    rows: Rows
    ranges: Ranges
    begins: Rows
    ends: Rows
    weights: Int64s

    def chosen(self, taken: Mask | Int64s) -> Met:
        """Return these of them, in this order."""
        return replace(
            self, rows=self.rows[taken], begins=self.begins[taken], ends=self.ends[taken], weights=self.weights[taken]
        )


def count_partition(
    partials: Partials,
    step: Step,
    tree: ProbeTree,
    partition: int | None,
    context: ProbeContext,
    panes: Panes,
    matched: Matched,
    layers: int = 1,
) -> Iterator[Met]:
    """Yield what partial results meet in one partition, or in all at once, bucket by bucket; note in `matched` which
    have met any. `layers` as of `visible_buckets`.
    """
    keys, verifier = looking_up(partials, step, context)
    for ranges, serving in ranges_of(keys, verifier, step, tree, partition, context, layers):
        for rows, begins, ends in _found(keys, verifier, ranges, panes, context.capacity, serving):
            weights = ranges.counts(Spans(begins=begins, ends=ends))
            met = Met(partials=partials, rows=rows, ranges=ranges, begins=begins, ends=ends, weights=weights)
            if not weights.all():
                met = met.chosen(weights > 0)
            if len(met.rows):
                matched.rows[met.rows] = True
                yield met


def looking_up(partials: Partials, step: Step, context: ProbeContext) -> tuple[EqualKeys, Verifier]:
    """Return how partial results look up what they meet, and what that leaves over to be compared."""
    store = context.plan.store(step.member.store)
    return equal_keys(partials, step, timed=not store.is_table), Verifier.of(partials, step, store, context.predicates)


def ranges_of(
    keys: EqualKeys,
    verifier: Verifier,
    step: Step,
    tree: ProbeTree,
    partition: int | None,
    context: ProbeContext,
    layers: int = 1,
) -> Iterator[tuple[Ranges, int]]:
    """Yield the buckets of one partition, or of all, that may have what is looked up, each with what its rows must
    serve; a bucket is let go of after that.
    """
    needed = verifier.columns()
    for bucket, serving in visible_buckets(context, tree.start, step, partition, layers):
        if answers(bucket, step.member, needed) and not keys.misses(bucket):
            opened = context.open(bucket)
            yield Ranges.of(opened, keys.index, step.member), serving
            opened.release()


def _found(
    keys: EqualKeys, verifier: Verifier, ranges: Ranges, panes: Panes, capacity: int, serving: int
) -> Iterator[tuple[Rows, Rows, Rows]]:
    opened = ranges.opened
    if serving:
        yield from _one_by_one(keys, verifier, ranges, opened, capacity, serving)
    elif not verifier.equalities:
        yield from keys.ranges(opened, panes, capacity)
    elif ranges.is_uniform(*verifier.compared()):
        for rows, begins, ends in keys.ranges(opened, panes, capacity):
            equal = verifier.are_equal(opened, rows, ranges.first_rows(begins))
            yield rows[equal], begins[equal], ends[equal]
    else:
        yield from _one_by_one(keys, verifier, ranges, opened, capacity, serving)


def _one_by_one(
    keys: EqualKeys, verifier: Verifier, ranges: Ranges, opened: OpenBucket, capacity: int, serving: int
) -> Iterator[tuple[Rows, Rows, Rows]]:
    for rows, stored in keys.pairs(opened, ranges.member, capacity):
        rows, stored = serving_rows(opened, serving, *verifier.kept(opened, rows, stored))
        begins = ranges.places(stored)
        yield rows, begins, begins + 1


__all__ = ["Met", "Panes", "count_partition", "looking_up", "ranges_of"]
