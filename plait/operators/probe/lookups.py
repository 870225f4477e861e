"""Find the stored rows a step may join: by equal keys, by keys within bounds, by a residual predicate, or all.

What a lookup yields satisfies the step's selection and windows, and the condition it looks up by. Whatever else the
step requires is tested pair by pair (`plait.operators.probe.verifying`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from plait.kernels.bands import iter_bands
from plait.kernels.hashing import combine
from plait.kernels.matching import Looked, iter_cross, iter_matches, iter_ranges
from plait.kernels.ordering import sort_order
from plait.operators.column_names import TAU
from plait.operators.probe.partials import Int64s, Partials, Rows, minus_window
from plait.operators.probe.residuals import pairs_that_hold
from plait.operators.probe.selections import selection_words
from plait.operators.probe.verifying import band_bounds, first_evaluated
from plait.plan.model import Member, Probed, Step
from plait.query.predicates import Band, Equality, Residual, by_kind
from plait.state.buckets import OpenBucket
from plait.state.indexes import Index
from plait.state.model import Bucket

Equalities: TypeAlias = tuple[Equality[Probed], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The probing side of a step: rows of the partials that have all keys, with the combined key of each."""

    rows: Rows | None
    combined: Int64s
    parts: tuple[Int64s, ...]


def probe_keys(partials: Partials, equalities: Equalities) -> Keys:
    """Gather the probing keys; a partial with a NULL key matches nothing and is left out."""
    parts: list[Int64s] = []
    valid = None
    for equality in equalities:
        values, there = partials.of(equality.left)
        parts.append(values)
        if there is not None:
            valid = there if valid is None else valid & there
    if valid is None:
        return Keys(rows=None, combined=combine(parts), parts=tuple(parts))
    rows = np.flatnonzero(valid).astype(np.int32)
    kept = tuple(part[rows] for part in parts)
    return Keys(rows=rows, combined=combine(kept), parts=kept)


def indexed(equalities: Equalities) -> Equalities:
    """Return one equality per stored key in index order; the others are verified after the index matched."""
    first: dict[str, Equality[Probed]] = {}
    for equality in equalities:
        first.setdefault(equality.right.name, equality)
    return tuple(first[name] for name in sorted(first))


class Lookup(Protocol):
    """A way to find stored rows, made for the partials of one step."""

    def misses(self, bucket: Bucket) -> bool:
        """Tell whether nothing in the bucket can be found."""

    def pairs(self, opened: OpenBucket, member: Member, capacity: int) -> Iterator[tuple[Rows, Rows]]:
        """Yield (partial, stored row) pairs in pieces of about `capacity`."""


def lookup_of(partials: Partials, step: Step, *, timed: bool) -> Lookup:
    """Return how this step finds stored rows. `timed`: the store has τ."""
    bounds, kinds = _TimeBounds.of(partials, step, timed=timed), by_kind(step.predicates)
    if kinds.equalities:
        return EqualKeys.of(partials, kinds.equalities, bounds)
    if kinds.bands:
        return _KeysWithin.of(partials, kinds.bands[0], bounds)
    first = first_evaluated(kinds.residuals)
    if first is not None:
        return _Evaluated(partials=partials, residual=first, bounds=bounds)
    return _Everything(count=partials.count, bounds=bounds)


def equal_keys(partials: Partials, step: Step, *, timed: bool) -> EqualKeys:
    """Return how a step that looks up equal keys finds stored rows; `timed` as of `lookup_of`."""
    bounds = _TimeBounds.of(partials, step, timed=timed)
    return EqualKeys.of(partials, by_kind(step.predicates).equalities, bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimeBounds:
    """The τ each probe may find, [low, high]; None: any."""

    low: Int64s | None
    high: Int64s | None

    @classmethod
    def of(cls, partials: Partials, step: Step, *, timed: bool) -> _TimeBounds:
        if not timed:
            return cls(low=None, high=None)
        return cls(low=minus_window(partials.newest, step.member.window_us), high=partials.high)

    def at(self, rows: Rows | None) -> _TimeBounds:
        if rows is None:
            return self
        return _TimeBounds(
            low=None if self.low is None else self.low[rows], high=None if self.high is None else self.high[rows]
        )

    def miss(self, bucket: Bucket) -> bool:
        """Tell whether no stored τ of the bucket can lie in any probe's bounds."""
        if bucket.tau_min is None or bucket.tau_max is None or self.high is None:
            return False
        return bool(self.high.max() < bucket.tau_min) or (
            self.low is not None and bool(self.low.min() > bucket.tau_max)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualKeys:
    """The probing side, sorted by key: what the matching kernel reads. `rows` maps back to the partials."""

    index: tuple[str, ...]
    key: Int64s
    rows: Rows | None
    bounds: _TimeBounds

    @classmethod
    def of(cls, partials: Partials, equalities: Equalities, bounds: _TimeBounds) -> EqualKeys:
        """Sort the partials by their keys, unless they are for a step before."""
        chosen = indexed(equalities)
        read = tuple((equality.left.at, equality.left.name) for equality in chosen)
        known = partials.sorted_by.get(read)
        if known is None:
            known = partials.sorted_by[read] = _sorted_keys(probe_keys(partials, chosen))
        key, rows = known
        return cls(index=tuple(equality.right.name for equality in chosen), key=key, rows=rows, bounds=bounds.at(rows))

    def misses(self, bucket: Bucket) -> bool:
        """Tell whether nothing in the bucket can be found."""
        return len(self.key) == 0 or self.bounds.miss(bucket)

    def pairs(self, opened: OpenBucket, member: Member, capacity: int) -> Iterator[tuple[Rows, Rows]]:
        """Yield (partial, stored row) pairs in pieces of about `capacity`."""
        entries = opened.index(self.index)
        bits, mask = selection_words(opened, member)
        looked = self.looked_up(entries)._asdict()
        for probes, stored in iter_matches(**looked, index_row=entries.row, bits=bits, mask=mask, capacity=capacity):
            yield (probes if self.rows is None else self.rows[probes]), stored

    def ranges(
        self, opened: OpenBucket, panes: tuple[int, int] | None, capacity: int
    ) -> Iterator[tuple[Rows, Rows, Rows]]:
        """Yield (partial, begin, end), where the stored rows with its keys and within its bounds are those at the
        positions [begin, end) of the index, in pieces of at most `capacity`; selections are not heeded. `panes`, their
        length and where one begins: no range reaches over the bound of one.
        """
        looked = self.looked_up(opened.index(self.index))._asdict()
        for probes, begins, ends in iter_ranges(**looked, panes=panes, capacity=capacity):
            yield (probes if self.rows is None else self.rows[probes]), begins, ends

    def looked_up(self, entries: Index) -> Looked:
        """Return what is looked for in an index. Without event times there are no bounds to heed."""
        is_timed = entries.tau is not None
        return Looked(
            probe_key=self.key,
            probe_low=self.bounds.low if is_timed else None,
            probe_high=self.bounds.high if is_timed else None,
            index_key=entries.key,
            index_tau=entries.tau,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeysWithin:
    """The probing side of a bounded difference: the smallest and largest key each probe may find."""

    index: tuple[str, ...]
    smallest: Int64s
    largest: Int64s
    bounds: _TimeBounds

    @classmethod
    def of(cls, partials: Partials, band: Band[Probed], bounds: _TimeBounds) -> _KeysWithin:
        smallest, largest = band_bounds(partials, band)
        return cls(index=(band.right.name,), smallest=smallest, largest=largest, bounds=bounds)

    def misses(self, bucket: Bucket) -> bool:
        return len(self.smallest) == 0 or self.bounds.miss(bucket)

    def pairs(self, opened: OpenBucket, member: Member, capacity: int) -> Iterator[tuple[Rows, Rows]]:
        entries = opened.index(self.index)
        bits, mask = selection_words(opened, member)
        yield from iter_bands(
            probe_from=self.smallest,
            probe_to=self.largest,
            probe_low=self.bounds.low,
            probe_high=self.bounds.high,
            index_key=entries.key,
            index_tau=entries.tau,
            index_row=entries.row,
            bits=bits,
            mask=mask,
            capacity=capacity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """Block against block: DuckDB joins the probes with the bucket's rows on the predicate and the windows."""

    partials: Partials
    residual: Residual[Probed]
    bounds: _TimeBounds

    def misses(self, bucket: Bucket) -> bool:
        return self.partials.count == 0 or self.bounds.miss(bucket)

    def pairs(self, opened: OpenBucket, member: Member, capacity: int) -> Iterator[tuple[Rows, Rows]]:
        bits, mask = selection_words(opened, member)
        rows = opened.bucket.rows
        everything = np.arange(rows, dtype=np.int32)
        chosen = everything if bits is None else everything[(bits & mask) != 0]
        ours: dict[int, pa.Array] = {}
        theirs: dict[int, pa.Array] = {}
        for number, place in enumerate(self.residual.operands):
            if place.at is not None:
                ours[number] = self.partials.positions[place.at].column(place.name)
            elif len(chosen) == rows:
                theirs[number] = opened.batch.column(place.name)
            else:
                theirs[number] = opened.take(chosen, (place.name,)).column(0)
        yield from pairs_that_hold(
            self.residual,
            ours,
            theirs,
            low=self.bounds.low,
            high=self.bounds.high,
            tau=opened.int64(TAU)[chosen] if opened.bucket.layout.has_tau else None,
            chosen=chosen,
            capacity=capacity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Everything:
    """The cross join: every stored row within the windows."""

    count: int
    bounds: _TimeBounds

    def misses(self, bucket: Bucket) -> bool:
        return self.count == 0 or self.bounds.miss(bucket)

    def pairs(self, opened: OpenBucket, member: Member, capacity: int) -> Iterator[tuple[Rows, Rows]]:
        bits, mask = selection_words(opened, member)
        yield from iter_cross(
            probe_low=self.bounds.low,
            probe_high=self.bounds.high,
            probe_count=self.count,
            tau=opened.int64(TAU) if opened.bucket.layout.has_tau else None,
            row_count=opened.bucket.rows,
            bits=bits,
            mask=mask,
            capacity=capacity,
        )


def _sorted_keys(keys: Keys) -> tuple[Int64s, Rows | None]:
    """Return ascending keys, and the partials that have them."""
    if _is_ascending(keys.combined):
        return keys.combined, keys.rows
    order = sort_order(keys.combined, None)
    return keys.combined[order], order if keys.rows is None else keys.rows[order]


def _is_ascending(key: Int64s) -> bool:
    return len(key) < 2 or bool(np.all(key[1:] >= key[:-1]))
