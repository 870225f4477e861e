"""Write complete results: one file a query and task, in the checkpoint or straight into the sink's staging area.

A query whose projection only renames columns needs no further evaluation, so its rows can go where they belong at
once: a Parquet sink gets its staged file from the probe task, a discarding sink gets nothing. All others are spooled
as Arrow in the checkpoint; Spark evaluates the projection over the spool and feeds the sink.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import SinkError
from plait.faults import reach
from plait.operators.names import ROW
from plait.operators.partials import Partials
from plait.operators.reports import ResultFile
from plait.operators.staging import StagedFile, stage
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.state.storage import Storage

SPOOL = "results"
_PART_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How a probe task hands over the results of one query.

    `kind`: ``spool`` (Arrow file in the checkpoint), ``discard`` or ``parquet`` (staged in `directory`). For the last,
    `schema` is the sink's schema; its i-th column is ``columns[i]`` of the joined row.
    """

    query: str
    kind: str
    columns: tuple[ColumnRef, ...]
    directory: str | None = None
    schema: pa.Schema | None = None


class ResultWriter:
    """Collects one task's results. Use as ``add`` for each piece, then ``finish`` once."""

    def __init__(self, deliveries: Mapping[str, Delivery], storage: Storage, batch: int, attempt: str) -> None:
        self._deliveries, self._storage = deliveries, storage
        self._batch, self._attempt = batch, attempt
        self._open: dict[str, _Spool | _ParquetFile] = {}
        self._files: dict[str, ResultFile] = {}

    def add(self, output: Output, partials: Partials) -> None:
        """Add complete results of ``output.query``."""
        if partials.count == 0:
            return
        delivery = self._deliveries[output.query]
        file = self._files.get(output.query, ResultFile(query=output.query, rows=0))
        rows = result_batch(output, partials, delivery.columns)
        if delivery.kind == "parquet" and file.failure is None:
            file = self._write_parquet(delivery, rows, file)
        if delivery.kind == "spool":
            self._write_spool(delivery, rows)
        self._files[output.query] = replace(file, rows=file.rows + partials.count)

    def _write_parquet(self, delivery: Delivery, rows: pa.RecordBatch, file: ResultFile) -> ResultFile:
        """Write to the sink's staging area; a sink that cannot be written must not stop the other queries."""
        try:
            if delivery.query not in self._open:
                self._open[delivery.query] = _ParquetFile(delivery, self._name(delivery.query) + ".parquet")
            self._open[delivery.query].write(rows)
        except (OSError, SinkError, pa.ArrowException) as error:
            return replace(file, failure=f"{type(error).__name__}: {error}")
        return file

    def _write_spool(self, delivery: Delivery, rows: pa.RecordBatch) -> None:
        if delivery.query not in self._open:
            self._open[delivery.query] = _Spool(self._storage, f"{SPOOL}/{self._batch}/{self._name(delivery.query)}")
        self._open[delivery.query].write(rows)

    def _name(self, query: str) -> str:
        return f"{quote(query, safe='')}-{self._batch:08d}-{self._attempt}"

    def finish(self) -> tuple[ResultFile, ...]:
        """Close all files and describe them, by query."""
        for query, writer in self._open.items():
            try:
                self._files[query] = writer.close(self._files[query])
            except (OSError, pa.ArrowException) as error:
                if isinstance(writer, _Spool):
                    raise
                self._files[query] = replace(self._files[query], failure=f"{type(error).__name__}: {error}")
        return tuple(self._files[query] for query in sorted(self._files))


def result_batch(output: Output, partials: Partials, columns: tuple[ColumnRef, ...]) -> pa.RecordBatch:
    """Gather the joined row's columns, named ``alias.column``."""
    at = dict(output.positions)
    arrays = [partials.positions[at[ref.relation]].column(ref.column) for ref in columns]
    names = [ref.name for ref in columns]
    if not arrays:
        arrays, names = [pa.nulls(partials.count)], [ROW]
    return pa.RecordBatch.from_arrays(arrays, names=names)


class _Spool:
    """Results of one query and task as Arrow files of about `_PART_BYTES`, so that a task holds no more than that."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0
        self._paths: list[str] = []

    def write(self, rows: pa.RecordBatch) -> None:
        self._pending.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _PART_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        path = f"{self._name}-{len(self._paths)}.arrow"
        self._storage.write_file(path, lambda sink: _write_arrow(sink, self._pending))
        self._paths.append(path)
        self._pending, self._bytes = [], 0

    def close(self, file: ResultFile) -> ResultFile:
        self._flush()
        return replace(file, paths=tuple(self._paths))


def _write_arrow(sink: IO[bytes], batches: list[pa.RecordBatch]) -> None:
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


class _ParquetFile:
    def __init__(self, delivery: Delivery, name: str) -> None:
        if delivery.directory is None or delivery.schema is None:
            raise SinkError(f"query '{delivery.query}': a Parquet delivery needs a directory and a schema")
        self._schema = delivery.schema
        self._staged: StagedFile = stage(delivery.directory, name)
        self._writer = pq.ParquetWriter(
            self._staged.path, self._schema, filesystem=self._staged.filesystem, compression="snappy"
        )

    def write(self, rows: pa.RecordBatch) -> None:
        arrays = [rows.column(i).cast(self._schema.field(i).type) for i in range(len(self._schema))]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self, file: ResultFile) -> ResultFile:
        reach("stage")
        self._writer.close()
        return replace(file, publication=self._staged.publication)


__all__ = ["SPOOL", "Delivery", "ResultWriter", "result_batch"]
