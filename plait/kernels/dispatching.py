"""Rows to the distinct partitions that want them, each once, with what it is wanted for there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plait.kernels.compiled import Int64s, frozen, kernel


class Dispatched(NamedTuple):
    """For each time a row is sent: which row, where to, and the `bits` of all that want it there. Rows ascend."""

    row: Int64s
    partition: Int64s
    bits: Int64s


def dispatch(wanted: Int64s, bits: Int64s, partitions: int) -> Dispatched:
    """Send each row once to each distinct partition (int64[rows, columns], -1: none), and tell why.

    `bits` (int64[columns]) says what each column stands for: an operator, a generation, columns that are needed.
    """
    if wanted.size and int(wanted.max()) >= partitions:
        raise ValueError(f"partition {int(wanted.max())} is wanted; there are {partitions}")
    row, partition = np.empty(wanted.size, np.int64), np.empty(wanted.size, np.int64)
    told = np.empty(wanted.size, np.int64)
    count = _dispatch(frozen(wanted, np.int64), frozen(bits, np.int64), partitions, row, partition, told)
    return Dispatched(row=row[:count], partition=partition[:count], bits=told[:count])


@kernel
def _dispatch(wanted: Int64s, bits: Int64s, partitions: int, row: Int64s, partition: Int64s, told: Int64s) -> int:
    last = np.full(partitions, -1, np.int64)
    count = 0
    for at in range(wanted.shape[0]):
        first = count
        for column in range(wanted.shape[1]):
            there = wanted[at, column]
            if there < 0:
                continue
            if last[there] < first:
                last[there] = count
                row[count], partition[count], told[count] = at, there, 0
                count += 1
            told[last[there]] |= bits[column]
    return count
