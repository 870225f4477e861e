"""Spark's ``xxhash64`` of the values of a column, for keys that are no numbers, computed in this process.

Spark takes -0.0 for 0.0 and all NaNs for one, as its comparisons do.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.kernels.compiled import Int64s
from plait.kernels.hashing import xxhash64
from plait.kernels.value_hashing import hash_narrow, hash_texts, hash_wide
from plait.operators.ingest.arrow_values import halves, ordered_numbers, pieces

HASHED: Final = re.compile(r"string|binary|boolean|float|double|timestamp_ntz|decimal\(\d+,\s*\d+\)")
"""The types whose hashes are known here."""

_LONG_DIGITS: Final = 18
"""Decimals of no more digits are a BIGINT to Spark."""


def spark_hash(values: pa.Array) -> pa.Array:
    """Return Spark's hash of each value, NULL where the value is. The values are of a type in `HASHED`, in Arrow's form
    of it.
    """
    if not len(values):
        return pa.array([], pa.int64())
    lacks = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(_hashes(values), mask=lacks)


def _hashes(values: pa.Array) -> Int64s:
    kind = values.type
    if pa.types.is_boolean(kind):
        return hash_narrow(values.cast(pa.int32()).fill_null(0).to_numpy())
    if pa.types.is_float32(kind):
        return hash_narrow(_tidy(values.fill_null(0.0).to_numpy()).view(np.int32))
    if pa.types.is_float64(kind):
        return xxhash64(_tidy(values.fill_null(0.0).to_numpy()).view(np.int64))
    if pa.types.is_timestamp(kind):
        return xxhash64(ordered_numbers(values))
    if pa.types.is_decimal128(kind):
        words = halves(values)
        return xxhash64(words[:, 0]) if kind.precision <= _LONG_DIGITS else hash_wide(words)
    return hash_texts(*pieces(values))


def _tidy(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers with one NaN and one zero."""
    return np.where(np.isnan(values), np.array(np.nan, values.dtype), values + values.dtype.type(0))


__all__ = ["HASHED", "spark_hash"]
