"""Keep generated streams on disk: made once, in slices of event time, with Spark's names for their types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.workloads.data import FIRST_US, fresh_directory, write_files
from benchmarks.workloads.joins import JoinStream
from plait.errors import OptionError

Made = tuple[JoinStream, pa.Table]
"""A stream and all its rows, sorted by event time."""

ARROW: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Arrow's type for each of Spark's that generated streams have."""


def keep(target: Path, made: Iterable[Made], files: int, span_s: float) -> Path:
    """Write the streams into `target` unless they are there; return it. File f holds the f-th slice of the span.

    `made` is not touched if the directory exists, so pass a generator. Raises OptionError for a row outside the span.
    """
    if files < 1:
        raise OptionError(f"expected at least one file a stream, found {files}")
    if not target.exists():
        with fresh_directory(target) as directory:
            for stream, rows in made:
                write_files(directory / stream.name, slices(rows, stream.time, files, span_s))
    return target


def slices(rows: pa.Table, time: str, files: int, span_s: float) -> Iterator[pa.Table]:
    """Yield the rows of each of `files` equal slices of the span; `rows` are sorted by `time`."""
    taus = rows[time].cast(pa.int64()).to_numpy() - FIRST_US
    span_us = round(span_s * 1_000_000)
    if len(taus) and not (taus[0] >= 0 and taus[-1] < span_us and np.all(np.diff(taus) >= 0)):
        raise OptionError(f"expected rows sorted by '{time}' within {span_s:g} seconds of the start of the streams")
    places = np.searchsorted(taus, [span_us * file // files for file in range(files + 1)]).tolist()
    for low, high in pairwise(places):
        yield rows.slice(low, high - low)


def table(stream: JoinStream, columns: dict[str, object]) -> pa.Table:
    """Return the rows of a stream from its columns: NumPy or Arrow arrays, event times in microseconds."""
    arrays = {}
    for column in stream.columns:
        values, kind = columns[column.name], ARROW[column.type]
        arrays[column.name] = values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
    return pa.table(arrays)


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return random numbers that depend on the seed and on what they are for, and on nothing else."""
    return np.random.default_rng([seed, *(byte for name in names for byte in name.encode())])


def uniform_times(random: np.random.Generator, rows: int, span_s: float) -> NDArray[np.int64]:
    """Return sorted event times in microseconds, uniform over the span."""
    return FIRST_US + np.sort(random.integers(0, round(span_s * 1_000_000), rows))
