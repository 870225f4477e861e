"""Which rows of a chunk cannot be joined whatever the queries ask, why, and one of them for each reason; and the dead
letters: these rows, and late ones, kept where the user can look at them.

A row is bad if its record is malformed, else if it has no event time, else if its event time is so far away that
adding a window to it would leave int64: each bad row has exactly one reason, so the counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait.operators.column_names import TAU
from plait.operators.ingest.placing import int64_values
from plait.operators.ingest.projection import IngestSpec
from plait.sinks.claims import file_name, tag_of
from plait.sinks.staging import Publication, StagedFile, stage
from plait.state.identity import kept_identity
from plait.state.model import BadReason, BadRows
from plait.state.storage import Storage

Mask = npt.NDArray[np.bool_]

FARTHEST_US = 1 << 62
"""Event times lie within so many microseconds of 1970, about 146,000 years: differences and sums stay in int64."""

_RAW_CHARACTERS = 2000
"""Of a malformed record: enough of most to find out what is wrong with it."""
_SAMPLE_CHARACTERS = 160
_SAMPLE_COLUMNS = 8

Bad: TypeAlias = tuple[tuple[BadReason, Mask], ...]
"""Disjoint sets of rows, by reason."""


def bad_masks(table: pa.Table, spec: IngestSpec) -> Bad:
    """Return the rows that are bad, by reason; reasons without rows are left out."""
    masks: list[tuple[BadReason, Mask]] = []
    taken = np.zeros(table.num_rows, np.bool_)
    for reason, mask in _masks(table, spec):
        mine = mask & ~taken
        if mine.any():
            masks.append((reason, mine))
            taken |= mine
    return tuple(masks)


def _masks(table: pa.Table, spec: IngestSpec) -> Iterator[tuple[BadReason, Mask]]:
    if spec.is_table:
        return
    if spec.corrupt_column is not None and table[spec.corrupt_column].null_count < table.num_rows:
        yield "malformed", pc.is_valid(table[spec.corrupt_column]).to_numpy()
    if table[TAU].null_count:
        yield "no event time", pc.is_null(table[TAU]).to_numpy()
    tau = int64_values(table, TAU)
    if len(tau) and not -FARTHEST_US < tau.min() <= tau.max() < FARTHEST_US:
        yield "event time out of range", (tau <= -FARTHEST_US) | (tau >= FARTHEST_US)


def damaged_rows(table: pa.Table, spec: IngestSpec) -> tuple[BadRows, ...]:
    """Return the malformed rows of a table, which are kept, with NULL for what did not convert, as a batch engine reads
    them.
    """
    if not spec.is_table or spec.corrupt_column is None or table[spec.corrupt_column].null_count == table.num_rows:
        return ()
    return bad_rows(table, spec, (("malformed", pc.is_valid(table[spec.corrupt_column]).to_numpy()),))


def any_of(bad: Bad, rows: int) -> Mask:
    """Return the rows that are bad for any reason."""
    mask = np.zeros(rows, np.bool_)
    for _, mine in bad:
        mask |= mine
    return mask


def bad_rows(table: pa.Table, spec: IngestSpec, bad: Bad) -> tuple[BadRows, ...]:
    """Return the count of each reason with its first row as a sample."""
    return tuple(
        BadRows(reason=reason, rows=int(mask.sum()), sample=_sample(table, spec, reason, int(mask.argmax())))
        for reason, mask in bad
    )


def _sample(table: pa.Table, spec: IngestSpec, reason: BadReason, row: int) -> str:
    if reason == "malformed" and spec.corrupt_column is not None:
        return str(table[spec.corrupt_column][row].as_py())[:_RAW_CHARACTERS]
    raw = [name for name in spec.raw_columns if name != spec.corrupt_column][:_SAMPLE_COLUMNS]
    return shortened(", ".join(f"{name}={_text(table[name].slice(row, 1))}" for name in raw))


def _text(value: pa.ChunkedArray) -> str:
    """Return a column of one row as text. Arrow knows event times that Python does not, and has no text for some."""
    if value.null_count:
        return "NULL"
    if pa.types.is_timestamp(value.type):
        value = value.cast(pa.timestamp(value.type.unit))  # the instant in UTC, whatever zone it is shown in
    try:
        return str(value.cast(pa.string())[0].as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return "..."


def shortened(sample: str) -> str:
    """Return as much of a sample as a line can show.

    >>> shortened("id=1")
    'id=1'
    """
    line = " ".join(sample.split())
    return line if len(line) <= _SAMPLE_CHARACTERS else line[: _SAMPLE_CHARACTERS - 3] + "..."


def merged_bad(left: Iterable[BadRows], right: Iterable[BadRows]) -> tuple[BadRows, ...]:
    """Return the sums by reason; the sample is the earlier one, if it has any."""
    merged: dict[str, BadRows] = {}
    for each in (*left, *right):
        known = merged.get(each.reason)
        if known is None:
            merged[each.reason] = each
        else:
            sample = known.sample or each.sample
            merged[each.reason] = BadRows(reason=each.reason, rows=known.rows + each.rows, sample=sample)
    return tuple(merged[reason] for reason in sorted(merged))


class DeadLetterWriter:
    """Writes one task's dead letters as Parquet: ``stream``, ``reason``, ``batch`` and ``row``, a struct of the
    stream's columns.

    The file is staged and becomes visible with the batch's commit. Without a dead-letter sink nothing is written.
    """

    def __init__(self, spec: IngestSpec, batch: int, attempt: str, storage: Storage) -> None:
        self._spec, self._batch, self._attempt, self._storage = spec, batch, attempt, storage
        self._staged: StagedFile | None = None
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table, *, bad: Bad, late: Mask) -> None:
        """Add the rows of `table` that are bad, by reason, or late."""
        if self._spec.dead_letter is None:
            return
        reason = pa.nulls(table.num_rows, pa.string())
        for why, mask in (*bad, ("late", late)):
            reason = pc.if_else(pa.array(mask), why, reason)
        rows = pa.array(any_of(bad, table.num_rows) | late)
        letters = self._letters(table.filter(rows), pc.filter(reason, rows))
        if self._writer is None:
            checkpoint = kept_identity(self._storage) or ""
            name = file_name(self._spec.source, self._batch, self._attempt, tag_of(checkpoint))
            self._staged = stage(self._spec.dead_letter, f"{name}.parquet")
            self._writer = pq.ParquetWriter(
                self._staged.path, letters.schema, filesystem=self._staged.filesystem, compression="zstd"
            )
        self._writer.write_table(letters)

    def _letters(self, table: pa.Table, reason: pa.Array) -> pa.Table:
        names = [name for name in table.column_names if name in self._row_columns()]
        row = pa.StructArray.from_arrays([table[name].combine_chunks() for name in names], names=names)
        return pa.table(
            {
                "stream": pa.array([self._spec.source] * table.num_rows),
                "reason": reason,
                "batch": pa.array(np.full(table.num_rows, self._batch, np.int64)),
                "row": row,
            }
        )

    def _row_columns(self) -> frozenset[str]:
        corrupt = self._spec.corrupt_column
        return frozenset(self._spec.dead_letter_columns) | ({corrupt} if corrupt is not None else set())

    def publications(self) -> tuple[Publication, ...]:
        """Return what to publish on commit, after the writer was closed."""
        return () if self._staged is None else (self._staged.publication,)

    def __enter__(self) -> DeadLetterWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()


__all__ = [
    "FARTHEST_US",
    "Bad",
    "DeadLetterWriter",
    "Mask",
    "any_of",
    "bad_masks",
    "bad_rows",
    "damaged_rows",
    "merged_bad",
    "shortened",
]
