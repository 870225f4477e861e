"""Fill stores outside the stream: tables before the first batch, and buckets that a new plan needs with more in
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from plait.operators.close.restoring import Rewriting
from plait.operators.failing import computation_error
from plait.operators.ingest.badrows import merged_bad
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.reports import IngestReport
from plait.plan.columns import stored_column
from plait.plan.model import Store
from plait.runtime.inputs.opening import OpenSource, reading
from plait.runtime.inputs.trying import SPARK_FAILS, failures_among
from plait.runtime.settings import Settings
from plait.runtime.spark.tasks import REPORT, read_buckets, reports, rewrite_buckets, table_ingest
from plait.spelling import backquoted
from plait.state.storage import Storage


def select_ingest(frame: DataFrame, spec: IngestSpec) -> DataFrame:
    """Return the columns an ingest task receives, by number: Spark's way into Python stumbles over unusual names."""
    return frame.selectExpr(*(f"{sql} AS c{number}" for number, (_, sql) in enumerate(spec.projection)))


def load_table(opened: OpenSource, spec: IngestSpec, storage: Storage, *, slots: int, chunk_rows: int) -> IngestReport:
    """Store a table whole; return the account of all tasks together. Raises ComputationError for what queries compute
    of its rows and cannot be.
    """

    with reading(opened.source):
        frame = select_ingest(opened.frame, spec).coalesce(slots)
        frame = frame.mapInArrow(table_ingest(spec, storage, chunk_rows), REPORT)
    task_reports = _taken_in(frame, opened.frame, spec)
    return IngestReport(
        source=spec.source,
        rows=sum(report.rows for report in task_reports),
        bad_rows=merged_bad((), (bad for report in task_reports for bad in report.bad_rows)),
        buckets=tuple(bucket for report in task_reports for bucket in report.buckets),
    )


def load_store(opened: OpenSource, store: Store, storage: Storage, settings: Settings) -> IngestReport:
    """Store a table whole in one of its stores, as `load_table` does."""
    # Spark gives no texts of malformed records to those who read nothing else of them.
    is_read = bool(store.columns or store.keys or store.values)
    spec = ingest_spec(opened.source, (store,), corrupt_column=opened.corrupt_column if is_read else None)
    return load_table(opened, spec, storage, slots=settings.slots, chunk_rows=settings.chunk_rows)


def rewrite(
    spark: SparkSession, rewriting: Rewriting, storage: Storage, *, types: Mapping[str, str], chunk_rows: int
) -> tuple[IngestReport, ...]:
    """Write these buckets again, each row with the batches it arrived in; return the tasks' accounts. `types`: of the
    source's columns.

    Spark evaluates the new keys and selections over the stored columns, as it does over arriving rows. Raises
    ComputationError for those that cannot be.
    """
    buckets = rewriting.buckets
    schema = ", ".join(f"{backquoted(name)} {_type_of(name, types)}" for name in rewriting.held)
    numbers = spark.range(0, len(buckets), 1, len(buckets))
    frame = numbers.mapInArrow(read_buckets(buckets, storage, rewriting.held), schema)
    frame = frame.selectExpr("*", *(f"{sql} AS {backquoted(name)}" for name, sql in rewriting.recovered))
    chosen = select_ingest(frame, rewriting.spec)
    written = chosen.mapInArrow(rewrite_buckets(buckets, rewriting.spec, storage, chunk_rows), REPORT)
    task_reports = _taken_in(written, frame, rewriting.spec)
    lost = sum(report.bad for report in task_reports)
    if lost:
        raise RuntimeError(f"{lost} stored rows of '{rewriting.spec.source}' have no event time when written again")
    return task_reports


def store_rows(
    rows: DataFrame, spec: IngestSpec, storage: Storage, *, batch: int, chunk_rows: int
) -> tuple[IngestReport, ...]:
    """Store these rows with those of a batch; return the tasks' accounts. Raises ComputationError as `load_table`."""
    tasks = select_ingest(rows, spec).mapInArrow(table_ingest(spec, storage, chunk_rows, batch), REPORT)
    return _taken_in(tasks, rows, spec)


def _taken_in(tasks: DataFrame, rows: DataFrame, spec: IngestSpec) -> tuple[IngestReport, ...]:
    """Return the accounts of tasks that take in these rows; where they fail, say which expressions do."""
    try:
        return reports(tasks.collect())
    except SPARK_FAILS:
        failures = failures_among(rows, spec)
        if not failures:
            raise
        raise computation_error(failures) from None


def _type_of(name: str, types: Mapping[str, str]) -> str:
    return stored_column(name).stored_type or types[name]
