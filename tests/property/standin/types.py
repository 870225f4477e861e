"""Types of columns as Spark, Arrow and DuckDB name them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyspark.sql.types as spark_types
from pyspark.sql.types import DataType, StructField, StructType

from plait.query.types import is_calendar, is_clock
from plait.sinks.storable import Array, Map, Struct, spark_type_of
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_columns
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import tokenize
from tests.oracle.intervals import DURATION

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
_OF_DUCKDB = {
    **{duckdb: spark for spark, (duckdb, _, _) in reversed(_TYPES.items())},
    "INTERVAL": "interval day to second",
    "HUGEINT": "decimal(38,0)",
}
_NESTED = re.compile(r"(MAP|STRUCT)\((.*)\)")
_INTERVALS: dict[str, DataType] = {
    "interval day to second": spark_types.DayTimeIntervalType(0, 3),
    "interval hour": spark_types.DayTimeIntervalType(1, 1),
    "interval year to month": spark_types.YearMonthIntervalType(0, 1),
    "interval month": spark_types.YearMonthIntervalType(1, 1),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.IGNORECASE)

Schema = tuple[tuple[str, str], ...]
"""(name, type) of each column, types as Spark's ``simpleString``."""


def of_duckdb(type_: str) -> str:
    """Return the Spark type that stands for a type of DuckDB's; its huge integers are at home nowhere."""
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        return f"decimal({decimal[1]},{decimal[2]})"
    if type_.endswith("[]"):
        return f"array<{of_duckdb(type_[:-2])}>"
    nested = _NESTED.fullmatch(type_)
    if nested is None:
        return _OF_DUCKDB[type_]
    if nested[1] == "MAP":
        return f"map<{','.join(map(of_duckdb, nested[2].split(', ')))}>"
    fields = (field.rsplit(" ", 1) for field in nested[2].split(", "))
    return f"struct<{','.join(f'{name}:{of_duckdb(of)}' for name, of in fields)}>"


def to_arrow(type_: str) -> pa.DataType:
    match spark_type_of(type_):
        case Array(element):
            return pa.list_(to_arrow(str(element)))
        case Map(key, value):
            return pa.map_(to_arrow(str(key)), to_arrow(str(value)))
        case Struct(fields):
            return pa.struct([(name, to_arrow(str(field))) for name, field in fields])
        case _:
            decimal = _DECIMAL.fullmatch(type_)
            if decimal:
                return pa.decimal128(int(decimal[1]), int(decimal[2]))
            return pa.int32() if is_calendar(type_) else DURATION if is_clock(type_) else _TYPES[type_][1]


def to_spark(type_: str) -> DataType:
    match spark_type_of(type_):
        case Array(element):
            return spark_types.ArrayType(to_spark(str(element)))
        case Map(key, value):
            return spark_types.MapType(to_spark(str(key)), to_spark(str(value)))
        case Struct(fields):
            return StructType([StructField(name, to_spark(str(field))) for name, field in fields])
        case _:
            decimal = _DECIMAL.fullmatch(type_)
            if decimal:
                return spark_types.DecimalType(int(decimal[1]), int(decimal[2]))
            interval = _INTERVALS.get(type_)
            return _TYPES[type_][2]() if interval is None else interval


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(name, to_arrow(type_)) for name, type_ in schema])


def struct_of(schema: Schema) -> StructType:
    return StructType([StructField(name, to_spark(type_), True) for name, type_ in schema])


def schema_of(given: str | StructType) -> Schema:
    """Read a schema as the API takes it: DDL or a StructType."""
    if isinstance(given, StructType):
        return tuple((field.name, field.dataType.simpleString()) for field in given.fields)
    source, masked = SourceText(text=f"({given})"), scan(f"({given})").masked
    declared = parse_columns(Cursor(source, masked, tokenize(source, masked, 0, len(masked)), len(masked)))
    return tuple((column.name, column.type) for column in declared)


def as_declared(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the table's columns, by position, with the names and types of a schema; instants lose their zone."""
    wanted = arrow_schema(schema)
    if not schema:
        return table.select([])
    columns: Iterable[pa.ChunkedArray] = table.columns
    cast = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.Table.from_arrays(cast, schema=wanted)
