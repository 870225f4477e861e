"""Which partition of a store a tuple is kept in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.kernels.compiled import Int64s
from plait.kernels.hashing import combine, partition_of
from plait.plan.model import Store


def int64_values(table: pa.Table | Mapping[str, pa.Array], name: str) -> Int64s:
    """Return an int64 column as an array, 0 where NULL."""
    column = table[name]
    if column.null_count:
        column = column.fill_null(0)
    return np.asarray(column.to_numpy(), dtype=np.int64)


def by_partition(table: pa.Table, store: Store, turn: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield (partition, its rows). Without a partitioning attribute the whole goes to partition `turn`, so that whole
    chunks take turns, which keeps skew out.
    """
    if store.parallelism == 1:
        yield 0, table
    elif not store.partition_by:
        yield turn % store.parallelism, table
    else:
        keys = combine([int64_values(table, name) for name in store.partition_by])
        yield from parted(table, partition_of(keys, store.parallelism), store.parallelism)


def parted(table: pa.Table, partitions: npt.NDArray[np.int32] | Int64s, count: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield (partition, its rows), given the partition of each row."""
    order = np.argsort(partitions, kind="stable")
    bounds = np.searchsorted(partitions[order], np.arange(count + 1))
    for partition in range(count):
        rows = order[bounds[partition] : bounds[partition + 1]]
        if len(rows) == table.num_rows:
            yield partition, table
        elif len(rows):
            yield partition, table.take(pa.array(rows))
