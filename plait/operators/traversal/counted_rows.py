"""What is kept of matches that were counted: rows that stand for several joined ones each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import assert_never

from plait.kernels.compiled import Int64s
from plait.operators.probe.counted_matches import Met, Panes
from plait.operators.probe.exact_sums import Mask, limbs_of, scale_of, summed
from plait.operators.probe.ranges import Ranges, Spans
from plait.operators.probe.selections import carries
from plait.operators.traversal.gatherer import Takers, fold_of
from plait.operators.traversal.partial_aggregates import WEIGHT, measured_name
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Fold, Partial
from plait.state.gathered import microseconds

_MOST_AS_ONE: Final = 1 << 31
"""What so many rows come to is not added up here: their sums might leave 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Queries that keep the same of what a step counts (`outputs`, `takers`), as `how` says. `panes`: where those end
    that stored rows belong to; None if panes are those of another relation.
    """

    outputs: tuple[Output, ...]
    takers: Takers
    how: Fold
    panes: Panes

    @classmethod
    def of(cls, outputs: tuple[Output, ...], takers: Takers) -> Counting:
        """Return what these queries, which all keep partial aggregates, take of a step."""
        how = fold_of(takers)
        assert how is not None, "rows that are kept as they are cannot be counted"
        is_theirs = takers[0].time.relation == outputs[0].aliases[-1]
        return cls(outputs=outputs, takers=takers, how=how, panes=(how.pane_us, how.start_us) if is_theirs else None)

    @property
    def counted(self) -> str:
        """The relation whose matches are counted."""
        return self.outputs[0].aliases[-1]

    def rows(self, met: Met) -> pa.RecordBatch | None:
        """Return what is kept of matches (`plait.operators.traversal.partial_aggregates.fold_counted`), None if they do
        not carry all that takes.

        Of the relations on the path a row has the columns of the joined row. Of the one that was counted it has those
        that all rows of a range have alike, keys and the pane, from the first of them, and what the others come to.
        """
        output, columns = self.outputs[0], self.takers[0].columns
        opened, at, positions = met.ranges.opened, dict(output.positions), met.partials.positions
        counted = self.counted
        ours = [ref for ref in columns if ref.relation != counted]
        theirs = [ref for ref in columns if ref.relation == counted]
        if not all(positions[at[ref.relation]].has(ref.column) for ref in ours):
            return None
        if not all(carries(opened.bucket, ref.column) for ref in theirs):
            return None
        may_merge = self._may_merge(met)
        if may_merge and self.panes is not None:
            met = met.chosen(np.argsort(met.begins, kind="stable"))  # those of one key and pane side by side
        rows = {ref.name: positions[at[ref.relation]].at(met.rows).column(ref.column) for ref in ours}
        alike = {ref.column: ref.name for ref in theirs if ref.name in self.how.keys or ref == self.takers[0].time}
        if alike:
            first = opened.take(met.ranges.first_rows(met.begins), list(alike))
            rows |= {name: first.column(column) for column, name in alike.items()}
        spans = Spans(begins=met.begins, ends=met.ends, starts=self._starts(rows, len(met.rows)) if may_merge else None)
        rows[WEIGHT] = pa.array(met.weights)
        if spans.starts is not None:
            rows = self._merged(rows, met.weights, spans)
        rows |= {
            measured_name(each): _come_to(met.ranges, spans, each, ref.column)
            for each, ref in self.measured()
            if ref.relation == counted
        }
        return pa.RecordBatch.from_arrays(list(rows.values()), names=list(rows))

    def measured(self) -> Iterator[tuple[Partial, ColumnRef]]:
        """Yield the partial aggregates of columns, with these."""
        for partial in self.how.partials:
            if partial.of is not None:
                yield partial, self.takers[0].columns[partial.of]

    def _may_merge(self, met: Met) -> bool:
        """Tell whether rows that belong together may be added up at once: not values of other relations than the one
        that is counted are compared, and all sums stay within 64 bits.
        """
        counted = self.counted
        compared = (ref.relation for partial, ref in self.measured() if partial.measured in ("min", "max"))
        return all(relation == counted for relation in compared) and met.weights.sum() < _MOST_AS_ONE

    def _merged(self, rows: Mapping[str, pa.Array], weights: Int64s, spans: Spans) -> dict[str, pa.Array]:
        """Return the keys and the pane of rows that belong together, what they weigh, and what their own values come
        to, as often as they weigh.
        """
        kept = (*self.how.keys, self.takers[0].time.name)
        merged = {name: column.take(pa.array(spans.starts)) for name, column in rows.items() if name in kept}
        merged[WEIGHT] = pa.array(spans.added(weights))
        counted = self.counted
        for partial, ref in self.measured():
            if ref.relation != counted:
                merged[measured_name(partial)] = _weighed(rows[ref.name], weights, spans, partial)
        return merged

    def _starts(self, rows: Mapping[str, pa.Array], count: int) -> Int64s | None:
        """Return where rows begin that are of another pane or have other keys than the one before; None if all do.

        Rows come in the order of the keys that were looked up, and of τ mostly: one that is grouped by such a key comes
        beside many that are of its group, which are added up at once.
        """
        differs = np.zeros(count, np.bool_)
        differs[0] = True
        for name, column in rows.items():
            if name == self.takers[0].time.name:
                panes = (microseconds(column).to_numpy() - self.how.start_us) // self.how.pane_us
                differs[1:] |= panes[1:] != panes[:-1]
            elif name in self.how.keys:
                differs[1:] |= differing(column)
        starts = np.flatnonzero(differs)
        return None if len(starts) == len(differs) else starts


def differing(column: pa.Array) -> Mask:
    """Return which values differ from the one before, from the second on; NULLs are alike."""
    here, before = column[1:], column[:-1]
    differs = pc.fill_null(pc.not_equal(here, before), False).to_numpy(zero_copy_only=False)
    if column.null_count:
        differs = differs | pc.not_equal(here.is_null(), before.is_null()).to_numpy(zero_copy_only=False)
    return np.asarray(differs)


def _weighed(column: pa.Array, weights: Int64s, spans: Spans, partial: Partial) -> pa.Array:
    """Return what the values of rows come to, each as often as its row weighs."""
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    known = np.where(valid, weights, 0)
    if partial.measured == "known":
        return pa.array(spans.added(known))
    if partial.measured == "true":
        true = column.fill_null(False).to_numpy(zero_copy_only=False)
        return pa.array(spans.added(np.where(true, weights, 0)))
    assert partial.measured == "sum", f"{partial.measured} of single rows is no sum"
    there = spans.added(known) > 0
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return pa.array(spans.added(values * known), mask=~there)
    totals = [spans.added(limb * known) for limb in limbs_of(column)]
    return summed(totals, scale_of(column.type), there)


def _come_to(ranges: Ranges, spans: Spans, partial: Partial, name: str) -> pa.Array:
    match partial.measured:
        case "rows":
            return pa.array(ranges.counts(spans))
        case "known":
            return pa.array(ranges.counts(spans, name))
        case "true":
            return pa.array(ranges.trues(spans, name))
        case "sum":
            return ranges.sums(spans, name)
        case "min":
            return ranges.extremes(spans, name, largest=False)
        case "max":
            return ranges.extremes(spans, name, largest=True)
        case _:
            assert_never(partial.measured)


__all__ = ["Counting", "differing"]
