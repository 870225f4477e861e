"""Write what the watermark has made final: results that no arrival completed, each once, in the batch that closes them.

They go the way of all results (`plait.operators.traversal.results`): straight into the sink's staging area where their
delivery says so, else spooled. Whoever finds them takes what he kept for them out of the state of the same manifest
that names their files, so a batch that is done again finds them again, and one that is committed never does.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from plait.operators.failing import computation_error
from plait.operators.reports import ProbeReport, ResultFile
from plait.operators.traversal.results import ResultWriter
from plait.sinks.delivery import Delivery, Spooled
from plait.state.storage import Storage


def write_found(
    rows: Mapping[str, Sequence[pa.RecordBatch]],
    deliveries: Mapping[str, Delivery],
    storage: Storage,
    *,
    batch: int,
) -> ProbeReport:
    """Write joined rows, by query, with the columns that its delivery takes; return the account of it. Raises
    ComputationError.

    What a sink refuses, or only Spark can compute, is spooled instead, with the reason.
    """
    files = {file.query: file for file in _written(rows, deliveries, storage, batch)}
    refused = {query: file.failure for query, file in files.items() if file.failure is not None}
    if refused:
        spooled = {query: Spooled(query=query, columns=deliveries[query].columns) for query in refused}
        again = _written({query: rows[query] for query in refused}, spooled, storage, batch)
        files |= {file.query: replace(file, failure=refused[file.query]) for file in again}
    return ProbeReport(results=tuple(files[query] for query in sorted(files)))


def _written(
    rows: Mapping[str, Sequence[pa.RecordBatch]],
    deliveries: Mapping[str, Delivery],
    storage: Storage,
    batch: int,
) -> tuple[ResultFile, ...]:
    """Write rows to files whose names are like those of tasks, so that a sink knows them for its own."""
    writer = ResultWriter(deliveries, storage, batch, attempt=uuid.uuid4().hex[:12])
    for query, pieces in rows.items():
        for piece in pieces:
            writer.add_rows(query, piece)
    files = writer.finish()
    if writer.failures:
        raise computation_error(tuple(writer.failures))
    return files


__all__ = ["write_found"]
