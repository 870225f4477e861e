"""Write the input of the state benchmark: many rows to keep, and small batches that probe them.

stored(ts, k, v, w) has every key once. Stores of different sizes are probed by the very same batches with the very same
results: the keys of the smaller are spread over the key range of the larger, and probes draw from the smaller's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.workloads.data import FIRST_US, fresh_directory, write_files
from plait.errors import OptionError

STORED_SCHEMA = "ts TIMESTAMP, k BIGINT, v BIGINT, w DOUBLE"
PROBES_SCHEMA = "ts TIMESTAMP, k BIGINT, id BIGINT"
FORMAT = 1

_ROWS_PER_S = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorkload:
    """`rows` to store in files of `file_rows`; keys are multiples of `stride`."""

    rows: int
    stride: int
    file_rows: int
    seed: int

    @property
    def files(self) -> int:
        """The number of files."""
        return -(-self.rows // self.file_rows)

    @property
    def name(self) -> str:
        """A directory name that no other workload has."""
        return f"stored-{self.rows}-rows-stride-{self.stride}-{self.file_rows}-a-file-seed-{self.seed}-v{FORMAT}"


def stored_workloads(sizes: tuple[int, ...], file_rows: int, seed: int) -> tuple[StoredWorkload, ...]:
    """Return one workload a size, all with the same key range."""
    largest = max(sizes)
    return tuple(StoredWorkload(rows=rows, stride=largest // rows, file_rows=file_rows, seed=seed) for rows in sizes)


def make_stored(workload: StoredWorkload, file: int) -> pa.Table:
    """Return one file of rows to store, in the order of a permutation of the keys that needs no memory."""
    start = file * workload.file_rows
    numbers = np.arange(start, min(start + workload.file_rows, workload.rows), dtype=np.int64)
    random = np.random.default_rng([workload.seed, file])
    keys = (numbers * _multiplier(workload.rows)) % workload.rows * workload.stride
    return pa.table(
        {
            "ts": _times(numbers),
            "k": keys,
            "v": random.integers(0, 1000, len(numbers)),
            "w": random.random(len(numbers)),
        }
    )


def _multiplier(rows: int) -> int:
    """Return a number near the golden section of `rows` without a common divisor: i → i * m mod rows is a
    permutation.
    """
    found = max(1, round(rows * 0.6180339887))
    while math.gcd(found, rows) != 1:
        found += 1
    return found


def make_probes(workload: StoredWorkload, rows: int, file: int, seed: int) -> pa.Table:
    """Return one batch of probes that find one row each, in this store as in any larger one of the same family."""
    random = np.random.default_rng([seed, 1_000_000 + file])
    numbers = np.arange(file * rows, (file + 1) * rows, dtype=np.int64)
    return pa.table(
        {
            "ts": _times(numbers + 10 * workload.rows * workload.stride),
            "k": random.integers(0, workload.rows, rows) * workload.stride,
            "id": numbers,
        }
    )


def _times(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.array(FIRST_US + numbers * (1_000_000 // _ROWS_PER_S), pa.timestamp("us", "UTC"))


def prepare_stored(workload: StoredWorkload, root: Path) -> Path:
    """Write the rows to store below `root` unless they are there; return their directory."""
    if workload.rows < 1 or workload.stride < 1:
        raise OptionError(f"expected at least one row to store, found {workload.rows}")
    target = root / workload.name
    if not target.exists():
        with fresh_directory(target) as directory:
            write_files(directory, (make_stored(workload, file) for file in range(workload.files)))
    return target
