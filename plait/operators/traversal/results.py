"""Write complete results: one file a query and task, in the checkpoint or straight into the sink's staging area.

A query whose projection renames columns, or computes them in ways that DuckDB has in common with Spark, needs Spark no
more, so its rows can go where they belong at once: into a staged file of the sink, or nowhere if it discards them. All
others are spooled as Arrow in the checkpoint; Spark evaluates the projection over the spool and feeds the sink. Which
it is, the kind of sink says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import IO
from urllib.parse import quote

import pyarrow as pa
from typing_extensions import assert_never

from plait.errors import SinkError, reason_of
from plait.operators.column_names import ROW
from plait.operators.evaluating import EvaluationError, evaluated
from plait.operators.probe.partials import Partials
from plait.operators.reports import LEFT_TO_SPARK, ResultFile
from plait.operators.traversal.partial_aggregates import fold
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Delivery, Direct, Discarded, Formula, Gathering, Made, Spooled, TaskFile
from plait.state.gathered import write_gathered
from plait.state.model import GatheredRows
from plait.state.storage import Storage

SPOOL = "results"
_FAILURES = (OSError, SinkError, pa.ArrowException)
_PART_BYTES = 64 << 20


class Gathered:
    """Columns of partial results that are complete, each gathered once however many queries take it."""

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self._columns: dict[tuple[int, str], pa.Array] = {}

    def column(self, position: int, name: str) -> pa.Array:
        """Return a column of the members at a position."""
        column = self._columns.get((position, name))
        if column is None:
            column = self._columns[position, name] = self.partials.positions[position].column(name)
        return column


class ResultWriter:
    """Collects one task's results. Use as ``add`` for each piece, then ``finish`` once.

    Pieces are put together before they are made and written: a query has one from each of its starting relations.
    """

    def __init__(self, deliveries: Mapping[str, Delivery], storage: Storage, batch: int, attempt: str) -> None:
        self._deliveries, self._storage = deliveries, storage
        self._batch, self._attempt = batch, attempt
        self._spools: dict[str, _Spool] = {}
        self._direct: dict[str, TaskFile] = {}
        self._files: dict[str, ResultFile] = {}
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._pending_bytes = 0

    def add(self, output: Output, gathered: Gathered) -> None:
        """Add complete results of ``output.query``."""
        columns = self._deliveries[output.query].columns
        self._take(output.query, gathered.partials.count, lambda: result_batch(output, gathered, columns))

    def add_rows(self, query: str, rows: pa.RecordBatch) -> None:
        """Add results that no traversal has found: joined rows with the columns that the query's delivery takes."""
        self._take(query, rows.num_rows, lambda: rows)

    def _take(self, query: str, count: int, rows: Callable[[], pa.RecordBatch]) -> None:
        if count == 0:
            return
        delivery = self._deliveries[query]
        match delivery:
            case Spooled():
                self._write_spool(query, rows())
            case Discarded(made=()):
                pass
            case Gathering():
                self._keep(query, rows())
                count = 0
            case Direct() | Discarded():
                self._keep(query, rows())
            case _:
                assert_never(delivery)
        file = self._file(query)
        self._files[query] = replace(file, rows=file.rows + count)

    def _file(self, query: str) -> ResultFile:
        return self._files.get(query, ResultFile(query=query, rows=0))

    def _keep(self, query: str, rows: pa.RecordBatch) -> None:
        self._pending.setdefault(query, []).append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= _PART_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Make and write what is pending."""
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        for query, pieces in pending.items():
            self._make(query, pieces)

    def _make(self, query: str, pieces: list[pa.RecordBatch]) -> None:
        """Make and write results; a sink that cannot be written must not stop the other queries."""
        file, delivery = self._file(query), self._deliveries[query]
        if file.failure is not None or isinstance(delivery, Spooled):
            return
        if isinstance(delivery, Gathering):  # what the checkpoint does not take ends the batch, as with all state
            self._files[query] = replace(file, gathered=(*file.gathered, self._gather(delivery, pieces, file)))
            return
        try:
            rows = made_rows(_as_one(pieces), delivery.made)
            if isinstance(delivery, Direct):
                self._write_direct(delivery, rows)
        except EvaluationError:
            self._files[query] = replace(file, failure=LEFT_TO_SPARK)
        except _FAILURES as error:
            self._files[query] = replace(file, failure=reason_of(error))

    def _gather(self, delivery: Gathering, pieces: list[pa.RecordBatch], file: ResultFile) -> GatheredRows:
        rows, time = _as_one(pieces), delivery.time.name
        if delivery.fold is not None:
            rows = fold(rows, delivery.fold, time)
        name = f"{self._name(delivery.query)}-{len(file.gathered)}"
        return write_gathered(self._storage, delivery.folder, name, rows, time)

    def _write_direct(self, delivery: Direct, rows: pa.RecordBatch) -> None:
        if delivery.query not in self._direct:
            self._direct[delivery.query] = delivery.files.open(self._name(delivery.query))
        self._direct[delivery.query].write(rows)

    def _write_spool(self, query: str, rows: pa.RecordBatch) -> None:
        if query not in self._spools:
            self._spools[query] = _Spool(self._storage, f"{SPOOL}/{self._batch}/{self._name(query)}")
        self._spools[query].write(rows)

    def _name(self, query: str) -> str:
        return task_file_name(query, self._batch, self._attempt)

    def finish(self) -> tuple[ResultFile, ...]:
        """Close all files and describe them, by query. Of a query the last results are written and its file is closed
        before another's is opened: a process may have no more than some hundred files open.
        """
        for query, spool in self._spools.items():
            self._files[query] = replace(self._files[query], paths=spool.close())
        for query in sorted({*self._pending, *self._direct}):
            if query in self._pending:
                self._make(query, self._pending.pop(query))
            if query in self._direct:
                self._close(query)
        return tuple(self._files[query] for query in sorted(self._files))

    def _close(self, query: str) -> None:
        try:
            self._files[query] = replace(self._files[query], publication=self._direct.pop(query).close())
        except _FAILURES as error:
            self._files[query] = replace(self._files[query], failure=reason_of(error))


def _as_one(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(list(_alike(pieces)))


def _alike(pieces: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pieces with the schema of the first: of others a time zone may have another of its names."""
    schema = pieces[0].schema
    yield from (piece if piece.schema.equals(schema) else piece.cast(schema) for piece in pieces)


def task_file_name(query: str, batch: int, attempt: str) -> str:
    """Return what a file of results is called, but for its ending: by query, batch and the attempt of a task."""
    return f"{quote(query, safe='')}-{batch:08d}-{attempt}"


def result_batch(output: Output, gathered: Gathered, columns: tuple[ColumnRef, ...]) -> pa.RecordBatch:
    """Gather the joined row's columns, named ``alias.column``."""
    at = dict(output.positions)
    arrays = [gathered.column(at[ref.relation], ref.column) for ref in columns]
    names = [ref.name for ref in columns]
    if not arrays:
        arrays, names = [pa.nulls(gathered.partials.count)], [ROW]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def made_rows(rows: pa.RecordBatch, made: Made) -> pa.RecordBatch:
    """Return the columns of the results, by number, from those of the joined rows. Raises EvaluationError if DuckDB
    cannot compute one for some row. Spark may all the same: it passes over what AND, OR or IN do not depend on.
    """
    formulas = [each for each in made if isinstance(each, Formula)]
    read = {place: rows.column(place) for formula in formulas for place in formula.reads}
    # Of constants alone DuckDB must be told how many.
    columns = evaluated([each.sql for each in formulas], read or {0: pa.nulls(rows.num_rows)}) if formulas else []
    computed = iter(columns)
    arrays = [rows.column(each) if isinstance(each, int) else next(computed) for each in made]
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


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

    def close(self) -> tuple[str, ...]:
        """Write what is pending; return all files."""
        self._flush()
        return tuple(self._paths)


def _write_arrow(sink: IO[bytes], batches: list[pa.RecordBatch]) -> None:
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in _alike(batches):
            writer.write_batch(batch)


__all__ = ["SPOOL", "Gathered", "ResultWriter", "made_rows", "result_batch", "task_file_name"]
