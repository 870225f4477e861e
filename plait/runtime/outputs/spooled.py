"""Spooled joined rows as Spark has them, and the results of many queries computed of them in one job that writes them.

For sinks that tasks can write (`plait.sinks.delivery.Direct`, `Discarded`) nothing is left to Spark but to evaluate the
SELECT lists, and that it can do for all queries at once: a job for each would cost about 100 ms whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from plait.query.model import ColumnRef
from plait.runtime.outputs.binding import Binding, computed
from plait.runtime.spark.tasks import REPORT, read_spool, reports, write_results
from plait.sinks.delivery import Delivery, Direct, Discarded, Projection
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication
from plait.state.model import Undelivered
from plait.state.storage import Storage

_MOST_BYTES: Final = 4 << 20
_FLAT: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*\)|string|binary|date|timestamp|timestamp_ntz"
)


def joined_rows(spark: SparkSession, storage: Storage, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Return the rows in these spooled files, `schema` being theirs, in `tasks_for` partitions, none of them empty.

    Few become part of Spark's plan, which spares it a stage of Python tasks; else a task reads each file.
    """
    if _are_few(storage, paths, schema):
        return spark.createDataFrame(_read(storage, paths, schema), schema).coalesce(1)
    numbers = spark.range(0, len(paths), 1, len(paths))
    return numbers.mapInArrow(read_spool(tuple(paths), storage, tuple(schema.names)), schema)


def tasks_for(storage: Storage, paths: Sequence[str], schema: StructType) -> int:
    """Return over how many tasks Spark spreads these rows."""
    return 1 if _are_few(storage, paths, schema) else len(paths)


def _are_few(storage: Storage, paths: Sequence[str], schema: StructType) -> bool:
    """Tell whether the rows fit into a plan: neither many, nor of types that Arrow and Spark do not hand over alike."""
    types = [str(field.dataType.simpleString()).lower() for field in schema.fields]
    if not types or not all(_FLAT.fullmatch(type_) for type_ in types):
        return False
    size = 0
    for path in paths:
        with storage.open_mapped(path) as mapped:
            size += mapped.size()
        if size > _MOST_BYTES:
            return False
    return True


def _read(storage: Storage, paths: Sequence[str], schema: StructType) -> pa.Table:
    parts: list[pa.Table] = []
    for path in paths:
        with storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
            parts.append(reader.read_all().select(schema.names))
    return pa.concat_tables(parts)


def written_by_tasks(binding: Binding, checkpoint: str) -> Delivery | None:
    """Return how tasks hand over results that Spark has computed, None if the sink takes them in another way only."""
    columns = tuple(ColumnRef(relation="", column=name) for name in binding.output.names)
    projection = Projection(
        query=binding.query.name,
        checkpoint=checkpoint,
        joined=columns,
        made=tuple(range(len(columns))),
        schema=binding.arrow_output,
    )
    delivery = kind_of(binding.sink.spec).delivery(binding.sink.spec, projection)
    return delivery if isinstance(delivery, Direct | Discarded) else None


def deliver_together(
    spark: SparkSession,
    storage: Storage,
    deliveries: Sequence[tuple[Binding, Undelivered, Delivery]],
    *,
    slots: int,
) -> dict[str, tuple[Publication, ...]]:
    """Deliver the results of all these queries, `slots` tasks at a time; return what is to be published, by query.

    Whatever is wrong with one of them fails all: then each has to be delivered by itself.
    """
    frames = [_written(spark, storage, binding, late, delivery) for binding, late, delivery in deliveries]
    united = reduce(lambda left, right: left.union(right), frames)
    publications: dict[str, tuple[Publication, ...]] = {late.query: () for _, late, _ in deliveries}
    for query, publication in reports(united.coalesce(slots).collect()):
        publications[query] += (publication,)
    return publications


def _written(
    spark: SparkSession, storage: Storage, binding: Binding, late: Undelivered, delivery: Delivery
) -> DataFrame:
    """Return the reports of the tasks that write one query's results, a file for each that is spooled."""
    joined = joined_rows(spark, storage, late.paths, binding.joined_schema)
    return computed(joined, binding.shape).mapInArrow(write_results(delivery, late.batch, storage), REPORT)


__all__ = ["deliver_together", "joined_rows", "tasks_for", "written_by_tasks"]
