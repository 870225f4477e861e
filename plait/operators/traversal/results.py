"""Write complete results: one file a query and task, in the checkpoint or straight into the sink's staging area.

A query whose projection renames columns, or computes them in ways that DuckDB has in common with Spark, needs Spark no
more, so its rows can go where they belong at once: into a staged file of the sink, or nowhere if it discards them. All
others are spooled as Arrow in the checkpoint; Spark evaluates the projection over the spool and feeds the sink. Which
it is, the kind of sink says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import IO
from urllib.parse import quote

import pyarrow as pa
from typing_extensions import assert_never

from plait.errors import Failure, SinkError, reason_of
from plait.operators.column_names import ROW
from plait.operators.evaluating import EvaluationError, evaluated
from plait.operators.probe.counted_matches import Met
from plait.operators.probe.partials import Partials
from plait.operators.reports import LEFT_TO_SPARK, ResultFile
from plait.operators.traversal.counted_rows import Counting
from plait.operators.traversal.gatherer import Gatherer, Takers, as_one, like
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Delivery, Direct, Discarded, Formula, Gathering, Made, Spooled, TaskFile
from plait.state.storage import Storage

SPOOL = "results"
_FAILURES = (OSError, SinkError, pa.ArrowException)
_PART_BYTES = 64 << 20


class Gathered:
    """Columns of partial results that are complete, each gathered once however many queries take it."""

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self._columns: dict[tuple[int, str], pa.Array] = {}

    def columns(self, places: Sequence[tuple[int, str]]) -> list[pa.Array]:
        """Return columns of the members, each by position and name."""
        missing: dict[int, dict[str, None]] = {}
        for position, name in places:
            if (position, name) not in self._columns:
                missing.setdefault(position, {})[name] = None
        for position, names in missing.items():
            found = self.partials.positions[position].columns(tuple(names))
            self._columns.update(zip(((position, name) for name in names), found, strict=True))
        return [self._columns[place] for place in places]


class ResultWriter:
    """Collects one task's results. Use as ``add`` for each piece, then ``finish`` once. `failures`: what of the state
    of queries that group could not be computed.

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
        self._gatherer = Gatherer(storage, self._name)

    def add(self, outputs: Sequence[Output], gathered: Gathered) -> None:
        """Add complete results of one query, or of several that keep the same of them (`alike`)."""
        output, count = outputs[0], gathered.partials.count
        delivery = self._deliveries[output.query]
        if not isinstance(delivery, Gathering):
            self._take(delivery, count, lambda: result_batch(output, gathered, delivery.columns))
        elif count:
            self._gatherer.add(self.takers(outputs), result_batch(output, gathered, delivery.columns))

    def add_counted(self, counting: Counting, met: Met) -> None:
        """Add matches that were counted, to queries that keep the same of them."""
        rows = counting.rows(met)
        if rows is not None:
            self.add_weighed(counting, rows)

    def add_weighed(self, counting: Counting, rows: pa.RecordBatch) -> None:
        """Add rows that stand for several joined ones each, to queries that keep the same of them."""
        self._gatherer.add_counted(counting.takers, rows)

    def can_count(self, outputs: Sequence[Output]) -> bool:
        """Tell whether all these queries keep partial aggregates, so that rows may stand for several results."""
        takers = self.takers(outputs)
        return len(takers) == len(outputs) and all(taker.fold is not None for taker in takers)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What of the state of queries that group could not be computed."""
        return tuple(self._gatherer.failures)

    def takers(self, outputs: Sequence[Output]) -> Takers:
        """Return what becomes of the results of queries that group."""
        deliveries = (self._deliveries[output.query] for output in outputs)
        return tuple(delivery for delivery in deliveries if isinstance(delivery, Gathering))

    def add_rows(self, query: str, rows: pa.RecordBatch) -> None:
        """Add results that no traversal has found: joined rows with the columns that the query's delivery takes."""
        delivery = self._deliveries[query]
        if not isinstance(delivery, Gathering):
            self._take(delivery, rows.num_rows, lambda: rows)
        elif rows.num_rows:
            self._gatherer.add((delivery,), rows)

    def _take(self, delivery: Spooled | Discarded | Direct, count: int, rows: Callable[[], pa.RecordBatch]) -> None:
        if count == 0:
            return
        match delivery:
            case Spooled():
                self._write_spool(delivery.query, rows())
            case Discarded(made=()):
                pass
            case Direct() | Discarded():
                self._keep(delivery.query, rows())
            case _:
                assert_never(delivery)
        file = self._file(delivery.query)
        self._files[delivery.query] = replace(file, rows=file.rows + count)

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
        if file.failure is not None or isinstance(delivery, Spooled | Gathering):
            return
        try:
            rows = made_rows(as_one(pieces), delivery.made)
            if isinstance(delivery, Direct):
                self._write_direct(delivery, rows)
        except EvaluationError:
            self._files[query] = replace(file, failure=LEFT_TO_SPARK)
        except _FAILURES as error:
            self._files[query] = replace(file, failure=reason_of(error))

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
        # What the checkpoint does not take ends the batch, as with all state.
        for query, files in self._gatherer.finish().items():
            self._files[query] = replace(self._file(query), gathered=files)
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


def task_file_name(query: str, batch: int, attempt: str) -> str:
    """Return what a file of results is called, but for its ending: by query, batch and the attempt of a task."""
    return f"{quote(query, safe='')}-{batch:08d}-{attempt}"


def result_batch(output: Output, gathered: Gathered, columns: tuple[ColumnRef, ...]) -> pa.RecordBatch:
    """Gather the joined row's columns, named ``alias.column``."""
    at = dict(output.positions)
    arrays = gathered.columns([(at[ref.relation], ref.column) for ref in columns])
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
        for batch in batches:
            writer.write_batch(like(batch, batches[0].schema))


__all__ = ["SPOOL", "Gathered", "ResultWriter", "made_rows", "result_batch", "task_file_name"]
