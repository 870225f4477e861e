"""Prefix sums of whole numbers and decimals, exact whatever their sums come to.

A number is cut into *limbs* of 32 bits, the last of which has its sign. A limb of fewer than 2³¹ rows adds up in 64
bits, so the sum of a range is that of its limbs, each a difference of two prefix sums, put together in 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.kernels.compiled import Int64s

Mask: TypeAlias = npt.NDArray[np.bool_]
DIGITS = 38
_LIMB_BITS, _LIMB = 32, np.int64(0xFFFFFFFF)


def prefix_limbs(column: pa.Array, counted: Mask | None) -> tuple[Int64s, ...]:
    """Return of each limb the sums before each row and after the last (int64[n + 1]). `counted`: the rows that are
    added up (bool[n]), None: all, of which none is NULL then.
    """
    sums = []
    for limb in limbs_of(column):
        added = limb if counted is None else np.where(counted, limb, 0)
        sums.append(np.concatenate((np.zeros(1, np.int64), np.cumsum(added, dtype=np.int64))))
    return tuple(sums)


def summed(limbs: Sequence[Int64s], scale: int, there: Mask) -> pa.Array:
    """Return numbers from the sums of their limbs, as decimals of 38 digits; NULL where nothing is `there`."""
    words = np.empty((len(there), 4), np.uint32)
    carried = np.zeros(len(there), np.int64)
    for place in range(4):
        if place < len(limbs):
            carried = carried + limbs[place]
        words[:, place] = (carried & _LIMB).astype(np.uint32)
        carried >>= _LIMB_BITS
    missing = None if there.all() else pa.array(there).buffers()[1]
    type_ = pa.decimal128(DIGITS, scale)
    return pa.Array.from_buffers(type_, len(there), [missing, pa.py_buffer(words.tobytes())])


def scale_of(type_: pa.DataType) -> int:
    """Return how many digits behind the point a sum has."""
    return type_.scale if pa.types.is_decimal(type_) else 0


def limbs_of(column: pa.Array) -> tuple[Int64s, ...]:
    """Return the limbs of numbers, the lowest first; of NULL they mean nothing."""
    if pa.types.is_decimal(column.type):
        return _decimal_limbs(column)
    values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if column.type.bit_width <= _LIMB_BITS:
        return (values,)
    return values & _LIMB, values >> _LIMB_BITS


def _decimal_limbs(column: pa.Array) -> tuple[Int64s, ...]:
    column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    words = np.frombuffer(column.buffers()[1], np.uint32).reshape(-1, 4)[column.offset :][: len(column)]
    # Of few digits the higher limbs hold nothing but the sign.
    last = 0 if column.type.precision <= 9 else 1 if column.type.precision <= 18 else 3
    lower = (words[:, place].astype(np.int64) for place in range(last))
    return (*lower, np.ascontiguousarray(words[:, last]).view(np.int32).astype(np.int64))


__all__ = ["DIGITS", "limbs_of", "prefix_limbs", "scale_of", "summed"]
