"""Values of a column as the arrays that kernels take: views of Arrow's buffers wherever they are such already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from plait.kernels.bands import ordered_int64
from plait.kernels.compiled import Int64s
from plait.kernels.value_hashing import Bytes


def ordered_numbers(values: pa.Array) -> Int64s:
    """Return int64 in the order of the values, equal where they are equal to Spark; anything where they are NULL.

    Days, microseconds and unscaled decimals (of up to 18 digits) are numbers already, so are truth values.
    """
    kind = values.type
    if pa.types.is_decimal128(kind):
        return halves(values)[:, 0]
    if pa.types.is_floating(kind):
        return ordered_int64(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz))
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))


def halves(values: pa.Array) -> Int64s:
    """Return the lower and the upper half of decimals as unscaled integers of 128 bits (int64[n, 2])."""
    _, data = values.buffers()
    words = np.frombuffer(data, np.int64, count=2 * (values.offset + len(values)))
    return words.reshape(-1, 2)[values.offset :]


def pieces(values: pa.Array) -> tuple[Bytes, Int64s]:
    """Return the bytes of texts or binaries, and where each begins and the last one ends (uint8[m], int64[n + 1])."""
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    if not (is_large or pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        raise TypeError(f"values of type {values.type} are no texts and no binaries")
    if not len(values):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, places, data = values.buffers()
    starts = np.frombuffer(places, np.int64 if is_large else np.int32, count=values.offset + len(values) + 1)
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return held, starts[values.offset :].astype(np.int64)


__all__ = ["halves", "ordered_numbers", "pieces"]
