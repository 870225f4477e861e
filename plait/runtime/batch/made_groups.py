"""Groups that other queries read: written by the batch that closes their windows, taken in by the next one.

They are taken in as rows of any stream are, by the driver where it takes no expression of Spark, else by Spark's tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from plait.errors import PlaitError
from plait.operators.column_names import TAU
from plait.operators.ingest.derivable import derivation
from plait.operators.ingest.deriving import derived
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import IngestSpec, spec_in
from plait.operators.reports import IngestReport
from plait.query.model import Stream
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.inputs.loading import store_rows
from plait.runtime.outputs.deliverer import joined_rows
from plait.runtime.spark.session import is_ansi
from plait.state.gathered import folder_of, microseconds, read_gathered, write_gathered
from plait.state.model import GatheredRows, MadeGroups
from plait.state.storage import Storage


def written_groups(
    storage: Storage, epoch: Epoch, rows: Mapping[str, Sequence[pa.RecordBatch]], name: str
) -> tuple[MadeGroups, ...]:
    """Write those of these groups that other queries read, for the next batch. `rows`: by query; `name`: of files."""
    made = []
    for stream in epoch.derived:
        output = epoch.bindings[stream.name].output
        pieces = [piece.rename_columns(output.names) for piece in rows.get(stream.name, ()) if piece.num_rows]
        files: tuple[GatheredRows, ...] = ()
        if pieces:
            whole = pa.concat_batches(pieces)
            files = (write_gathered(storage, folder_of(stream.name), name, whole, stream.time),)
        made.append(MadeGroups(stream=stream.name, identity=stream.derived or "", files=files))
    return tuple(made)


def take_groups(spark: SparkSession, storage: Storage, work: Batch, chunk_rows: int) -> tuple[IngestReport, ...]:
    """Take in the groups that the manifest before a batch names; return the accounts. Raises ComputationError for what
    queries compute of them and cannot be.
    """
    waiting = {} if work.before is None else {made.stream: made for made in work.before.made if made.files}
    reports = list[IngestReport]()
    for stream in work.epoch.derived:
        if stream.name in waiting:
            spec, made = spec_in(work.epoch.plan, stream), waiting[stream.name]
            here = _taken_here(storage, stream, spec, made, work.number, chunk_rows) if is_ansi(spark) else None
            reports += here or _taken_by_spark(spark, storage, spec, made, work, chunk_rows)
    return tuple(reports)


def _taken_here(
    storage: Storage, stream: Stream, spec: IngestSpec, made: MadeGroups, batch: int, chunk_rows: int
) -> tuple[IngestReport, ...] | None:
    """Take groups in without Spark; None if something that is computed of them takes it."""
    how = derivation(spec, [*(column.name for column in stream.schema or ()), TAU], (), stream)
    if how is None:
        return None
    context = IngestContext(
        storage=storage, batch=batch, late_before_us=None, attempt=uuid.uuid4().hex[:12], chunk_rows=chunk_rows
    )
    rows = (_with_tau(batch, stream) for batch in read_gathered(storage, made.files))
    try:
        return (ingest(derived(rows, how), spec, context),)
    except PlaitError:  # Spark says which expression it is
        return None


def _with_tau(batch: pa.RecordBatch, stream: Stream) -> pa.RecordBatch:
    return batch.append_column(TAU, microseconds(batch.column(stream.time)))


def _taken_by_spark(
    spark: SparkSession, storage: Storage, spec: IngestSpec, made: MadeGroups, work: Batch, chunk_rows: int
) -> tuple[IngestReport, ...]:
    rows = joined_rows(spark, storage, [file.path for file in made.files], work.epoch.bindings[made.stream].output)
    return store_rows(rows, spec, storage, batch=work.number, chunk_rows=chunk_rows)


__all__ = ["take_groups", "written_groups"]
