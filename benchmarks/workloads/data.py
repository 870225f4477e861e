"""Write the input of the three-way join: three streams of Parquet files, the same for the same workload and seed.

r(ts, ra, rv), s(ts, sa, sb, sv), t(ts, tb, tv). File i of a stream holds the rows whose `ts` lies in the i-th of
`files` equal slices of the span, in no order within it; so a batch of one file a stream has no late rows whatever the
watermark's delay. Keys are uniform; the `v` columns number the rows of their stream, so every result has an identity.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads import triples_random
from plait.errors import OptionError

FORMAT = 1
"""Raise it when the same workload gives other files than before: cached ones are then left alone."""

STREAMS: Mapping[str, tuple[str, ...]] = {
    stream.name: tuple(column.name for column in stream.columns) for stream in triples_random.STREAMS
}
FIRST_US = 1_704_067_200_000_000
"""2024-01-01 00:00:00 UTC."""

_ROW_GROUP_ROWS = 1 << 17
_COMPLETE = "workload.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Sizes of the three-way join. `rows`: per stream; each key occurs about `rows_per_key` times in a stream."""

    rows: int
    seed: int = 7
    files: int = 20
    span_s: int = 200
    rows_per_key: int = 10

    def __post_init__(self) -> None:
        if self.rows < self.files:
            raise OptionError(f"expected at least {self.files} rows a stream, one for each file; found {self.rows}")

    @property
    def keys(self) -> int:
        """The number of different keys."""
        return max(1, self.rows // self.rows_per_key)

    @property
    def name(self) -> str:
        """A directory name that no other workload has."""
        return (
            f"three-way-{self.rows}-rows-{self.files}-files-{self.span_s}-s-{self.rows_per_key}-per-key"
            f"-seed-{self.seed}-v{FORMAT}"
        )

    def rows_of(self, file: int) -> range:
        """Return the row numbers of one file of a stream."""
        return range(self.rows * file // self.files, self.rows * (file + 1) // self.files)

    def rows_in(self, files: int) -> int:
        """Return the rows of all three streams in the first `files` files of each."""
        return len(STREAMS) * self.rows_of(files - 1).stop


def file_name(number: int) -> str:
    """Return the name of file `number` of a stream; names sort as numbers do."""
    return f"part-{number:05d}.parquet"


def make_file(workload: Workload, stream: str, file: int) -> pa.Table:
    """Return the rows of one file. Each file has a generator of its own, so any file can be made without the others."""
    numbers = workload.rows_of(file)
    random = np.random.default_rng([workload.seed, sorted(STREAMS).index(stream), file])
    slice_us = workload.span_s * 1_000_000 // workload.files
    columns: dict[str, pa.Array] = {}
    for name in STREAMS[stream]:
        if name == "ts":
            taus = FIRST_US + random.integers(file * slice_us, (file + 1) * slice_us, len(numbers))
            columns[name] = pa.array(taus, pa.timestamp("us", "UTC"))
        elif name.endswith("v"):
            columns[name] = pa.array(np.arange(numbers.start, numbers.stop, dtype=np.int64))
        else:
            columns[name] = pa.array(random.integers(0, workload.keys, len(numbers)))
    return pa.table(columns)


def prepare(workload: Workload, root: Path) -> Path:
    """Write the workload's files below `root` unless they are there; return their directory (one folder a stream)."""
    target = root / workload.name
    if (target / _COMPLETE).exists():
        return target
    with fresh_directory(target) as directory:
        for stream in STREAMS:
            tables = (make_file(workload, stream, file) for file in range(workload.files))
            write_files(directory / stream, tables)
        (directory / _COMPLETE).write_text(json.dumps(asdict(workload)))
    return target


def write_files(directory: Path, tables: Iterator[pa.Table], *, first: int = 0) -> None:
    """Write one Parquet file a table. Spark reads files in the order of their times, so each is a second younger.

    Decimals are stored as integers, as Spark stores them: Flink cannot read them from bytes with a dictionary.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables, start=first):
        path = directory / file_name(number)
        hidden = directory / f".{path.name}"
        pq.write_table(table, hidden, row_group_size=_ROW_GROUP_ROWS, store_decimal_as_integer=True)
        os.utime(hidden, (1_000_000_000 + number, 1_000_000_000 + number))
        hidden.rename(path)


@contextmanager
def fresh_directory(target: Path) -> Iterator[Path]:
    """Yield a hidden directory to fill, then rename it to `target`: nobody sees half of it.

    If someone else was faster, theirs stays: it holds the same.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield hidden
        if not target.exists():
            hidden.rename(target)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
