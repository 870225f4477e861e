"""`tpcds-returns`: paper 003's four-way join of TPC-DS by address, over the full history, from several FROM orders.

The tables are TPC-DS's own, made by ``tpcgen-cli``, which has a scale factor as dsdgen has; the paper's is 10. (Table 2
of the paper counts twice as many returns as TPC-DS has at that scale factor.) Rows of each table come in random order,
as in the paper, evenly over 200 seconds. Usually four orders are asked; variants ``all`` are all 24.

Asked are customers and what was returned by catalog, store and web, by address (dpPick, section 5.1). The paper
writes ``SELECT *`` over customer, catalog_returns, store_returns and web_returns where c_current_addr_sk equals
cr_refunded_addr_sk, sr_addr_sk and wr_refunded_addr_sk, over the full history, from all 24 initial orders. Here an
order is that of FROM, and each relation is joined with the first one: equal keys are equal to each other, so that is
the same join, and every order can be asked without a cross product.

Only the columns below are streamed and selected, instead of all 89: number, time and key of each row, who and what.
Returned goods without an address join with nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from benchmarks.workloads.stored import Made, generator, keep
from plait.errors import OptionError, PlaitError
from plait.query.model import Column

ADDRESSES: Mapping[str, str] = {
    "customer": "c_current_addr_sk",
    "catalog_returns": "cr_refunded_addr_sk",
    "store_returns": "sr_addr_sk",
    "web_returns": "wr_refunded_addr_sk",
}
"""The key by relation."""

GENERATED: Mapping[str, Mapping[str, str]] = {
    "customer": {"c_current_addr_sk": "int", "c_customer_sk": "int", "c_birth_year": "int"},
    "catalog_returns": {
        "cr_refunded_addr_sk": "int",
        "cr_item_sk": "int",
        "cr_order_number": "bigint",
        "cr_return_amount": "decimal(7,2)",
    },
    "store_returns": {
        "sr_addr_sk": "int",
        "sr_item_sk": "int",
        "sr_ticket_number": "bigint",
        "sr_return_amt": "decimal(7,2)",
    },
    "web_returns": {
        "wr_refunded_addr_sk": "int",
        "wr_item_sk": "int",
        "wr_order_number": "bigint",
        "wr_return_amt": "decimal(7,2)",
    },
}
"""Type by column by relation, without event time and row number."""

SHORT: Mapping[str, str] = {"customer": "Cu", "catalog_returns": "Cr", "store_returns": "Sr", "web_returns": "Wr"}
"""The paper's names."""

USUAL = ("SrCuWrCr", "CrWrSrCu", "WrCuCrSr", "CuWrCrSr")
"""The order in which the paper writes the query; the two from which dpPick gains most; the one from which it loses."""


def time_column(relation: str) -> str:
    """Return the name of the event time that a relation gets as a stream."""
    return f"{_prefix(relation)}_ts"


def row_column(relation: str) -> str:
    """Return the name of the row number that a relation gets as a stream."""
    return f"{_prefix(relation)}_nr"


def _prefix(relation: str) -> str:
    return ADDRESSES[relation].partition("_")[0]


STREAMS: tuple[JoinStream, ...] = tuple(
    JoinStream(
        name=relation,
        time=time_column(relation),
        columns=(
            Column(name=time_column(relation), type="timestamp"),
            Column(name=row_column(relation), type="bigint"),
            *(Column(name=name, type=kind) for name, kind in columns.items()),
        ),
    )
    for relation, columns in GENERATED.items()
)

ORDERS: Mapping[str, tuple[str, ...]] = {
    "".join(SHORT[relation] for relation in order): order for order in permutations(ADDRESSES)
}
"""All orders of the relations by the paper's names."""


def returns_query(order: str) -> JoinQuery:
    """Return the query with its relations in this order.

    >>> returns_query("SrCuWrCr").joins[0].sql
    'store_returns.sr_addr_sk = customer.c_current_addr_sk'
    """
    first, *others = ORDERS[order]
    columns = {stream.name: stream.columns for stream in STREAMS}
    return JoinQuery(
        name=order.lower(),
        relations=ORDERS[order],
        joins=tuple(Join(left=first, right=other, columns=((ADDRESSES[first], ADDRESSES[other]),)) for other in others),
        outputs=tuple(
            OutputOf(relation=relation, column=column.name, type=column.type)
            for relation in ADDRESSES
            for column in columns[relation]
        ),
    )


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
