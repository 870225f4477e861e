"""What is kept of matches that were counted: rows that stand for several joined ones each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import assert_never

from plait.operators.probe.counted_matches import Met, Panes
from plait.operators.probe.selections import carries
from plait.operators.traversal.gatherer import Takers, fold_of
from plait.operators.traversal.partial_aggregates import WEIGHT, measured_name
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Fold, Partial


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

    def rows(self, met: Met) -> pa.RecordBatch | None:
        """Return what is kept of matches (`plait.operators.traversal.partial_aggregates.fold_counted`), None if they do
        not carry all that takes.

        Of the relations on the path a row has the columns of the joined row. Of the one that was counted it has those
        that all rows of a range have alike, keys and the pane, from the first of them, and what the others come to.
        """
        output, columns = self.outputs[0], self.takers[0].columns
        opened, at, positions = met.ranges.opened, dict(output.positions), met.partials.positions
        counted = output.aliases[-1]
        ours = [ref for ref in columns if ref.relation != counted]
        theirs = [ref for ref in columns if ref.relation == counted]
        if not all(positions[at[ref.relation]].has(ref.column) for ref in ours):
            return None
        if not all(carries(opened.bucket, ref.column) for ref in theirs):
            return None
        rows = {WEIGHT: pa.array(met.weights)}
        rows |= {ref.name: positions[at[ref.relation]].at(met.rows).column(ref.column) for ref in ours}
        alike = {ref.column: ref.name for ref in theirs if ref.name in self.how.keys or ref == self.takers[0].time}
        if alike:
            first = opened.take(met.ranges.first_rows(met.begins), list(alike))
            rows |= {name: first.column(column) for column, name in alike.items()}
        rows |= dict(_measured(met, self.how, columns, counted))
        return pa.RecordBatch.from_arrays(list(rows.values()), names=list(rows))


def _measured(met: Met, how: Fold, columns: tuple[ColumnRef, ...], counted: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield what the matches come to, for each partial aggregate of a column of the relation that was counted."""
    for partial in how.partials:
        if partial.of is not None and columns[partial.of].relation == counted:
            yield measured_name(partial), _come_to(met, partial, columns[partial.of].column)


def _come_to(met: Met, partial: Partial, name: str) -> pa.Array:
    ranges, begins, ends = met.ranges, met.begins, met.ends
    match partial.measured:
        case "rows":
            return pa.array(met.weights)
        case "known":
            return pa.array(ranges.counts(begins, ends, name))
        case "true":
            return pa.array(ranges.trues(begins, ends, name))
        case "sum":
            return ranges.sums(begins, ends, name)
        case "min":
            return ranges.extremes(begins, ends, name, largest=False)
        case "max":
            return ranges.extremes(begins, ends, name, largest=True)
        case _:
            assert_never(partial.measured)


__all__ = ["Counting"]
