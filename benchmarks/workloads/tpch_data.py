"""TPC-H as streams: every relation in the order of its rows, all spread evenly over the same stretch of time.

Row i of n arrives at (i + ½) / n of the span, so all streams progress together, each at its own rate. File f of a
stream holds the f-th of equal slices of the span; a batch of one file of each has no late rows. Small relations leave
some files empty. The order of rows is TPC-H's own, that of the keys; hence a lineitem arrives at about the same time
as its order, and at any time before or after its part.

``tpchgen-cli`` makes the data; ask for the extra ``bench``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads.data import FIRST_US, fresh_directory, write_files
from benchmarks.workloads.joins import JoinStream, stream_from_plain
from benchmarks.workloads.tpch_schema import PREFIXES, row_column, time_column
from plait.errors import OptionError, PlaitError
from plait.query.model import Column

FORMAT = 2
"""Raise it when the same input gives other files than before."""

GENERATOR = "tpchgen-cli"
_STREAMS = "streams.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TpchInput:
    """TPC-H at a scale factor, cut into `files` files a stream over `span_s` seconds of event time."""

    scale: float
    files: int = 20
    span_s: int = 200

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise OptionError(f"expected a TPC-H scale factor above 0, found {self.scale}")

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"tpch-sf-{self.scale:g}-{self.files}-files-{self.span_s}-s-v{FORMAT}"


def prepare_tpch(wanted: TpchInput, root: Path) -> Path:
    """Write the streams below `root` unless they are there; return their directory (one folder a stream)."""
    target = root / wanted.name
    if not target.exists():
        with fresh_directory(target) as directory:
            made = directory / "generated"
            _generate(wanted.scale, made)
            streams = []
            for relation in PREFIXES:
                rows = as_stream(relation, pq.read_table(made / f"{relation}.parquet"), wanted.span_s)
                write_files(directory / relation, cut(rows, time_column(relation), wanted))
                streams.append(asdict(describe(relation, rows.schema)))
            shutil.rmtree(made)
            (directory / _STREAMS).write_text(json.dumps(streams))
    return target


def read_streams(directory: Path) -> tuple[JoinStream, ...]:
    """Return the streams that `prepare_tpch` wrote, small ones first."""
    return tuple(stream_from_plain(stream) for stream in json.loads((directory / _STREAMS).read_text()))


def _generate(scale: float, directory: Path) -> None:
    beside = Path(sys.executable).with_name(GENERATOR)
    program = str(beside) if beside.exists() else shutil.which(GENERATOR)
    if program is None:
        raise OptionError(
            f"the benchmark's data is made by {GENERATOR}, which is not installed: pip install 'plait[bench]'"
        )
    command = [program, "parquet", "--scale-factor", f"{scale:g}", "--output-dir", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise PlaitError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")


def as_stream(relation: str, rows: pa.Table, span_s: int) -> pa.Table:
    """Return the rows with a time and a number each, text as plain strings."""
    numbers = np.arange(rows.num_rows, dtype=np.int64)
    taus = FIRST_US + (2 * numbers + 1) * (span_s * 1_000_000) // (2 * max(rows.num_rows, 1))
    columns = {
        time_column(relation): pa.array(taus, pa.timestamp("us", "UTC")),
        row_column(relation): pa.array(numbers),
    }
    for field in rows.schema:
        column = rows[field.name]
        columns[field.name] = column.cast(pa.string()) if _is_text(field.type) else column
    return pa.table(columns)


def cut(rows: pa.Table, time: str, wanted: TpchInput) -> Iterator[pa.Table]:
    """Yield the rows of each slice of the span."""
    taus = rows[time].cast(pa.int64()).to_numpy() - FIRST_US
    bounds = [wanted.span_s * 1_000_000 * file // wanted.files for file in range(wanted.files + 1)]
    places = np.searchsorted(taus, bounds).tolist()
    for low, high in pairwise(places):
        yield rows.slice(low, high - low)


def describe(relation: str, schema: pa.Schema) -> JoinStream:
    """Return a stream's columns with their Spark types."""
    columns = tuple(Column(name=field.name, type=_spark_type(field.type)) for field in schema)
    return JoinStream(name=relation, time=time_column(relation), columns=columns)


def _is_text(kind: pa.DataType) -> bool:
    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.date32(): "date", pa.string(): "string"}
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if kind not in names:
        raise PlaitError(f"{GENERATOR} made a column of type {kind}, which has no counterpart here")
    return names[kind]
