"""The columns of a Parquet file as Spark will find them: its own description, or what the Arrow types become."""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from plait.query.model import Column
from plait.sql.lexis.names import backquoted
from plait.sql.script.paths import UnreadableFileError

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_ARROW: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}
_SPARK_JSON: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_SPARK_PLAIN: Final = (
    "boolean",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "variant",
)


def parquet_schema(path: str) -> tuple[Column, ...] | None:
    """Return the columns, None where it takes Spark to know. Raises UnreadableFileError."""
    try:
        with pq.ParquetFile(path) as file:
            described = (file.metadata.metadata or {}).get(_SPARK_SCHEMA)
            arrow = file.schema_arrow
            physical = {
                column.path: column.physical_type for column in map(file.schema.column, range(len(file.schema)))
            }
    except (OSError, pa.ArrowException) as problem:
        reason = str(problem).split("\n", 1)[0].rstrip(".")
        message = f"'{path}' is not a readable Parquet file: {reason}; remove or repair it, or declare the columns"
        raise UnreadableFileError(message) from problem
    if described is not None:
        types = [(field["name"], _from_json(field["type"])) for field in json.loads(described)["fields"]]
    else:
        types = [
            (field.name, "timestamp" if physical.get(field.name) == "INT96" else _from_arrow(field.type))
            for field in arrow
        ]
    if any(type_ is None for _, type_ in types):
        return None
    return tuple(Column(name=name, type=type_) for name, type_ in types if type_ is not None)


def _from_arrow(type_: pa.DataType) -> str | None:
    """Return the Spark type of an Arrow type, None where it takes Spark to know."""
    if type_ in _ARROW:
        return _ARROW[type_]
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_) and type_.unit in ("us", "ms"):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = _from_arrow(type_.value_type)
        return element and f"array<{element}>"
    if pa.types.is_map(type_):
        key, item = _from_arrow(type_.key_type), _from_arrow(type_.item_type)
        return f"map<{key},{item}>" if key and item else None
    if pa.types.is_struct(type_):
        return _struct([(field.name, _from_arrow(field.type)) for field in type_])
    return _from_arrow(type_.value_type) if pa.types.is_dictionary(type_) else None


def _from_json(type_: Any) -> str | None:
    """Return the Spark type of a type in Spark's own JSON."""
    if isinstance(type_, str):
        return type_ if type_ in _SPARK_PLAIN or type_.startswith("decimal(") else _SPARK_JSON.get(type_)
    match type_.get("type"):
        case "array":
            element = _from_json(type_["elementType"])
            return element and f"array<{element}>"
        case "map":
            key, item = _from_json(type_["keyType"]), _from_json(type_["valueType"])
            return f"map<{key},{item}>" if key and item else None
        case "struct":
            return _struct([(field["name"], _from_json(field["type"])) for field in type_["fields"]])
        case _:
            return None


def _struct(fields: list[tuple[str, str | None]]) -> str | None:
    if any(type_ is None for _, type_ in fields):
        return None
    return f"struct<{','.join(f'{backquoted(name)}:{type_}' for name, type_ in fields)}>"
