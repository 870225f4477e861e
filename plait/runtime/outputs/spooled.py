"""Spooled joined rows as Spark has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from plait.runtime.spark.tasks import read_spool
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


__all__ = ["joined_rows", "tasks_for"]
