"""Evaluate DuckDB SQL over Arrow columns, in the thread that asks, on the data in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import duckdb


@cache
def database() -> duckdb.DuckDBPyConnection:
    """Return this process's database, which holds no data. It computes what expressions say: rewritten, ``x + 1 > 0``
    would be ``x > -1``, which does not fail where the sum overflows.
    """
    # Imported here, as below, because most workers never need it and all would wait for it.
    import duckdb

    made = duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False})
    made.execute("SET disabled_optimizers = 'expression_rewriter'")
    return made


class EvaluationError(Exception):
    """An expression cannot be computed for some row: DuckDB's reason."""


def evaluated(expressions: Sequence[str], columns: Mapping[int, pa.Array]) -> list[pa.Array]:
    """Return a column for each expression over columns ``"n"``. Raises EvaluationError."""
    import duckdb

    table = pa.table({str(number): naive(array) for number, array in columns.items()})
    try:
        projected = database().cursor().from_arrow(table).project(", ".join(f"({sql})" for sql in expressions))
        return [column.combine_chunks() for column in projected.to_arrow_table().columns]
    except duckdb.Error as error:
        raise EvaluationError(str(error).splitlines()[0]) from error


def naive(array: pa.Array) -> pa.Array:
    """Return instants as UTC wall-clock times, which DuckDB compares without asking for a time zone."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return array.cast(pa.timestamp(array.type.unit))
    return array


__all__ = ["EvaluationError", "database", "evaluated", "naive"]
