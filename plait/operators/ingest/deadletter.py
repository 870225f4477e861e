"""Rows that cannot be joined, kept where the user can look at them: the row, its stream and the reason."""

from __future__ import annotations

from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait.operators.ingest.badrows import Bad, any_of
from plait.operators.ingest.projection import IngestSpec
from plait.sinks.claims import file_name, tag_of
from plait.sinks.staging import Publication, StagedFile, stage
from plait.state.identity import kept_identity
from plait.state.storage import Storage

Mask = npt.NDArray[np.bool_]


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
