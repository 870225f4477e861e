"""The product's operators without Spark: what arrives is stored, and probe tasks are carried out in turn."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import IngestReport, ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.traverse import Traversal
from plait.plan.model import Plan
from plait.query.model import Query, Stream
from plait.sinks.delivery import Discarded
from plait.state.storage import Storage
from plait.stats.cycles import CycleLength

CLOCK_MS = 1_700_000_000_000
EVERY_BATCH = CycleLength(batches=1)
_MEMORY = Path("/dev/shm")


class Operators:
    """The operators for one query, over one storage. Results are counted and discarded."""

    def __init__(self, query: Query, storage: Storage) -> None:
        self._storage = storage
        self._wanted = {query.name: tuple(ref for column in query.output for ref in column.expression.columns)}
        self._attempts = itertools.count()

    def ingested(self, plan: Plan, stream: Stream, rows: pa.Table, batch: int) -> IngestReport:
        """Store what arrives of a stream."""
        spec = ingest_spec(stream, tuple(store for store in plan.stores if store.source == stream.name))
        context = IngestContext(
            storage=self._storage, batch=batch, late_before_us=None, attempt=f"a{next(self._attempts)}"
        )
        return ingest(_projected(spec, rows).to_batches(), spec, context)

    def context(self, plan: Plan, batch: int) -> ProbeContext:
        """Return what probe tasks of a batch work with."""
        return ProbeContext(
            plan=plan,
            batch=batch,
            storage=self._storage,
            buckets={},
            wanted=self._wanted,
            attempt=f"a{next(self._attempts)}",
        )

    def probed(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        """Carry out probe tasks."""
        deliveries = {name: Discarded(query=name, columns=columns) for name, columns in self._wanted.items()}
        return tuple(Traversal(context, deliveries, f"t{next(self._attempts)}").run_local(task) for task in tasks)


@contextmanager
def storage_in_memory(prefix: str) -> Iterator[Storage]:
    """Yield a storage that is gone afterwards, in memory where there is a place for that."""
    directory = tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if _MEMORY.is_dir() else None)
    try:
        yield Storage.open(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _projected(spec: IngestSpec, rows: pa.Table) -> pa.Table:
    """Return rows as Spark would project them: columns and casts of them, which Spark and DuckDB write alike."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", rows)
    chosen = ", ".join(f'{sql.replace("`", chr(34))} AS "c{place}"' for place, (_, sql) in enumerate(spec.projection))
    found: pa.Table = connection.sql(f"SELECT {chosen} FROM rows").to_arrow_table()
    return found.rename_columns([name for name, _ in spec.projection])


__all__ = ["CLOCK_MS", "EVERY_BATCH", "Operators", "storage_in_memory"]
