"""`tpcds-returns`: paper 003's four-way join of TPC-DS by address, over the full history, from several FROM orders.

What is asked is said in `benchmarks.workloads.tpcds_returns_queries`. The tables are TPC-DS's own, made by ``tpcgen-cli``, which
has a scale factor as dsdgen has; the paper's is 10. (Table 2 of the paper counts twice as many returns as TPC-DS has
at that scale factor.) Rows of each table come in random order, as in the paper, evenly over 200 seconds. Usually four
orders are asked; variants ``all`` are all 24.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import JoinStream, QuerySet
from benchmarks.workloads.model import Case, Request, Workload
from benchmarks.workloads.stored import Made, generator, keep
from benchmarks.workloads.tpcds_returns_queries import (
    GENERATED,
    ORDERS,
    STREAMS,
    USUAL,
    returns_query,
    row_column,
    time_column,
)
from plait.errors import OptionError, PlaitError

FORMAT = 2
"""Raise it when the same request gives other rows than before."""

GENERATOR = "tpcgen-cli"
FILES = 10
SPAN_S = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnsInput:
    """The four tables at a scale factor."""

    scale: float
    files: int = FILES
    seed: int = 7

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise OptionError(f"expected a TPC-DS scale factor above 0, found {self.scale:g}")

    @property
    def name(self) -> str:
        """A directory name that no other input has."""
        return f"tpcds-returns-sf-{self.scale:g}-{self.files}-files-{SPAN_S}-s-seed-{self.seed}-v{FORMAT}"


def make_streams(wanted: ReturnsInput) -> Iterator[Made]:
    """Yield the streams, after making the tables with TPC-DS's generator."""
    with tempfile.TemporaryDirectory(prefix="tpcds-") as made:
        _generate(wanted.scale, Path(made))
        for stream in STREAMS:
            columns = list(GENERATED[stream.name])
            rows = pq.read_table(Path(made) / f"{stream.name}.parquet", columns=columns)
            yield stream, as_stream(stream, rows, generator(wanted.seed, stream.name))


def as_stream(stream: JoinStream, rows: pa.Table, random: np.random.Generator) -> pa.Table:
    """Return the rows in random order, evenly over the span, each with its time and number."""
    count = rows.num_rows
    taus = FIRST_US + (2 * np.arange(count) + 1) * (SPAN_S * 1_000_000) // (2 * max(count, 1))
    mixed = rows.take(pa.array(random.permutation(count)))
    return pa.table(
        {
            time_column(stream.name): pa.array(taus, pa.timestamp("us", "UTC")),
            row_column(stream.name): pa.array(np.arange(count)),
            **{name: mixed[name] for name in GENERATED[stream.name]},
        }
    )


def _generate(scale: float, directory: Path) -> None:
    beside = Path(sys.executable).with_name(GENERATOR)
    program = str(beside) if beside.exists() else shutil.which(GENERATOR)
    if program is None:
        raise OptionError(
            f"the workload's data is made by {GENERATOR}, which is not installed: pip install 'plait[bench]'"
        )
    command = [program, "tpcds", "parquet", "--scale-factor", f"{scale:g}", "--tables", ",".join(GENERATED)]
    done = subprocess.run([*command, "--output-dir", str(directory)], capture_output=True, text=True)
    if done.returncode != 0:
        raise PlaitError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")


def cases(request: Request) -> Iterator[Case]:
    """Yield for each scale factor a case for each order."""
    for scale in request.sizes:
        wanted = ReturnsInput(scale=scale, files=request.files or FILES, seed=request.seed)
        data = keep(request.directory / wanted.name, make_streams(wanted), wanted.files, SPAN_S)
        for order in ORDERS if request.variants == "all" else USUAL:
            yield Case(
                name=f"{order}, scale {scale:g}",
                questions=QuerySet(streams=STREAMS, queries=(returns_query(order),)),
                data=data,
                files=wanted.files,
                span_s=SPAN_S,
                size=scale,
            )


WORKLOAD = Workload(
    name="tpcds-returns",
    summary="customers and three kinds of returns by address, full history, in several orders of FROM",
    source="paper 003, section 5; TPC-DS",
    unit="scale factor",
    sizes=(0.3,),
    cases=cases,
)
