"""How Arrow has what Spark has: the schemas of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from plait.runtime.outputs.rejections import nullable
from plait.runtime.spark.session import time_zone

_KNOWN: Final[dict[tuple[str, str], pa.Field]] = {}
"""What Spark has made of a type before, by the session's time zone, which is part of some, and as JSON, with what else
its column is said to be. To ask takes a tenth of a second, and hundreds of queries have the same few types.
"""


def arrow_schema(spark: SparkSession, schema: StructType) -> pa.Schema:
    """Return the schema as Arrow has it, everything in it nullable. No task runs for it: of no rows Spark computes
    nothing.
    """
    zone = time_zone(spark)
    types = [StructField("", nullable(field.dataType), True, field.metadata) for field in schema.fields]
    texts = [type_.json() for type_ in types]
    asked = {text: type_ for text, type_ in zip(texts, types, strict=True) if (zone, text) not in _KNOWN}
    if asked:
        numbered = [_called(type_, str(number)) for number, type_ in enumerate(asked.values())]
        found = spark.range(0).mapInArrow(_as_it_is, StructType(numbered)).limit(0).toArrow().schema
        _KNOWN.update(((zone, text), field) for text, field in zip(asked, found, strict=True))
    names = [field.name for field in schema.fields]
    return pa.schema([_KNOWN[zone, text].with_name(name) for name, text in zip(names, texts, strict=True)])


def _called(field: StructField, name: str) -> StructField:
    """Return a field under another name."""
    return StructField(name, field.dataType, field.nullable, field.metadata)


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


__all__ = ["arrow_schema"]
