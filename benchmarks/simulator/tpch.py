"""The queries of `tpch-random`, each by itself: what is joined is numbered, so that equal values are equal numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulator.experiments import Experiment, joined, stream
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import JoinQuery
from benchmarks.workloads.tpch_counts import open_tpch
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams
from benchmarks.workloads.tpch_random import draw

_FEWEST = 3
"""With two relations there is one order."""


def tpch_random(scale: float, cycles: int, directory: Path, seed: int = 0) -> Iterator[Experiment]:
    """Yield an experiment for every query that can be joined in several orders, over the full history."""
    wanted = TpchInput(scale=scale, files=cycles)
    data = prepare_tpch(wanted, directory)
    streams = read_streams(data)
    asked: dict[tuple[str, ...], JoinQuery] = {}
    for queries in draw(data, streams, seed):
        for query in queries:
            if len(query.relations) >= _FEWEST:
                asked.setdefault(tuple(sorted(join.sql for join in query.joins)), query)
    times = {each.name: each.time for each in streams}
    for number, query in enumerate(asked.values(), start=1):
        yield _experiment(f"tpch-random {number}", query, data, times, wanted)


def _experiment(name: str, query: JoinQuery, data: Path, times: dict[str, str], wanted: TpchInput) -> Experiment:
    keys = {
        relation: sorted(
            {
                side
                for join in query.joins
                for left, right in join.columns
                for owner, side in ((join.left, left), (join.right, right))
                if owner == relation
            }
        )
        for relation in query.relations
    }
    tables = {relation: _numbered(relation, columns, data, times[relation]) for relation, columns in keys.items()}
    streams = tuple(stream(relation, columns, None) for relation, columns in keys.items())
    conditions = [join.sql for join in query.joins]
    slice_us = wanted.span_s * 1_000_000 // wanted.files
    batches = [
        {relation: _arriving(table, file, slice_us) for relation, table in tables.items()}
        for file in range(wanted.files)
    ]
    return Experiment(name=name, query=joined(streams, conditions, query.relations), streams=streams, batches=batches)


def _numbered(relation: str, columns: list[str], data: Path, time: str) -> pa.Table:
    """Return event times and, for every column, a number that equal values have in common."""
    files = str(data / relation / "*.parquet").replace("'", "''")
    numbers = ", ".join(f"CAST(hash(CAST({column} AS VARCHAR)) >> 1 AS BIGINT) AS {column}" for column in columns)
    with open_tpch(data, (), 1) as database:
        found: pa.Table = database.sql(
            f"SELECT {time} AS ts, {numbers} FROM read_parquet('{files}') ORDER BY {time}"
        ).to_arrow_table()
    return found.set_column(0, "ts", found["ts"].cast(pa.timestamp("us", "UTC")))


def _arriving(table: pa.Table, file: int, slice_us: int) -> pa.Table:
    taus = table["ts"].cast(pa.int64()).to_numpy() - FIRST_US
    low, high = (int(place) for place in np.searchsorted(taus, [file * slice_us, (file + 1) * slice_us]))
    return table.slice(low, high - low)


__all__ = ["tpch_random"]
