"""Fill stores outside the stream: tables before the first batch, and buckets that a new plan needs with more in
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from plait.operators.names import TAU, word_names
from plait.operators.projection import IngestSpec, bits_sql, quoted
from plait.operators.reports import IngestReport
from plait.plan.model import BY_SIZE
from plait.runtime.catalog import KnownSource
from plait.runtime.sources import OpenSource, attempt
from plait.runtime.tasks import REPORT, read_buckets, reports, rewrite_buckets, table_ingest
from plait.state.model import Bucket, Layout
from plait.state.storage import Storage


def select_ingest(frame: DataFrame, spec: IngestSpec) -> DataFrame:
    """Return the columns an ingest task receives, by number: Spark's way into Python stumbles over unusual names."""
    return frame.selectExpr(*(f"{sql} AS c{number}" for number, (_, sql) in enumerate(spec.projection)))


def load_table(opened: OpenSource, spec: IngestSpec, storage: Storage, *, slots: int, chunk_rows: int) -> IngestReport:
    """Store a table whole; return the account of all tasks together."""

    def run() -> DataFrame:
        frame = select_ingest(opened.frame, spec).coalesce(slots)
        return frame.mapInArrow(table_ingest(spec, storage, chunk_rows), REPORT)

    frame = attempt(opened.source, run)
    found: tuple[IngestReport, ...] = reports(frame.collect())
    return IngestReport(
        source=spec.source,
        rows=sum(report.rows for report in found),
        buckets=tuple(bucket for report in found for bucket in report.buckets),
    )


def can_rewrite(
    bucket: Bucket, layout: Layout, known: KnownSource | None, needs: Mapping[str, tuple[str, ...]]
) -> bool:
    """Tell whether the bucket holds all that `layout` asks for, or the columns to compute it from.

    `needs`: the raw columns that keys and values (by name) and selections (by text) are computed from.
    """
    held = {*bucket.layout.carried, *bucket.layout.selections}
    wanted = {*layout.carried, *layout.selections}
    raw = {column for name in wanted - held for column in needs.get(name, (name,))}
    return all(column in held or is_younger(known, column, bucket) for column in raw)


def is_younger(known: KnownSource | None, column: str, bucket: Bucket) -> bool:
    """Tell whether the source got this column only after the bucket's rows had arrived: it is NULL in them."""
    since = None if known is None else known.since(column)
    return since is not None and since > bucket.batch_max


def rewrite(
    spark: SparkSession,
    buckets: tuple[Bucket, ...],
    spec: IngestSpec,
    storage: Storage,
    *,
    types: Mapping[str, str],
    chunk_rows: int,
) -> tuple[Bucket, ...]:
    """Write these buckets (one store, one layout) again under the spec's layout, each row with the batches it arrived
    in.

    Spark evaluates the new keys and selections over the stored columns, as it does over arriving rows.
    """
    old = buckets[0].layout
    held = (*old.carried, *word_names(len(old.selections)))
    schema = ", ".join(f"{quoted(name)} {_type_of(name, types)}" for name in held)
    numbers = spark.range(0, len(buckets), 1, len(buckets))
    frame = numbers.mapInArrow(read_buckets(buckets, storage, held), schema)
    missing = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in types.items() if name not in held]
    frame = frame.selectExpr("*", *missing)
    projection = tuple((name, _held_sql(name, sql, held, spec, old)) for name, sql in spec.projection)
    chosen = select_ingest(frame, replace(spec, projection=projection))
    rows = chosen.mapInArrow(rewrite_buckets(buckets, spec, storage, chunk_rows), REPORT).collect()
    found: tuple[IngestReport, ...] = reports(rows)
    return tuple(bucket for report in found for bucket in report.buckets)


def _held_sql(name: str, sql: str, held: tuple[str, ...], spec: IngestSpec, old: Layout) -> str:
    """Return how a projected column is had from stored rows: as it is, or by its expression over raw columns."""
    words = word_names(max(len(spec.selections), 2))
    if name in words:
        return bits_sql(spec.selections, words.index(name), held=old.selections)
    return quoted(name) if name in held else sql


def _type_of(name: str, types: Mapping[str, str]) -> str:
    if name.startswith(("#k ", BY_SIZE, "#bits", TAU)):
        return "bigint"
    if name.startswith("#v "):
        return name.split(" ", 2)[1]
    return types[name]
