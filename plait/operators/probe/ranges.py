"""What ranges of an index come to, without going through their rows: how many there are, and sums, smallest and largest
values of a column.

Of an index and a selection all that is asked for is made ready once, in time for all its rows, and kept with the index
for as long as the bucket is open: prefix sums of whole numbers and decimals, trees of doubles and of what is compared.
A range then takes a logarithm at most, however many rows it has. A row that the selection does not hold for counts as
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.kernels.bands import Float64s, doubles_of, ordered_int64
from plait.kernels.compiled import Int32s, Int64s
from plait.kernels.range_trees import LARGEST, least_in, least_tree, sum_tree, sums_in
from plait.operators.probe.exact_sums import Mask, prefix_limbs, scale_of, summed
from plait.operators.probe.partials import Rows
from plait.operators.probe.selections import selection_words
from plait.plan.model import Member
from plait.state.buckets import OpenBucket
from plait.state.indexes import Index

_T = TypeVar("_T")
_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Ranges [begin, end) of positions of an index. `starts`: those from one start to the next are asked about as one
    (int64[n], ascending, the first is 0); None: each by itself. As one they have less than 2³¹ rows.
    """

    begins: Rows
    ends: Rows
    starts: Int64s | None = None

    def counted(self, before: Int32s | None) -> Int64s:
        """Return how many rows count, `before` each position; None: all do."""
        counts = self.ends - self.begins if before is None else before[self.ends] - before[self.begins]
        return self.added(counts.astype(np.int64))

    def added(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Return the sums of a value of each range."""
        if self.starts is None:
            return values
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(values, self.starts)

    def least(self, values: Int64s) -> Int64s:
        """Return the smallest of a value of each range."""
        return values if self.starts is None else np.minimum.reduceat(values, self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """What ranges of an index of an open bucket come to, of the rows that a member's selection holds for."""

    opened: OpenBucket
    index: Index
    member: Member

    @classmethod
    def of(cls, opened: OpenBucket, keys: tuple[str, ...], member: Member) -> Ranges:
        """Return the ranges of the index by `keys`, of the rows that the member's selection holds for."""
        return cls(opened=opened, index=opened.index(keys), member=member)

    def counts(self, spans: Spans, name: str | None = None) -> Int64s:
        """Return how many rows each has; with a `name` those that are not NULL there."""
        return spans.counted(self._ready("count", name or "", lambda: _before(self._counted(name))))

    def trues(self, spans: Spans, name: str) -> Int64s:
        """Return for how many rows of each a column is true."""
        return spans.counted(self._ready("true", name, lambda: _before(self._true(name))))

    def sums(self, spans: Spans, name: str) -> pa.Array:
        """Return the sums of a column: decimals of 38 digits, doubles of fractional numbers; NULL of nothing."""
        there = self.counts(spans, name) > 0
        type_ = self.opened.batch.schema.field(name).type
        if pa.types.is_floating(type_):
            tree = self._ready("doubles", name, lambda: sum_tree(self._doubles(name)))
            return pa.array(spans.added(sums_in(tree, spans.begins, spans.ends)), mask=~there)
        totals = [spans.added(limb[spans.ends] - limb[spans.begins]) for limb in self.limbs(name)]
        return summed(totals, scale_of(type_), there)

    def extremes(self, spans: Spans, name: str, *, largest: bool) -> pa.Array:
        """Return the smallest, or the largest, value of a column; NULL of nothing. NaN is larger than any number."""
        what = "largest" if largest else "least"
        tree, values = self._ready(what, name, lambda: self._comparable(name, largest=largest))
        found, there = spans.least(least_in(tree, spans.begins, spans.ends)), self.counts(spans, name) > 0
        found = np.where(there, ~found if largest else found, 0)
        if values is not None:
            return values.take(pa.array(found, mask=~there))
        return _typed(found, ~there, self.opened.batch.schema.field(name).type)

    def before(self, name: str | None = None, *, trues: bool = False) -> Int64s:
        """Return how many rows count before each position and after the last; with a `name` those that are not NULL
        there, or are true.
        """
        what = "true" if trues else "count"
        found = self._ready(what, name or "", lambda: _before(self._true(name or "") if trues else self._counted(name)))
        size = len(self.index.key) + 1
        return self._ready(
            f"{what} before", name or "", lambda: np.arange(size) if found is None else found.astype(np.int64)
        )

    def limbs(self, name: str) -> tuple[Int64s, ...]:
        """Return of each limb of whole numbers or decimals what comes before each position and after the last."""
        return self._ready("limbs", name, lambda: prefix_limbs(self._column(name), self._counted(name)))

    def panes(self, length_us: int, start_us: int) -> tuple[Int32s, Int32s]:
        """Return to which run of rows with one key and in one pane each position belongs, and where these begin and
        end.
        """

        def make() -> tuple[Int32s, Int32s]:
            assert self.index.tau is not None, "tables have no panes"
            key, pane = self.index.key, (self.index.tau - start_us) // length_us
            begins = np.ones(len(key), np.bool_)
            begins[1:] = (key[1:] != key[:-1]) | (pane[1:] != pane[:-1])
            ends = np.append(np.flatnonzero(begins), len(key)).astype(np.int32)
            return np.cumsum(begins, dtype=np.int32) - np.int32(1), ends

        return self._ready("panes", f"{length_us} {start_us}", make)

    def first_rows(self, begins: Rows) -> Rows:
        """Return the row of the bucket with which each begins."""
        return begins if self.index.row is None else self.index.row[begins]

    def places(self, rows: Rows) -> Rows:
        """Return the positions of rows in the index."""
        if self.index.row is None:
            return rows
        return self._ready("places", "", self._places)[rows]

    def is_uniform(self, keys: Iterable[str], values: Iterable[str]) -> bool:
        """Tell whether rows of equal keys in the index have equal values behind them, so that the first row of a range
        speaks for all: they have, but for hashes that collide. `keys`: int64 columns.
        """
        columns = (*keys, *values)
        return self._ready("uniform", "\n".join(columns), lambda: all(map(self._is_uniform, columns)))

    def _is_uniform(self, name: str) -> bool:
        column = self._column(name)
        differs = pc.fill_null(pc.not_equal(column[1:], column[:-1]), True).to_numpy(zero_copy_only=False)
        return not bool((differs & (self.index.key[1:] == self.index.key[:-1])).any())

    def _ready(self, what: str, name: str, make: Callable[[], _T]) -> _T:
        """Return what was made ready for a column, once for each selection."""
        place, known = (what, name, self.member.selection.sql), self.index.derived
        if place not in known:
            known[place] = make()
        found: _T = known[place]
        return found

    def _column(self, name: str) -> pa.Array:
        """Return a column in the order of the index."""
        if self.index.row is None:
            return self.opened.batch.column(name).slice(0, len(self.index.key))
        return self.opened.take(self.index.row, (name,)).column(0)

    def _selected(self) -> Mask | None:
        bits, mask = selection_words(self.opened, self.member)
        if bits is None:
            return None
        rows = slice(0, len(self.index.key)) if self.index.row is None else self.index.row
        return np.asarray((bits[rows] & mask) != 0)

    def _counted(self, name: str | None) -> Mask | None:
        """Return which rows count, None: all. With a name those do not that are NULL there."""
        selected = self._selected()
        column = None if name is None else self._column(name)
        if column is None or not column.null_count:
            return selected
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        return valid if selected is None else selected & valid

    def _true(self, name: str) -> Mask:
        true = np.asarray(self._column(name).fill_null(False).to_numpy(zero_copy_only=False))
        selected = self._selected()
        return true if selected is None else true & selected

    def _doubles(self, name: str) -> Float64s:
        values = np.asarray(self._column(name).cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
        counted = self._counted(name)
        return values if counted is None else np.where(counted, values, 0.0)

    def _comparable(self, name: str, *, largest: bool) -> tuple[Int64s, pa.Array | None]:
        """Return the tree of a column's values as numbers of the same order, or the opposite one for the largest. What
        is no number is its place among the values, which then come with it, in order.
        """
        column, values = self._column(name), None
        numbers = _ordered(column)
        if numbers is None:
            order = pc.sort_indices(column)
            values = column.take(order)
            numbers = np.empty(len(column), np.int64)
            numbers[order.to_numpy()] = np.arange(len(column))
        if largest:
            numbers = ~numbers
        counted = self._counted(name)
        return least_tree(numbers if counted is None else np.where(counted, numbers, LARGEST)), values

    def _places(self) -> Rows:
        places = np.zeros(self.opened.bucket.rows, np.int32)
        places[self.index.row] = np.arange(len(self.index.key), dtype=np.int32)
        return places


def _before(counted: Mask | None) -> Int32s | None:
    """Return how many rows count before each position and after the last, None: all do."""
    if counted is None:
        return None
    return np.concatenate((np.zeros(1, np.int32), np.cumsum(counted, dtype=np.int32)))


def _ordered(column: pa.Array) -> Int64s | None:
    """Return values as int64 of the same order, None for types that have none."""
    type_ = column.type
    if pa.types.is_floating(type_):
        return ordered_int64(column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    if pa.types.is_date32(type_):
        column = column.cast(pa.int32())
    elif not (pa.types.is_integer(type_) or pa.types.is_timestamp(type_)):
        return None
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))


def _typed(numbers: Int64s, missing: Mask, type_: pa.DataType) -> pa.Array:
    """Return what `_ordered` made numbers of."""
    if pa.types.is_floating(type_):
        return pa.array(doubles_of(numbers), mask=missing).cast(type_, safe=False)
    if pa.types.is_date32(type_):
        return pa.array(numbers.astype(np.int32), mask=missing).cast(type_)
    return pa.array(numbers, mask=missing).cast(type_)


__all__ = ["Ranges", "Spans"]
