"""What is kept of matches that are only counted and added up exactly: sums by group, made while they are looked for.

A group is what shares a row of partial aggregates: keys and a pane. Where the pane is of the relation that is counted,
and so are all keys, groups stand side by side in its index. Where it is of the path, they do among the partial results
as they are sorted to look up; keys of the counted relation are alike then, because they are what is looked up by.
Otherwise, and where values are compared or have fractions, `plait.operators.traversal.counted_rows` goes range by
range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from plait.kernels.compiled import Int32s, Int64s
from plait.kernels.range_sums import Sums, sums_by_pane, sums_by_probe
from plait.operators.probe.exact_sums import Mask, limbs_of, summed
from plait.operators.probe.lookups import EqualKeys
from plait.operators.probe.partials import Partials, Position, Rows
from plait.operators.probe.ranges import Ranges
from plait.operators.probe.selections import carries
from plait.operators.traversal.counted_rows import Counting, differing
from plait.operators.traversal.partial_aggregates import WEIGHT, measured_name
from plait.query.model import ColumnRef
from plait.sinks.delivery import Partial
from plait.state.gathered import microseconds

_ADDED: Final = ("known", "true", "sum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adding:
    """How matches of partial results are added up, sorted as they look up. `ours`: of each partial aggregate of a
    column on the path, what each brings; `groups`: the group of each, and `firsts` where these begin; None: groups are
    those of the index.
    """

    counting: Counting
    partials: Partials
    keys: EqualKeys
    ours: dict[Partial, tuple[Int64s, ...]]
    groups: Int32s | None
    firsts: Int64s | None

    @classmethod
    def of(cls, counting: Counting, partials: Partials, keys: EqualKeys) -> Adding | None:
        """Return how that is done; None if it cannot be, or columns are lacking."""
        counted, ours = counting.counted, dict[Partial, tuple[Int64s, ...]]()
        on_path = [ref for ref in counting.takers[0].columns if ref.relation != counted]
        if not all(position_of(counting, partials, ref).has(ref.column) for ref in on_path):
            return None
        by_pane = counting.panes is not None
        own_keys = [ref for ref in on_path if ref.name in counting.how.keys]
        if by_pane and own_keys:
            return None
        for partial, ref in counting.measured():
            if partial.measured not in _ADDED or partial.type == "DOUBLE":
                return None
            if ref.relation != counted:
                ours[partial] = _brought(_sorted(counting, partials, keys, ref), partial)
        if by_pane:
            return cls(counting=counting, partials=partials, keys=keys, ours=ours, groups=None, firsts=None)
        begins = np.ones(len(keys.key), np.bool_)
        begins[1:] = keys.key[1:] != keys.key[:-1]
        for ref in own_keys:
            begins[1:] |= differing(_sorted(counting, partials, keys, ref))
        time, how = counting.takers[0].time, counting.how
        panes = (microseconds(_sorted(counting, partials, keys, time)).to_numpy() - how.start_us) // how.pane_us
        begins[1:] |= panes[1:] != panes[:-1]
        return cls(
            counting=counting,
            partials=partials,
            keys=keys,
            ours=ours,
            groups=np.cumsum(begins, dtype=np.int32) - np.int32(1),
            firsts=np.flatnonzero(begins),
        )

    def sums(self, ranges: Ranges) -> Iterator[tuple[Sums, pa.RecordBatch | None]]:
        """Yield sums of the matches in a bucket, and what is kept of them; None if the bucket lacks a column of that,
        or there are none.
        """
        theirs = {
            partial: _come_before(ranges, partial, ref.column)
            for partial, ref in self.counting.measured()
            if ref.relation == self.counting.counted and carries(ranges.opened.bucket, ref.column)
        }
        lacks = any(
            not carries(ranges.opened.bucket, ref.column)
            for ref in self.counting.takers[0].columns
            if ref.relation == self.counting.counted
        )
        brought, come = _as_rows(self.ours, len(self.keys.key)), _as_rows(theirs, len(ranges.index.key) + 1)
        for sums in self._looked_up(ranges, brought, come):
            found = np.flatnonzero(sums.counts)
            yield sums, None if lacks or not len(found) else self._rows(ranges, sums, found, theirs)

    def matched(self, sums: Sums) -> Rows | Mask:
        """Return the partial results that have met anything."""
        found: Mask = sums.matched != 0
        return found if self.keys.rows is None else self.keys.rows[found]

    def _looked_up(self, ranges: Ranges, ours: Int64s, theirs: Int64s) -> Iterator[Sums]:
        looked = self.keys.looked_up(ranges.index)
        if self.groups is not None:
            yield from sums_by_probe(looked, self.groups, ranges.before(), ours, theirs)
        else:
            yield from sums_by_pane(looked, *self._panes(ranges), ranges.before(), ours, theirs)

    def _panes(self, ranges: Ranges) -> tuple[Int32s, Int32s]:
        assert self.counting.panes is not None, "groups of the index are by its panes"
        return ranges.panes(*self.counting.panes)

    def _rows(
        self, ranges: Ranges, sums: Sums, found: Int64s, theirs: dict[Partial, tuple[Int64s, ...]]
    ) -> pa.RecordBatch:
        """Return a row for each group that has matches."""
        rows = self._alike(ranges, found)
        rows[WEIGHT] = pa.array(sums.counts[found])
        for made, totals in ((self.ours, sums.ours), (theirs, sums.theirs)):
            at = 0
            for partial, columns in made.items():
                own = [total[found] for total in totals[at : at + len(columns)]]
                rows[measured_name(partial)] = self._total(partial, own)
                at += len(columns)
        return pa.RecordBatch.from_arrays(list(rows.values()), names=list(rows))

    def _alike(self, ranges: Ranges, found: Int64s) -> dict[str, pa.Array]:
        """Return the keys and the event time of groups."""
        kept = (*self.counting.how.keys, self.counting.takers[0].time.name)
        refs = [ref for ref in self.counting.takers[0].columns if ref.name in kept]
        ours = [ref for ref in refs if ref.relation != self.counting.counted]
        theirs = {ref.column: ref.name for ref in refs if ref.relation == self.counting.counted}
        rows = dict[str, pa.Array]()
        if self.firsts is None:
            begins = self._panes(ranges)[1][found]
        else:
            first = self.firsts[found]
            at = first if self.keys.rows is None else self.keys.rows[first]
            for ref in ours:
                position = position_of(self.counting, self.partials, ref)
                rows[ref.name] = position.at(at.astype(np.int32)).column(ref.column)
            begins = np.searchsorted(ranges.index.key, self.keys.key[first]).astype(np.int32)
        if theirs:
            taken = ranges.opened.take(ranges.first_rows(begins), list(theirs))
            rows |= {name: taken.column(column) for column, name in theirs.items()}
        return rows

    def _total(self, partial: Partial, totals: list[Int64s]) -> pa.Array:
        if partial.measured != "sum":
            return pa.array(totals[0])
        *limbs, known = totals
        return summed(limbs, self._scale(partial), known > 0)

    def _scale(self, partial: Partial) -> int:
        """Return how many digits behind the point a sum has: as many as what it is kept as."""
        digits = (partial.type or "").rpartition(",")[2].strip(" )")
        return int(digits)


def position_of(counting: Counting, partials: Partials, ref: ColumnRef) -> Position:
    """Return the position of the path that has a column."""
    return partials.positions[dict(counting.outputs[0].positions)[ref.relation]]


def _sorted(counting: Counting, partials: Partials, keys: EqualKeys, ref: ColumnRef) -> pa.Array:
    """Return a column of the path in the order of look-up."""
    position = position_of(counting, partials, ref)
    return (position if keys.rows is None else position.at(keys.rows)).column(ref.column)


def _brought(column: pa.Array, partial: Partial) -> tuple[Int64s, ...]:
    """Return what single rows come to: limbs of a sum, and last whether they are known."""
    known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    if partial.measured == "true":
        return (np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64),)
    if partial.measured == "known":
        return (known.astype(np.int64),)
    return (*(np.where(known, limb, 0) for limb in limbs_of(column)), known.astype(np.int64))


def _come_before(ranges: Ranges, partial: Partial, name: str) -> tuple[Int64s, ...]:
    """Return the same of rows of an index, added up before each position."""
    if partial.measured == "true":
        return (ranges.before(name, trues=True),)
    if partial.measured == "known":
        return (ranges.before(name),)
    return (*ranges.limbs(name), ranges.before(name))


def _as_rows(columns: dict[Partial, tuple[Int64s, ...]], length: int) -> Int64s:
    every = [column for each in columns.values() for column in each]
    return np.array(every, np.int64).reshape(len(every), length)


__all__ = ["Adding", "position_of"]
