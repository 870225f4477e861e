"""Write stored buckets again in this process, where nothing they lack takes Spark: a job costs more than a few."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow as pa

from plait.operators.close.restoring import Rewriting
from plait.operators.ingest.derivable import derivation
from plait.operators.ingest.deriving import derived
from plait.operators.ingest.ingest import ingest_again
from plait.operators.reports import IngestReport
from plait.query.model import Source
from plait.state.buckets import open_bucket
from plait.state.model import Bucket
from plait.state.storage import Storage

MOST_ROWS = 300_000
"""For more rows tasks share the work."""


def rewrite_here(
    rewriting: Rewriting, source: Source, storage: Storage, *, chunk_rows: int
) -> tuple[IngestReport, ...] | None:
    """Return an account of each bucket, written again; None if that takes Spark, or too long."""
    if sum(bucket.rows for bucket in rewriting.buckets) > MOST_ROWS:
        return None
    (held,) = {bucket.layout.selections for bucket in rewriting.buckets}
    how = derivation(rewriting.spec, rewriting.held, held, source)
    if how is None:
        return None
    reports = []
    for task, bucket in enumerate(rewriting.buckets):
        rows = derived(_held(storage, bucket, rewriting.held), how)
        attempt = uuid.uuid4().hex[:12]
        reports.append(ingest_again(bucket, rows, how.spec, storage, attempt=attempt, task=task, chunk_rows=chunk_rows))
    return tuple(reports)


def _held(storage: Storage, bucket: Bucket, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    opened = open_bucket(storage, bucket)
    yield opened.batch.select(list(names))
    opened.require_untouched()


__all__ = ["MOST_ROWS", "rewrite_here"]
