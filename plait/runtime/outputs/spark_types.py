"""Spark's types as plain values."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from plait.sinks.storable import Array, Atomic, Map, SparkType, Struct


def spark_type(type_: DataType) -> SparkType:
    """Return the type as sinks judge it."""
    match type_:
        case ArrayType():
            return Array(spark_type(type_.elementType))
        case MapType():
            return Map(spark_type(type_.keyType), spark_type(type_.valueType))
        case StructType():
            return Struct(tuple((field.name, spark_type(field.dataType)) for field in type_.fields))
        case _:
            return Atomic(str(type_.simpleString()).lower())
