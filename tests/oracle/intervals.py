"""Intervals of fixed length are durations in Arrow, and numbers of microseconds in DuckDB and in Parquet files."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

DURATION = pa.duration("us")


def with_durations(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with these columns of numbers as durations."""
    return _cast(table, [DURATION if field.name in names else field.type for field in table.schema])


def without_durations(table: pa.Table) -> pa.Table:
    """Return the table with its durations as numbers."""
    return _cast(table, [pa.int64() if field.type == DURATION else field.type for field in table.schema])


def _cast(table: pa.Table, types: list[pa.DataType]) -> pa.Table:
    fields = [field.with_type(type_) for field, type_ in zip(table.schema, types, strict=True)]
    return table if types == table.schema.types else table.cast(pa.schema(fields))
