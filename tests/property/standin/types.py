"""Types of columns as Spark, Arrow and DuckDB name them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyspark.sql.types as spark_types
from pyspark.sql.types import DataType, StructField, StructType

_TYPES: dict[str, tuple[str, pa.DataType, type[DataType]]] = {
    "tinyint": ("TINYINT", pa.int8(), spark_types.ByteType),
    "smallint": ("SMALLINT", pa.int16(), spark_types.ShortType),
    "int": ("INTEGER", pa.int32(), spark_types.IntegerType),
    "bigint": ("BIGINT", pa.int64(), spark_types.LongType),
    "float": ("FLOAT", pa.float32(), spark_types.FloatType),
    "double": ("DOUBLE", pa.float64(), spark_types.DoubleType),
    "string": ("VARCHAR", pa.string(), spark_types.StringType),
    "binary": ("BLOB", pa.binary(), spark_types.BinaryType),
    "date": ("DATE", pa.date32(), spark_types.DateType),
    "timestamp": ("TIMESTAMP", pa.timestamp("us"), spark_types.TimestampType),
    "timestamp_ntz": ("TIMESTAMP", pa.timestamp("us"), spark_types.TimestampNTZType),
    "boolean": ("BOOLEAN", pa.bool_(), spark_types.BooleanType),
}
_OF_DUCKDB = {duckdb: spark for spark, (duckdb, _, _) in reversed(_TYPES.items())}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.IGNORECASE)
_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[^\s`]+)\s+(\w+(?:\([\d,\s]+\))?)\s*(?:,|$)")

Schema = tuple[tuple[str, str], ...]
"""(name, type) of each column, types as Spark's ``simpleString``."""


def of_duckdb(type_: str) -> str:
    """Return the Spark type that stands for a type of DuckDB's; its huge integers are at home nowhere."""
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        return f"decimal({decimal[1]},{decimal[2]})"
    return "decimal(38,0)" if type_ == "HUGEINT" else _OF_DUCKDB[type_]


def to_arrow(type_: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(type_)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[type_][1]


def to_spark(type_: str) -> DataType:
    decimal = _DECIMAL.fullmatch(type_)
    return spark_types.DecimalType(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[type_][2]()


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(name, to_arrow(type_)) for name, type_ in schema])


def struct_of(schema: Schema) -> StructType:
    return StructType([StructField(name, to_spark(type_), True) for name, type_ in schema])


def schema_of(given: str | StructType) -> Schema:
    """Read a schema as the API takes it: DDL or a StructType."""
    if isinstance(given, StructType):
        return tuple((field.name, field.dataType.simpleString()) for field in given.fields)
    return tuple(
        (name[1:-1].replace("``", "`") if name.startswith("`") else name, type_.lower())
        for name, type_ in _COLUMN.findall(given)
    )


def as_declared(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the table's columns, by position, with the names and types of a schema; instants lose their zone."""
    wanted = arrow_schema(schema)
    if not schema:
        return table.select([])
    columns: Iterable[pa.ChunkedArray] = table.columns
    cast = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.Table.from_arrays(cast, schema=wanted)
