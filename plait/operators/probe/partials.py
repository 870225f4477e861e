"""Partial results on a probe path, materialized late.

A partial result has one member per position of the path. Instead of copying every member's columns at each step, a
position refers to a block of rows (a bucket, or what one step gathered) by row number; a step only composes row
numbers. Columns are gathered where they are needed: for the next key, for a shuffle, for the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.column_names import ROW
from plait.plan.columns import TAU
from plait.plan.model import Output, Probed, part_column

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

NO_LOW, NO_HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The members at one position: row ``index[i]`` of `block` for partial i, or row i if `index` is None."""

    block: pa.RecordBatch
    index: Rows | None = None

    def column(self, name: str) -> pa.Array:
        """Gather one column, one value a partial."""
        column = self.block.column(name)
        return column if self.index is None else column.take(pa.array(self.index))

    def columns(self, names: Sequence[str]) -> list[pa.Array]:
        """Gather several columns at once: each call of Arrow takes as long as to gather hundreds of values."""
        chosen = self.block.select(list(names))
        return list((chosen if self.index is None else chosen.take(pa.array(self.index))).columns)

    def has(self, name: str) -> bool:
        """Tell whether the members' bucket carries this column: one written for earlier queries may not."""
        return bool(self.block.schema.get_field_index(name) >= 0)

    def int64(self, name: str) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
        """Gather an int64 column as (values, validity); validity None without NULLs."""
        column, valid = self.block.column(name), self.validity(name)
        values = (column if valid is None else column.fill_null(0)).to_numpy(zero_copy_only=True)
        return values if self.index is None else values[self.index], valid

    def validity(self, name: str) -> npt.NDArray[np.bool_] | None:
        """Gather which values of a column are not NULL; None if all are."""
        valid = validity_of(self.block.column(name))
        return valid if valid is None or self.index is None else valid[self.index]

    def at(self, rows: Rows) -> Position:
        """Return the position for the partials `rows`."""
        return Position(block=self.block, index=rows if self.index is None else self.index[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Partials:
    """`count` partial results. A further member's τ must lie in ``[low[i], high[i]]`` as far as the members so far say:

    `newest` is the largest τ among the members, so a member of window W needs τ >= newest − W; `high` is the smallest
    τ + W among them, beyond which a new member would push one of them out of its window. `sorted_by`: the partials by
    keys that they have probed with, (position, name) each, for the next step that does.
    """

    count: int
    positions: tuple[Position, ...]
    newest: Int64s
    high: Int64s
    sorted_by: dict[tuple[tuple[int | None, str], ...], tuple[Int64s, Rows | None]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, place: Probed) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
        """Gather the int64 key that a predicate reads of the path, as `Position.int64`."""
        assert place.at is not None, f"{place} is of the probed store"
        return self.positions[place.at].int64(place.name)

    def supply(self, columns: Iterable[tuple[int, str]]) -> bool:
        """Tell whether all these (position, column) pairs are there, which is the same for all partials of a piece."""
        return all(self.positions[position].has(name) for position, name in columns)

    def at(self, rows: Rows) -> Partials:
        """Return the partials with these row numbers."""
        return Partials(
            count=len(rows),
            positions=tuple(position.at(rows) for position in self.positions),
            newest=self.newest[rows],
            high=self.high[rows],
        )

    def slice(self, start: int, stop: int) -> Partials:
        """Return a contiguous piece."""
        if start == 0 and stop >= self.count:
            return self
        return self.at(np.arange(start, min(stop, self.count), dtype=np.int32))


def validity_of(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values are not NULL; None if all are."""
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False)) if column.null_count else None


def filtered(partials: Partials, output: Output) -> Partials:
    """Return the partials that the query of `output` takes, out of those it shares with others."""
    if not output.residual_filters:
        return partials
    taken = np.ones(partials.count, np.bool_)
    for residual in output.residual_filters:
        position = partials.positions[residual.position]
        if residual.selection is not None:
            taken &= position.column(residual.selection.column).to_numpy(zero_copy_only=False)
        low = minus_window(partials.newest, residual.window_us)
        if low is not None:
            taken &= position.int64(TAU)[0] >= low
    return partials if taken.all() else partials.at(np.flatnonzero(taken).astype(np.int32))


def start_partials(block: pa.RecordBatch, tau: Int64s, window_us: int | None, rows: Rows | None) -> Partials:
    """Return the partials of a starting relation: the rows of a bucket (all, or those in `rows`)."""
    if rows is not None:
        tau = tau[rows]
    return Partials(
        count=len(tau),
        positions=(Position(block=block, index=rows),),
        newest=tau,
        high=plus_window(tau, window_us),
    )


def plus_window(tau: Int64s, window_us: int | None) -> Int64s:
    """Return τ + W, saturating; the largest int64 for an unbounded window."""
    if window_us is None:
        return np.full(len(tau), NO_HIGH)
    limit = NO_HIGH - window_us
    if len(tau) == 0 or tau.max() <= limit:
        return tau + window_us
    return np.where(tau > limit, NO_HIGH, np.minimum(tau, limit) + window_us)


def minus_window(newest: Int64s, window_us: int | None) -> Int64s | None:
    """Return newest − W, saturating; None for an unbounded window."""
    if window_us is None:
        return None
    limit = NO_LOW + window_us
    if len(newest) == 0 or newest.min() >= limit:
        return newest - window_us
    return np.where(newest < limit, NO_LOW, np.maximum(newest, limit) - window_us)


def concat_blocks(blocks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one block with the rows of all."""
    if len(blocks) == 1:
        return blocks[0]
    return pa.concat_batches(blocks)


def part_block(block: pa.RecordBatch, part: int) -> pa.RecordBatch:
    """Return rows of an intermediate store as those of one part, its columns named as in the part's own store."""
    prefix = part_column(part, "")
    names = [name for name in block.schema.names if name.startswith(prefix)]
    columns = [block.column(name) for name in names] or [pa.nulls(block.num_rows)]
    return pa.RecordBatch.from_arrays(columns, names=[name.removeprefix(prefix) for name in names] or [ROW])
