"""`tpch-random`: five and ten random join queries over all of TPC-H, as paper 000 (section VII.A) asks them.

The full history counts; nothing is selected. How the queries are drawn, and by which rules what the paper leaves open
is settled, is said in `tpch_drawing`: key joins and joins of other columns with values in common, no query with more
rows than four times the largest stream. The paper's figures are at scale factor 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.joins import JoinQuery, JoinStream, QuerySet
from benchmarks.workloads.tpch_counts import RowCounter, find_joins, open_tpch
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams
from benchmarks.workloads.tpch_drawing import Wanted, draw_workload

FILES = 10
_CORES = 2
_MOST_ROWS_FACTOR = 4
_ASKED = ((5, 4, 3.1), (10, 5, 5.3))
"""Queries; relations of the largest; memory of queries that share nothing against those that share their stores, in
the paper.
"""


def cases(request: Request) -> Iterator[Case]:
    """Yield for each scale factor a case of five queries and one of ten."""
    for scale in request.sizes:
        wanted = TpchInput(scale=scale, files=request.files or FILES)
        data = prepare_tpch(wanted, request.directory)
        streams = read_streams(data)
        for queries in draw(data, streams, request.seed):
            yield Case(
                name=f"{len(queries)} queries, scale {scale:g}",
                questions=QuerySet.over(streams, queries),
                data=data,
                files=wanted.files,
                span_s=wanted.span_s,
                size=scale,
            )


def draw(data: Path, streams: tuple[JoinStream, ...], seed: int) -> Iterator[tuple[JoinQuery, ...]]:
    """Yield the queries of each case."""
    with open_tpch(data, streams, _CORES) as database:
        pool, counter = find_joins(database, streams), RowCounter(database)
        most_rows = _MOST_ROWS_FACTOR * max(counter((stream.name,), ()) for stream in streams)
        for count, largest, overlap in _ASKED:
            wanted = Wanted(queries=count, smallest=2, largest=largest, most_rows=most_rows, overlap=overlap)
            yield draw_workload(wanted, pool, streams, counter, seed)


WORKLOAD = Workload(
    name="tpch-random",
    summary="5 and 10 random join queries over TPC-H, full history",
    source="paper 000, section VII.A",
    unit="scale factor",
    sizes=(0.01,),
    cases=cases,
)
